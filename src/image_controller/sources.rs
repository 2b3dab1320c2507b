//! Reads image listings from files and folders, such as a mounted ConfigMap.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, ensure};

use crate::api::gotext::yaml;
use crate::images::catalogue::Catalogue;
use crate::images::source_path::SourcePath;
use crate::images::sources::{self, MOST_BYTES};
use crate::process::bounded_file::text_of_at_most;

/// Maximum number of files of all sources.
const MOST_FILES: usize = 1000;

/// Files with size and modification time. As long as these are unchanged, so is the content.
pub(super) type Versions = Vec<(PathBuf, u64, Option<SystemTime>)>;

/// The versions of all files.
///
/// # Errors
/// The error names the source that can't be read.
pub(super) fn versions(paths: &[SourcePath]) -> anyhow::Result<Versions> {
    let mut versions = Vec::new();
    for source in paths {
        for file in files(&source.path)? {
            let metadata = std::fs::metadata(&file).with_context(|| format!("{}: can't be read", file.display()))?;
            versions.push((file, metadata.len(), metadata.modified().ok()));
        }
    }
    Ok(versions)
}

/// Reads all sources.
///
/// # Errors
/// The error has the file and the path of the invalid field. A partial result is never returned, because missing
/// images would look deleted.
pub(super) fn read_all(paths: &[SourcePath]) -> anyhow::Result<Catalogue> {
    ensure!(!paths.is_empty(), "no source is named: start the controller with --image-source");
    let mut listings = Vec::new();
    for source in paths {
        for file in files(&source.path)? {
            for document in
                yaml::documents(&text_of_at_most(&file, MOST_BYTES)?).with_context(|| file.display().to_string())?
            {
                let listing = sources::read(&document, source.region.as_deref());
                listings.push(listing.with_context(|| file.display().to_string())?);
            }
        }
    }
    ensure!(!listings.is_empty(), "the sources have no listing of images");
    Ok(Catalogue::new(listings)?)
}

/// A file, or the files of a folder. Skips names that begin with a dot, which the kubelet uses internally in mounted
/// volumes.
fn files(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let unreadable = || format!("{}: can't be read", path.display());
    if !std::fs::metadata(path).with_context(unreadable)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).with_context(unreadable)? {
        let entry = entry.with_context(unreadable)?;
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        let is_listing =
            entry.path().extension().is_some_and(|known| ["yaml", "yml", "json"].iter().any(|one| known == *one));
        if !is_hidden && is_listing {
            files.push(entry.path());
        }
        ensure!(files.len() <= MOST_FILES, "{}: more than {MOST_FILES} files", path.display());
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("amis.json"), content).unwrap();
        std::fs::write(folder.path().join("README.md"), "no listing").unwrap();
        let source = SourcePath { region: Some("eu-central-1".to_owned()), path: folder.path().to_owned() };
        match read_all(&[source]) {
            Ok(catalogue) => format!("{} images", catalogue.images().len()),
            Err(error) => format!("{error:#}").replace(&folder.path().display().to_string(), "FOLDER"),
        }
    }

    #[test]
    fn a_folder_is_read_as_a_whole_or_not_at_all() {
        assert_eq!(read(r#"{"Images": [{"ImageId": "ami-00000001"}]}"#), "1 images");
        assert_eq!(read(r#"{"Images": [{"ImageId": "x"}]}"#).split(": ").next(), Some("FOLDER/amis.json"));
        assert!(read(r#"{"Images": ["#).starts_with("FOLDER/amis.json: "));
        assert_eq!(read(""), "the sources have no listing of images");
        assert!(read_all(&[]).is_err());
    }
}

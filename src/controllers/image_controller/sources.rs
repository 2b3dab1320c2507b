//! Reads image listings from files and folders, such as a mounted ConfigMap.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, bail, ensure};

use profiles::images::catalogue::Catalogue;
use profiles::images::source_path::SourcePath;
use profiles::images::sources;
use runtime::reader::files::{NamedFile, files};

/// The most files of a source.
const MAX_FILES: usize = 1000;

/// Files with size and modification time. As long as these are unchanged, so is the content.
pub(super) type Versions = Vec<(PathBuf, u64, Option<SystemTime>)>;

/// The versions of all files.
///
/// # Errors
/// The error names the source that can't be read.
pub(super) fn versions(paths: &[SourcePath]) -> anyhow::Result<Versions> {
    let mut versions = Vec::new();
    for source in paths {
        for file in files_of(&source.path)? {
            let metadata = std::fs::metadata(&file.path).with_context(|| format!("{}: can't be read", file.name()))?;
            versions.push((file.path, metadata.len(), metadata.modified().ok()));
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
        for file in files_of(&source.path)? {
            for document in file.documents_within(sources::MAX_BYTES)? {
                let listing = sources::read(&document, source.region.as_deref());
                let listing = listing.with_context(|| file.name())?;
                if let Some(refused) = listing.refused.first() {
                    bail!("{}: {refused}", file.name());
                }
                listings.push(listing);
            }
        }
    }
    ensure!(!listings.is_empty(), "the sources have no listing of images");
    Ok(Catalogue::new(listings)?)
}

/// A file, or those of a folder.
fn files_of(path: &Path) -> anyhow::Result<Vec<NamedFile>> {
    let found = files(&[path.to_owned()]);
    if let Some(skipped) = found.skipped.first() {
        bail!("{}: {}", skipped.input, skipped.reason);
    }
    ensure!(found.files.len() <= MAX_FILES, "{}: more than {MAX_FILES} files", path.display());
    Ok(found.files)
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

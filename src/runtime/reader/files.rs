//! Finds the files that paths name. A folder includes its YAML and JSON files at any depth.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::Value;

use super::Skipped;
use super::objects;
use super::text::{MAX_BYTES, TextError, read_text};

/// Extensions of the files to read in a folder.
const ENDINGS: [&str; 6] = [".yaml", ".yml", ".json", ".yaml.gz", ".yml.gz", ".json.gz"];
/// Maximum number of files per call.
const MAX_FILES: usize = 200_000;

/// A file to read.
#[derive(Clone, Debug)]
pub struct NamedFile {
    /// Its path; `-` is standard input.
    pub path: PathBuf,
    /// Whether the user named the file itself, not a folder that contains it.
    pub explicit: bool,
    /// Its text if already read: from a git revision or standard input.
    pub text: Option<String>,
}

impl NamedFile {
    /// Reads the text.
    ///
    /// # Errors
    /// If the file cannot be read. The error contains its path.
    pub fn text(&self) -> anyhow::Result<String> {
        match &self.text {
            Some(text) => Ok(text.clone()),
            None => text_of_file(&self.path),
        }
    }

    /// Parses the documents, without splitting lists into objects.
    ///
    /// # Errors
    /// If the file cannot be read or parsed. The error contains its path.
    pub fn documents(&self) -> anyhow::Result<Vec<Value>> {
        objects::documents(&self.text()?).with_context(|| self.name())
    }

    /// Same as [`Self::documents`] with a limit in bytes.
    ///
    /// # Errors
    /// If the file cannot be read or parsed. The error contains its path.
    pub fn documents_within(&self, max_bytes: u64) -> anyhow::Result<Vec<Value>> {
        let text = match &self.text {
            Some(text) => text.clone(),
            None => text_within(&self.path, max_bytes)?,
        };
        objects::documents(&text).with_context(|| self.name())
    }

    /// All objects in the file.
    ///
    /// # Errors
    /// If the file cannot be read, or a list in it is incomplete. The error contains its path.
    pub fn objects(&self) -> anyhow::Result<Vec<Value>> {
        objects::objects(&self.text()?).with_context(|| self.name())
    }

    /// The name for messages.
    pub fn name(&self) -> String {
        name_of(&self.path)
    }
}

/// The result of expanding paths.
#[derive(Debug, Default)]
pub struct Files {
    /// The files to read.
    pub files: Vec<NamedFile>,
    /// Files and folders that cannot be read.
    pub skipped: Vec<Skipped>,
}

/// The name of a path in messages.
pub fn name_of(path: &Path) -> String {
    path.display().to_string()
}

/// Reads a file or standard input.
///
/// # Errors
/// If it cannot be read. The error contains its path.
pub fn text_of_file(path: &Path) -> anyhow::Result<String> {
    text_within(path, MAX_BYTES)
}

fn text_within(path: &Path, max_bytes: u64) -> anyhow::Result<String> {
    // The text of the error already includes its cause, so a chain would repeat it.
    read_text(path, max_bytes).map_err(|error: TextError| anyhow::anyhow!("{}: {error}", name_of(path)))
}

/// All objects in a file or standard input.
///
/// # Errors
/// If it cannot be read, or a list in it is incomplete. The error contains its path.
pub fn objects_of_file(path: &Path) -> anyhow::Result<Vec<Value>> {
    NamedFile { path: path.to_owned(), explicit: true, text: None }.objects()
}

/// Expands paths to files, sorted by name within each folder.
///
/// Skips folder entries that begin with a dot, because the kubelet mounts each ConfigMap file a second time below one.
/// Follows symbolic links unless their target is read anyway. Skips files without an end, such as pipes.
#[must_use]
pub fn files(paths: &[PathBuf]) -> Files {
    let mut walk = Walk::default();
    for path in paths {
        if path.is_dir() {
            walk.folder(path);
        } else {
            walk.found.files.push(NamedFile { path: path.clone(), explicit: true, text: None });
        }
    }
    walk.links();
    walk.found
}

#[derive(Default)]
struct Walk {
    found: Files,
    /// Canonical paths of folders and files found without following links.
    real: BTreeSet<PathBuf>,
    /// Symbolic links found in folders.
    links: BTreeSet<PathBuf>,
}

impl Walk {
    fn folder(&mut self, folder: &Path) {
        if let Ok(real) = folder.canonicalize()
            && !self.real.insert(real)
        {
            return;
        }
        let entries = fs::read_dir(folder).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(error) => return self.skip(folder, &TextError::Io(error).to_string()),
        };
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_symlink() => drop(self.links.insert(path)),
                Ok(kind) if kind.is_dir() => self.folder(&path),
                Ok(kind) => self.file(path, kind.is_file()),
                Err(error) => self.skip(&path, &TextError::Io(error).to_string()),
            }
        }
    }

    fn file(&mut self, path: PathBuf, is_regular: bool) {
        if !has_known_ending(&path) {
            return;
        }
        if !is_regular {
            return self.skip(&path, "not a regular file");
        }
        if self.found.files.len() >= MAX_FILES {
            return self.skip(&path, &format!("beyond the {MAX_FILES} files that are read"));
        }
        if let Ok(real) = path.canonicalize() {
            self.real.insert(real);
        }
        self.found.files.push(NamedFile { path, explicit: false, text: None });
    }

    /// Follows links last, when all directly reachable files are known. A target folder may contain further links.
    fn links(&mut self) {
        while let Some(link) = self.links.pop_first() {
            let metadata = match fs::metadata(&link) {
                Ok(metadata) => metadata,
                Err(error) if has_known_ending(&link) => {
                    self.skip(&link, &TextError::Io(error).to_string());
                    continue;
                }
                Err(_) => continue,
            };
            let is_read = link.canonicalize().is_ok_and(|real| self.real.contains(&real));
            if is_read {
                continue;
            }
            if metadata.is_dir() {
                self.folder(&link);
            } else {
                self.file(link, metadata.is_file());
            }
        }
    }

    fn skip(&mut self, path: &Path, reason: &str) {
        self.found.skipped.push(Skipped { input: name_of(path), reason: reason.to_owned() });
    }
}

/// Whether a file in a folder may contain objects.
fn has_known_ending(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Relative names of found and skipped files.
    fn names(folder: &Path) -> (Vec<String>, Vec<String>) {
        let relative = |path: &Path| path.strip_prefix(folder).unwrap().display().to_string();
        let Files { files, skipped } = files(&[folder.to_owned()]);
        let skipped = skipped.iter().map(|skipped| relative(Path::new(&skipped.input))).collect();
        (files.iter().map(|file| relative(&file.path)).collect(), skipped)
    }

    fn write(folder: &Path, names: &[&str]) {
        for name in names {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "kind: Shoot").unwrap();
        }
    }

    #[test]
    fn reads_mounted_config_maps_once() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &["..2026/shoots.yaml"]);
        symlink("..2026", folder.path().join("..data")).unwrap();
        symlink("..data/shoots.yaml", folder.path().join("shoots.yaml")).unwrap();
        assert_eq!(names(folder.path()), (vec!["shoots.yaml".to_owned()], Vec::new()));
    }

    #[test]
    fn leaves_out_hidden_and_other_files() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &[".github/workflow.yaml", "README.md", "b/shoot.json", "a.yml", "c.yaml.gz"]);
        assert_eq!(names(folder.path()).0, ["a.yml", "b/shoot.json", "c.yaml.gz"]);
    }

    #[test]
    fn follows_links_that_lead_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        write(folder.path(), &["v1/a.yaml"]);
        write(elsewhere.path(), &["b.yaml"]);
        symlink("v1", folder.path().join("latest")).unwrap();
        symlink("..", folder.path().join("v1/above")).unwrap();
        symlink(elsewhere.path(), folder.path().join("prod")).unwrap();
        assert_eq!(names(folder.path()).0, ["v1/a.yaml", "prod/b.yaml"]);
    }

    #[test]
    fn names_files_that_are_not_regular() {
        let folder = tempfile::tempdir().unwrap();
        let status = std::process::Command::new("mkfifo").arg(folder.path().join("pipe.yaml")).status().unwrap();
        assert!(status.success());
        symlink("nowhere", folder.path().join("broken.json")).unwrap();
        assert_eq!(names(folder.path()).1, ["pipe.yaml", "broken.json"]);
    }
}

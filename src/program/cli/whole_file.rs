//! Atomic file writes.

use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, ensure};
use tempfile::{Builder, NamedTempFile};

/// Suffix of temporary files, which are renamed once they are complete.
const SUFFIX: &str = ".gardener-extension-worker.tmp";
/// A temporary file of this age was left by a process that was killed.
const LEFT_BEHIND: Duration = Duration::from_secs(60 * 60);
/// Maximum number of symbolic links to follow.
const MOST_LINKS: usize = 40;

/// Writes a text to a temporary file in the same folder, then renames it, so that readers get either the old or the new
/// content. Symbolic links are followed and kept, and so are the permissions.
///
/// # Errors
/// If the file cannot be written, with its name. The old content is kept.
pub(super) fn write_atomically(path: &Path, text: &str) -> anyhow::Result<()> {
    write_atomically_with(path, |file| file.write_all(text.as_bytes()))
}

/// Same as [`write_atomically`], for content that `write` produces in pieces.
///
/// # Errors
/// As [`write_atomically`].
pub(super) fn write_atomically_with(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
) -> anyhow::Result<()> {
    let put = || {
        let target = target(path)?;
        remove_left_behind(&target);
        let file = beside(&target)?;
        let mut writer = BufWriter::new(file.as_file());
        write(&mut writer)?;
        writer.flush()?;
        drop(writer);
        file.as_file().sync_all()?;
        file.persist(&target).map(drop).map_err(io::Error::from)
    };
    put().with_context(|| format!("{}: can't be written", path.display()))
}

/// The right to update a file. Other processes of this program wait until it is dropped, so that simultaneous updates
/// lose nothing.
pub(super) struct Update {
    path: PathBuf,
    before: Option<Version>,
    /// The locked folder. A lock of the file itself would not last, because an update replaces the file.
    _folder: File,
}

/// Distinguishes the contents of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Version {
    inode: u64,
    bytes: u64,
    modified: SystemTime,
}

impl Update {
    /// Waits for other updates. Begin an update before you read the file.
    ///
    /// # Errors
    /// If the folder of the file can't be read.
    pub(super) fn begin(path: &Path) -> anyhow::Result<Self> {
        let locked = || {
            let folder = File::open(folder(&target(path)?))?;
            match folder.lock() {
                // Some network file systems have no locks. The check before writing still finds other updates.
                Err(error) if !is_without_locks(&error) => Err(error),
                _ => Ok(folder),
            }
        };
        let folder = locked().with_context(|| format!("{}: can't be locked for an update", path.display()))?;
        Ok(Self { path: path.to_owned(), before: version(path)?, _folder: folder })
    }

    /// Writes the new content, as [`write_atomically`] does.
    ///
    /// # Errors
    /// If another program has changed the file since the update began, or if it can't be written.
    pub(super) fn write(self, text: &str) -> anyhow::Result<()> {
        let name = self.path.display();
        let is_same = version(&self.path)? == self.before;
        ensure!(is_same, "{name}: another program has changed it since it was read; nothing is written");
        write_atomically(&self.path, text)
    }
}

fn is_without_locks(error: &io::Error) -> bool {
    // Numbers of EBADF (NFS, for a folder) and ENOLCK.
    error.kind() == io::ErrorKind::Unsupported || matches!(error.raw_os_error(), Some(9 | 37))
}

/// The version of a file, if it exists.
fn version(path: &Path) -> anyhow::Result<Option<Version>> {
    let read = || match fs::metadata(path) {
        Ok(metadata) => {
            Ok(Some(Version { inode: metadata.ino(), bytes: metadata.len(), modified: metadata.modified()? }))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    read().with_context(|| format!("{}: can't be read", path.display()))
}

/// The file behind a path with symbolic links. It need not exist.
fn target(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MOST_LINKS {
        if !fs::symlink_metadata(&target).is_ok_and(|metadata| metadata.is_symlink()) {
            return Ok(target);
        }
        let link = fs::read_link(&target)?;
        target = folder(&target).join(link);
    }
    Err(io::Error::other("too many links"))
}

/// A temporary file with an unpredictable name, in the folder of the target and with its permissions.
fn beside(target: &Path) -> io::Result<NamedTempFile> {
    let prefix = prefix(target);
    let mut builder = Builder::new();
    builder.prefix(&prefix).suffix(SUFFIX);
    match fs::metadata(target) {
        Ok(metadata) => {
            let file = builder.tempfile_in(folder(target))?;
            file.as_file().set_permissions(metadata.permissions())?;
            Ok(file)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => with_usual_permissions(&mut builder, target),
        Err(error) => Err(error),
    }
}

/// A new file with the permissions that the umask allows.
#[cfg(unix)]
fn with_usual_permissions(builder: &mut Builder<'_, '_>, target: &Path) -> io::Result<NamedTempFile> {
    use std::os::unix::fs::PermissionsExt as _;
    builder.permissions(fs::Permissions::from_mode(0o666)).tempfile_in(folder(target))
}

/// A new file.
#[cfg(not(unix))]
fn with_usual_permissions(builder: &mut Builder<'_, '_>, target: &Path) -> io::Result<NamedTempFile> {
    builder.tempfile_in(folder(target))
}

/// Removes temporary files of processes that were killed. Failures are ignored, because such files only take up space.
fn remove_left_behind(target: &Path) {
    let prefix = prefix(target);
    let Ok(entries) = fs::read_dir(folder(target)) else { return };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(|name| name.starts_with(&prefix) && name.ends_with(SUFFIX));
        if is_ours && entry.metadata().is_ok_and(|metadata| is_left_behind(&metadata, SystemTime::now())) {
            drop(fs::remove_file(entry.path()));
        }
    }
}

fn is_left_behind(metadata: &Metadata, now: SystemTime) -> bool {
    let age = metadata.modified().ok().and_then(|modified| now.duration_since(modified).ok());
    metadata.is_file() && age.is_some_and(|age| age >= LEFT_BEHIND)
}

fn prefix(target: &Path) -> String {
    let name = target.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    format!(".{name}.")
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn permissions_and_links_stay() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link] = ["lock.yaml", "link.yaml"].map(|name| folder.path().join(name));
        fs::write(&file, "before").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        symlink("lock.yaml", &link).unwrap();
        write_atomically(&link, "after").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!((fs::read_to_string(&file).unwrap().as_str(), mode(&file)), ("after", 0o600));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left beside it");
    }

    #[test]
    fn a_planted_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let [file, victim] = ["lock.yaml", "victim"].map(|name| folder.path().join(name));
        fs::write(&victim, "untouched").unwrap();
        symlink(&victim, folder.path().join(format!(".lock.yaml.{}", std::process::id()))).unwrap();
        write_atomically(&file, "new").unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched");
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    }

    #[test]
    fn leftovers_are_removed_when_they_are_old() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lock.yaml");
        let [old, new] = ["a", "b"].map(|name| folder.path().join(format!(".lock.yaml.{name}{SUFFIX}")));
        for path in [&old, &new] {
            fs::write(path, "half").unwrap();
        }
        File::options().write(true).open(&old).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        write_atomically(&file, "new").unwrap();
        assert!(!old.exists() && new.exists());
    }

    #[test]
    fn changed_files_are_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lock.yaml");
        let update = Update::begin(&file).unwrap();
        write_atomically(&file, "of an editor").unwrap();
        assert!(update.write("mine").unwrap_err().to_string().contains("has changed it"));
        Update::begin(&file).unwrap().write("mine").unwrap();
        let update = Update::begin(&file).unwrap();
        write_atomically(&file, "of an editor").unwrap();
        assert!(update.write("mine").is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "of an editor");
    }

    #[test]
    fn links_in_a_circle_are_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link.yaml");
        symlink("link.yaml", &link).unwrap();
        let error = write_atomically(&link, "new").unwrap_err();
        assert!(format!("{error:#}").contains("too many links"), "{error:#}");
    }
}

//! The folder of one run: keys, certificates, data and logs.
//!
//! The shared control plane is a static, so most runs end without stopping it and leave their folder, which helps to
//! debug failures. The next run removes folders without a living owner. An owner holds a lock on a file in its folder,
//! which the kernel releases when the process ends.

use std::fs::File;
use std::path::Path;

use anyhow::{Context as _, Result};
use tempfile::TempDir;

const PREFIX: &str = "control-plane-";
const OWNER: &str = "owner";

/// A folder for this run. Dropping it removes the folder, except after a panic.
pub struct RunFolder {
    folder: Option<TempDir>,
    /// Locked while this process is running.
    _owner: File,
}

impl RunFolder {
    /// Creates a folder and removes those of earlier runs.
    pub fn new() -> Result<Self> {
        remove_abandoned(&std::env::temp_dir());
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir().context("making a temporary folder")?;
        // Rename only after locking, so that no other run considers the folder abandoned.
        let unlocked = folder.path().join("owner.new");
        let owner = File::create(&unlocked)?;
        owner.lock()?;
        std::fs::rename(&unlocked, folder.path().join(OWNER))?;
        Ok(Self { folder: Some(folder), _owner: owner })
    }

    pub fn path(&self) -> &Path {
        self.folder.as_ref().map_or(Path::new(""), TempDir::path)
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        if let (true, Some(folder)) = (std::thread::panicking(), self.folder.take()) {
            let _ = folder.keep();
        }
    }
}

/// Best effort: ignores folders of other users and those that another run removes.
fn remove_abandoned(temporary: &Path) {
    for entry in std::fs::read_dir(temporary).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let Ok(owner) = File::open(entry.path().join(OWNER)) else {
            continue;
        };
        if owner.try_lock().is_ok() {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

//! The folder of one run: keys, certificates, data and logs.
//!
//! A run that ends without stopping its control plane (the usual case: it is shared and a static) leaves its folder,
//! which is what one wants to look at after a failure. The next run removes it, unless its owner still lives: an owner holds a lock
//! on a file in it, and the kernel lets go of that when a process ends.

use std::fs::File;
use std::path::Path;

use anyhow::{Context as _, Result};
use tempfile::TempDir;

const PREFIX: &str = "control-plane-";
const OWNER: &str = "owner";

/// A folder for this run, removed when dropped, except by a panic.
pub struct RunFolder {
    folder: Option<TempDir>,
    /// Locked as long as we live.
    _owner: File,
}

impl RunFolder {
    /// Makes a new folder and removes those that runs before left.
    pub fn new() -> Result<Self> {
        remove_abandoned(&std::env::temp_dir());
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir().context("making a temporary folder")?;
        // Gets its name when locked already, or another run could take the folder for abandoned.
        let unlocked = folder.path().join("owner.new");
        let owner = File::create(&unlocked)?;
        owner.lock()?;
        std::fs::rename(&unlocked, folder.path().join(OWNER))?;
        Ok(Self { folder: Some(folder), _owner: owner })
    }

    /// Where it is.
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

/// Best effort: what belongs to others or is being removed by another run does not concern us.
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

//! One layer of an image.

use std::path::Path;

use anyhow::Result;

use crate::archive::{Archive, Mode, gzip};
use crate::digest::digest;

/// One layer of the image.
pub(crate) struct Layer {
    /// As it is stored.
    pub(crate) compressed: Vec<u8>,
    uncompressed_digest: String,
}

impl Layer {
    /// One file with the folders above it.
    pub(crate) fn of_file(path: &str, content: &[u8], mode: Mode, created: i64) -> Result<Self> {
        let path = path.trim_start_matches('/');
        let mut folders: Vec<&Path> = Path::new(path).ancestors().skip(1).collect();
        folders.retain(|folder| !folder.as_os_str().is_empty());
        let mut archive = Archive::new(created)?;
        for folder in folders.iter().rev() {
            archive.folder(&folder.display().to_string())?;
        }
        archive.file(path, content, mode)?;
        Self::compressed(&archive.finish()?)
    }

    fn compressed(archive: &[u8]) -> Result<Self> {
        Ok(Self { compressed: gzip(archive)?, uncompressed_digest: format!("sha256:{}", digest(archive)) })
    }

    /// The digest of its archive before it was compressed.
    pub(crate) fn uncompressed_digest(&self) -> String {
        self.uncompressed_digest.clone()
    }
}

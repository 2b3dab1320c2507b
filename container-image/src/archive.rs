//! Files as an archive, without anything of the machine that writes it: they belong to root and have one time.

use anyhow::{Context as _, Result};
use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

/// Permissions of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Readable by everyone.
    Read = 0o644,
    /// Readable and executable by everyone.
    Execute = 0o755,
}

/// An archive that is being written.
pub struct Archive {
    builder: Builder<Vec<u8>>,
    created: u64,
}

impl Archive {
    /// An empty archive. `created` is the time of all files, in seconds since 1970.
    ///
    /// # Errors
    ///
    /// If the time is before 1970.
    pub fn new(created: i64) -> Result<Self> {
        let created = u64::try_from(created).context("the time of creation is before 1970")?;
        Ok(Self { builder: Builder::new(Vec::new()), created })
    }

    /// Adds a folder.
    ///
    /// # Errors
    ///
    /// If the path is too long.
    pub fn folder(&mut self, path: &str) -> Result<()> {
        self.append(&format!("{path}/"), &[], EntryType::Directory, Mode::Execute)
    }

    /// Adds a file.
    ///
    /// # Errors
    ///
    /// If the path is too long.
    pub fn file(&mut self, path: &str, content: &[u8], mode: Mode) -> Result<()> {
        self.append(path, content, EntryType::Regular, mode)
    }

    /// The whole archive, uncompressed.
    ///
    /// # Errors
    ///
    /// Never, as it is written to memory.
    pub fn finish(self) -> Result<Vec<u8>> {
        Ok(self.builder.into_inner()?)
    }

    fn append(&mut self, path: &str, content: &[u8], kind: EntryType, mode: Mode) -> Result<()> {
        let mut header = Header::new_ustar();
        header.set_entry_type(kind);
        header.set_mode(mode as u32);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(self.created);
        header.set_size(content.len().try_into()?);
        Ok(self.builder.append_data(&mut header, path, content)?)
    }
}

/// Compresses an archive. The header contains no name, time or operating system.
///
/// # Errors
///
/// Never, as it is written to memory.
pub fn gzip(content: &[u8]) -> Result<Vec<u8>> {
    let mut gzip = GzBuilder::new().operating_system(255).mtime(0).read(content, Compression::best());
    let mut compressed = Vec::new();
    std::io::copy(&mut gzip, &mut compressed)?;
    Ok(compressed)
}

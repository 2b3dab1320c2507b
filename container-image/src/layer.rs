//! Files as a compressed archive, without anything of the machine that writes it.

use std::path::Path;

use anyhow::{Context as _, Result};
use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

use crate::digest::digest;

/// Who may do what with a file; it belongs to root.
#[derive(Clone, Copy)]
pub(crate) enum Mode {
    /// Everybody reads it.
    Read = 0o644,
    /// Everybody reads and runs it, or goes through it.
    Execute = 0o755,
}

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
        let mut builder = Builder::new(Vec::new());
        for folder in folders.iter().rev() {
            append(
                &mut builder,
                &format!("{}/", folder.display()),
                &[],
                EntryType::Directory,
                (Mode::Execute, created),
            )?;
        }
        append(&mut builder, path, content, EntryType::Regular, (mode, created))?;
        Self::compressed(&builder.into_inner()?)
    }

    fn compressed(archive: &[u8]) -> Result<Self> {
        // Neither a name nor a time in the header, and no operating system either.
        let mut gzip = GzBuilder::new().operating_system(255).mtime(0).read(archive, Compression::best());
        let mut compressed = Vec::new();
        std::io::copy(&mut gzip, &mut compressed)?;
        Ok(Self { compressed, uncompressed_digest: format!("sha256:{}", digest(archive)) })
    }

    /// The digest of its archive before it was compressed.
    pub(crate) fn uncompressed_digest(&self) -> String {
        self.uncompressed_digest.clone()
    }
}

/// Adds a file or a folder of root.
pub(crate) fn append(
    builder: &mut Builder<Vec<u8>>,
    path: &str,
    content: &[u8],
    kind: EntryType,
    (mode, created): (Mode, i64),
) -> Result<()> {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(mode as u32);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(u64::try_from(created).context("the time of creation is before 1970")?);
    header.set_size(content.len().try_into()?);
    Ok(builder.append_data(&mut header, path, content)?)
}

//! Atomic file writes.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::Context;

/// Writes a temporary file next to the target and renames it, so that readers get either the old content or the new.
///
/// # Errors
/// If the file cannot be written, with its name. The old content is kept.
pub(super) fn write_whole(path: &Path, text: &str) -> anyhow::Result<()> {
    write_whole_by(path, |file| file.write_all(text.as_bytes()))
}

/// Same as [`write_whole`], for content that `write` produces in pieces.
///
/// # Errors
/// As [`write_whole`].
pub(super) fn write_whole_by(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> anyhow::Result<()> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let beside = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let put = || {
        let mut file = BufWriter::new(File::create(&beside)?);
        write(&mut file)?;
        file.into_inner()?.sync_all()?;
        fs::rename(&beside, path)
    };
    put()
        .inspect_err(|_| drop(fs::remove_file(&beside)))
        .with_context(|| format!("{}: can't be written", path.display()))
}

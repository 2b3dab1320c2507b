//! Reads files from outside with a size limit, so that they fit into memory.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, ensure};

/// Reads a text file of at most `most` bytes, or standard input for `-`. Checks the size of the file first, if it has
/// one, and the number of bytes while reading.
///
/// # Errors
/// If the file can't be read or is too large.
pub(crate) fn text_of_at_most(path: &Path, most: u64) -> anyhow::Result<String> {
    let name = || path.display().to_string();
    let is_stdin = path.as_os_str() == "-";
    let size = if is_stdin { 0 } else { std::fs::metadata(path).map_or(0, |metadata| metadata.len()) };
    let limit = most >> 20;
    ensure!(size <= most, "{}: {} MiB are more than the {limit} MiB that are read of a file", name(), size >> 20);
    let mut text = String::new();
    let read = if is_stdin {
        std::io::stdin().lock().take(most + 1).read_to_string(&mut text)
    } else {
        File::open(path).and_then(|file| file.take(most + 1).read_to_string(&mut text))
    };
    read.with_context(|| format!("{}: can't be read", name()))?;
    ensure!(text.len() as u64 <= most, "{}: more than the {limit} MiB that are read of a file", name());
    Ok(text)
}

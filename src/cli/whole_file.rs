//! Files that are written as a whole or not at all.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use anyhow::Context;

/// Writes a file beside its place first, then into it: whoever reads it gets the text before or this one.
///
/// # Errors
/// When it can't be written, with its name; what was there stays.
pub(super) fn write_whole(path: &Path, text: &str) -> anyhow::Result<()> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let beside = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let write = || {
        let mut file = File::create(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    write()
        .inspect_err(|_| drop(fs::remove_file(&beside)))
        .with_context(|| format!("{}: can't be written", path.display()))
}

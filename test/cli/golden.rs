//! Compares text with a stored file. With `UPDATE_GOLDEN`, writes the file instead.

use std::path::PathBuf;

/// Fails with the first different line.
#[track_caller]
pub(crate) fn assert_same(file: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    if kept == text {
        return;
    }
    let first = kept.lines().zip(text.lines()).position(|(kept, new)| kept != new);
    let line = first.unwrap_or_else(|| kept.lines().count().min(text.lines().count()));
    panic!(
        "{file} is stale at line {}:\n  kept: {:?}\n  now:  {:?}\nMake it again with: UPDATE_GOLDEN=1 cargo test --test cli",
        line + 1,
        kept.lines().nth(line),
        text.lines().nth(line),
    );
}

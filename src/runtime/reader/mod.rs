//! Reads all user input: files, folders and standard input. Every command and controller reads through this module, so
//! that all accept and reject the same formats.
//!
//! * [`files`]: expands paths to files.
//! * `text`: decodes bounded files: UTF-8, UTF-16, gzip.
//! * [`objects`]: extracts objects from lists, bundles, and items without a kind.
//! * `index`: finds objects by namespace and kind.

pub mod files;
pub mod index;
pub mod objects;
pub(crate) mod text;

/// An input that the answer does not cover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The file, or the object in it.
    pub input: String,
    /// Why it was not read or evaluated.
    pub reason: String,
}

//! Reads everything that a person hands in: files, folders and standard input. Every command and controller reads through this room,
//! so that all of them accept the same forms and refuse the same ones.
//!
//! * [`files`]: which files a path names;
//! * [`text`]: the bytes of a file as text: plain, UTF-16 or gzip, with a bound;
//! * [`objects`]: the documents of a text as objects: lists, bundles, items that don't name their kind;
//! * [`index`]: objects by namespace and kind.

pub mod files;
pub(crate) mod index;
pub mod objects;
pub(crate) mod text;

/// An input that the answer doesn't cover, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The file, or the object in it.
    pub input: String,
    /// Why it was not read or not evaluated.
    pub reason: String,
}

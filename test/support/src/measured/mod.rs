//! Cases measured from the Go extensions.
//!
//! ```text
//! cases         the cases of a folder, in each form
//! edits         a case as another one with edits
//! convert       from folders of cases to the files of families, written by print
//! compare       what differs between a measured result and ours
//! images        images of two provider statuses as sets
//! deliberate    which differences are deliberate, as rules
//! report        what is printed of all that
//! ```

pub mod cases;
pub mod compare;
pub mod convert;
pub mod deliberate;
pub mod edits;
pub mod images;
mod print;
pub mod report;

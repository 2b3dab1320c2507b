//! Cases measured from the Go extensions.
//!
//! ```text
//! cases         reads the cases of a folder, in all forms
//! edits         expresses a case as edits of another
//! convert       converts folders of cases to family files, written by print
//! compare       compares a measured result with ours
//! images        compares images of two provider statuses as sets
//! deliberate    rules for deliberate differences
//! report        prints the result
//! ```

pub mod cases;
pub mod compare;
pub mod convert;
pub mod deliberate;
pub mod edits;
pub mod images;
mod print;
pub mod report;

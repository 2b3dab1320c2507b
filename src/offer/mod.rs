//! CloudProfiles for the people who keep them: what they offer, what is wrong with them, and how they could be written.
//!
//! ```text
//!  CloudProfile ─► Offer ─► Resolution ──┬─► matrix     who gets which image
//!  (both halves)   (typed)  (everything  ├─► lint       what will not work, or not for long
//!                            × everything)├─► convert    old format ⇄ capabilities, with a check
//!                                        └─► minimize   the same in fewer bytes, with a check
//! ```
//!
//! * [`profile`]: the document and its typed halves; [`offered`]: machine types, image versions and flavors of both;
//! * [`resolution`]: the image that every machine type gets of every version in every region;
//! * [`selection`], [`matrix`]: the part of it that was asked for;
//! * [`mod@lint`]: what is wrong with a profile, or will be;
//! * [`convert`]: from the old format to capabilities and back; [`minimize`]: the same in fewer bytes;
//! * [`equivalence`]: whether two profiles give the same machine types the same images; [`diff`]: what an edit does to those who use it;
//! * `merged`: a NamespacedCloudProfile with its parent;
//! * `document`: the parts of the document that change; `suffix`: what version suffixes stand for.

pub mod convert;
pub mod diff;
mod document;
pub mod equivalence;
pub mod lint;
pub mod matrix;
mod merged;
pub mod minimize;
pub mod offered;
pub mod profile;
pub mod resolution;
pub mod selection;
mod suffix;

pub use merged::merged;
pub use offered::Offer;
pub use profile::{Profile, ProfileError};
pub use resolution::Resolution;

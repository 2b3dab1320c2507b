//! Analyzes CloudProfiles for the people who maintain them: which images they offer, what is wrong with them, and how
//! else they can be written.
//!
//! ```text
//!  CloudProfile ─► Offer ─► Resolution ──┬─► matrix     which machine types get which image
//!  (both halves)   (typed)  (all choices)├─► lint       what fails now or will fail soon
//!                                        ├─► convert    old format ⇄ capabilities, verified
//!                                        └─► minimize   the same profile in fewer bytes, verified
//! ```
//!
//! * [`profile`]: the document and its typed halves; [`selectable`]: machine types, image versions and flavors of both;
//! * [`resolution`]: the image that every machine type gets for every version in every region;
//! * [`selection`], [`matrix`]: the part of the resolution that the user selects; [`matrix_text`]: from text to text;
//! * [`mod@lint`]: errors in a profile, and failures to expect;
//! * [`convert`]: converts from the old format to capabilities and back; [`minimize`]: removes redundant parts;
//! * [`equivalence`]: whether two profiles give the same machine types the same images; [`diff`]: the effects of an
//!   edit on the users of a profile, with [`capability_change`]; [`capability_removal`]: what depends on a capability;
//! * `merged`: merges a NamespacedCloudProfile with its parent;
//! * `document`: access to the parts of the document that change; `suffix`: the meaning of version suffixes.

pub mod capability_change;
pub mod capability_removal;
pub mod convert;
pub mod diff;
mod document;
pub mod equivalence;
pub mod lint;
pub mod matrix;
pub mod matrix_text;
mod merged;
pub mod minimize;
pub mod new_types;
pub mod profile;
pub mod resolution;
pub mod selectable;
pub mod selection;
mod suffix;

pub use merged::merged;
pub use profile::{Profile, ProfileError};
pub use resolution::Resolution;
pub use selectable::ResolvedProfile;

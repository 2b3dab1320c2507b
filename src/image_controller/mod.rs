//! Keeps the objects for machine images (docs/images.md#objects), off by default: `controller --images`.
//!
//! ```text
//!  watches ─► stores ─┐
//!                     ├─► decide in full (`images::objects`) ─► write what differs ─► again, until nothing does
//!  files ─► sources ──┤
//!  EC2 ───► live ─────┘
//! ```
//!
//! Each write names the version that it was decided from, so of two writers one loses and decides anew by what the other one
//! has written.

mod arguments;
#[cfg(test)]
mod definitions;
mod events;
mod live;
pub(crate) mod metrics;
mod round;
mod run;
mod sources;
mod stores;
mod writes;

pub(crate) use arguments::ImageArguments;
pub(crate) use run::run;

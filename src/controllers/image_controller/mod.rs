//! Maintains the objects for machine images (docs/images.md#objects). Off by default: `controller --images`.
//!
//! ```text
//!  watches ─► stores ─┐
//!                     ├─► full decision (`images::objects`) ─► write the differences ─► repeat until there are none
//!  files ─► sources ──┤
//!  EC2 ───► live ─────┘
//! ```
//!
//! Each write carries the resource version that the decision was based on. Of two writers, one gets a conflict and
//! decides again with the data of the other one.

mod arguments;
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

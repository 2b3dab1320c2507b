//! CloudProfiles, versions, images and Shoots as Gardener interprets them. Nothing here knows a client, a runtime or a clock.
//!
//! * [`cloud_profile`]: CloudProfiles as Gardener interprets them;
//! * [`versions`]: updates of a Shoot's versions in its maintenance windows;
//! * [`shoot`]: renders a Shoot to the Worker that gardenlet writes;
//! * [`resolved_profile`]: the images a CloudProfile offers, problems in it, and equivalent ways to write it;
//! * [`images`]: images by flavor: existing, used and locked ones.

pub mod cloud_profile;
pub mod images;
pub mod resolved_profile;
pub mod shoot;
pub mod versions;

//! Kinds of `extensions.gardener.cloud` and `core.gardener.cloud` from which machines are planned.

mod capability;
mod cloud_profile;
mod cluster;
mod error_code;
mod profile;
mod profile_versions;
mod shoot;
mod shoot_pools;
mod shoot_state;
mod versioned_shoot;
mod worker;

pub use capability::*;
pub use cloud_profile::*;
pub use cluster::*;
pub use error_code::*;
pub use profile::*;
pub use profile_versions::*;
pub use shoot::*;
pub use shoot_pools::*;
pub use shoot_state::*;
pub use versioned_shoot::*;
pub use worker::*;

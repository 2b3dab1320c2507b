//! Shoots as a cluster has them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::pairs::{Key, Loaded};
use crate::preview::NamedProfiles;

/// The Shoots that a cluster has.
pub(super) struct Stored {
    pub(super) shoots: BTreeMap<Key, Loaded>,
    /// Those of which something is missing or can't be decoded, with what that is.
    pub(super) unreadable: Vec<(Key, String)>,
    /// The profiles that they name.
    pub(super) profiles: NamedProfiles,
}

/// Namespace and name of a Shoot.
pub(super) fn key_of(shoot: &Value) -> Key {
    let text = |member: &str| shoot["metadata"][member].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}

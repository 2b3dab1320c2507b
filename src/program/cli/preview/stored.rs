//! Shoots stored in a cluster.

use std::collections::BTreeMap;

use serde_json::Value;

use super::pairs::{Key, Loaded};
use explanations::preview::NamedProfiles;

/// The Shoots found in a cluster.
pub(super) struct Stored {
    pub(super) shoots: BTreeMap<Key, Loaded>,
    /// Shoots that are incomplete or cannot be decoded, with the reason.
    pub(super) unreadable: Vec<(Key, String)>,
    /// The profiles that the Shoots reference.
    pub(super) profiles: NamedProfiles,
}

pub(super) fn key_of(shoot: &Value) -> Key {
    let text = |member: &str| shoot["metadata"][member].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}

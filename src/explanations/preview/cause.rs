//! A changed input that causes an effect on a placement.

use serde::{Deserialize, Serialize};

use super::difference::Change;
use super::rule::Effect;

/// A changed input and its effect on a placement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cause {
    /// The change.
    pub change: Change,
    /// Its effect on top of all other changes, or its effect alone if the new inputs without it can't be planned.
    pub effect: Effect,
    /// Whether only several changes together have the effect.
    pub joint: bool,
}

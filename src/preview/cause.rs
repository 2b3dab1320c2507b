//! A changed input that is to blame for what becomes of a placement.

use serde::{Deserialize, Serialize};

use super::difference::Change;
use super::rule::Effect;

/// A changed input and what it does to a placement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cause {
    /// The change.
    pub change: Change,
    /// What it does on top of all other changes; where that can't be planned, what it does alone.
    pub effect: Effect,
    /// Whether only several changes together have the effect.
    pub joint: bool,
}

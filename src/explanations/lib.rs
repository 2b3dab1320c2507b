//! Answers questions about Workers from objects alone. Nothing here knows a client, a runtime or a clock.
//!
//! * [`explain`]: explains a plan to users;
//! * [`preview`]: predicts the effect of a change and its cause;
//! * [`diagnose`]: finds out from existing objects why a Worker is not ready.

pub mod diagnose;
pub mod explain;
pub mod preview;

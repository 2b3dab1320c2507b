//! The controllers. Only they combine decisions with input and output of a cluster.
//!
//! * [`controller`]: reconciles Workers;
//! * [`image_controller`]: maintains objects for machine images.

#![allow(missing_docs, reason = "only this workspace uses it; what is not obvious is documented")]

pub mod controller;
pub mod image_controller;

//! The road of a Worker, one file per step, in this order:
//!
//! ```text
//!  operation  pure  what the object asks for: start, go on, nothing
//!  observe    I/O   Cluster, Secrets and live machine objects     → Observed
//!  decode     pure  Worker + Cluster + Secrets                    → WorkerContext
//!  dependencies I/O WorkerContext, and a cloud                    → Dependencies, part of the WorkerContext from here on
//!  plan       pure  WorkerContext                                 → Plan: a PoolPlan or a PoolError for each pool
//!  changes    pure  Plan + Observed                               → Changes: only what differs (class_inputs: for `why`)
//!  apply      I/O   Changes                                       → Applied
//!  progress   pure  Applied + live machine sets and machines      → Progress: what is waited for
//!  cleanup    pure  Plan + Observed + Progress                    → Garbage: what nothing needs any more
//!  conditions pure  Plan + Applied + Progress                     → facts that people and gardenlet ask about
//!  report     pure  all of it                                     → status
//! ```
//!
//! [`reconcile`] is the list of these calls; [`delete`] is the other operation. A shoot that has moved to this seed is
//! reconciled too, after [`restore`] has brought its machines back (from [`machine_state`], by way of the [`garden`] if need
//! be); for one that moves away there is nothing to do but to let the Worker go ([`operation`]). Nothing sleeps: a pass looks, writes what
//! differs and returns, and watches on the machine objects bring it back.

pub mod apply;
pub mod changes;
pub mod class_inputs;
pub mod cleanup;
pub mod conditions;
pub mod decode;
pub mod delete;
mod deletion;
pub mod dependencies;
pub mod deployment;
pub mod difference;
pub mod differs;
pub mod digest;
pub mod force_deletion;
pub mod garden;
pub mod in_place;
pub mod known_clusters;
pub mod known_secrets;
pub mod live;
pub mod machine_apis;
pub mod machine_controller;
pub mod machine_state;
pub mod mirror;
pub mod needed_classes;
pub mod observe;
pub mod operation;
pub mod outcome;
pub mod place;
pub mod plan;
pub mod progress;
pub mod proxy;
pub mod reconcile;
pub mod remaining;
mod repair;
pub mod report;
pub mod restore;
pub mod roll;
pub mod transitions;

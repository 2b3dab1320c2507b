//! Decisions about one Worker, one folder per stage and one file per step. All are pure: the `controllers` crate reads
//! objects, calls these steps and writes the results.
//!
//! * [`request`]: what is requested, and its inputs;
//! * [`plan`]: which objects are desired, which of them differ, and which machines are replaced;
//! * [`machines`]: how far the machines are;
//! * [`status`]: what the Worker's status reports;
//! * [`deletion`]: what a deletion waits for.
//!
//! ```text
//!  request          Worker                                   → the requested operation: start, continue, none
//!  reconcile_state  request and events                       → state of the reconcile
//!  decode           Worker + Cluster + Secrets               → WorkerContext
//!  desired          WorkerContext                            → DesiredState: a plan or an error for each pool (plan)
//!                   DesiredState + MachineObjects            → Drift: changes, orphans, whether the status is current
//!  rolls            changes + MachineObjects                 → pools whose machines are replaced, and why (class_inputs)
//!  progress         plan + MachineObjects after the writes   → progress of the machines
//!  conditions       plan + progress + failed writes          → conditions
//!  every_node_ready machine deployments                      → a condition, unless another controller owns it
//!  node_count       nodes of the shoot + machine deployments → the same condition, with --health-check
//!  class_images     plan + MachineObjects                    → images of the classes, and a condition
//!  rolls_as_planned rolls + planned_rolls of an annotation    → a condition, if rolls were saved
//!  events           previous conditions + progress           → events to publish
//!  outcome          all of it                                → Succeeded, Waiting or Failed, and when to requeue
//!  status           outcome, conditions, bounds              → patch of the status
//! ```
//!
//! The machines of a migrated shoot are restored from [`machines::machine_state`]. [`request::steady`] handles Workers
//! without a requested operation.

pub mod deletion;
pub mod machines;
pub mod plan;
pub mod request;
pub mod status;

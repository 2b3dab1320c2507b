//! Decisions about one Worker, one file per step. All are pure: the `controller` room reads objects, calls these steps
//! and writes the results.
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
//!  versions_current forecast of the shoot's versions          → a condition
//!  events           previous conditions + progress           → events to publish
//!  outcome          all of it                                → Succeeded, Waiting or Failed, and when to requeue
//!  status           outcome, conditions, bounds              → patch of the status
//! ```
//!
//! Deletions use [`deletion_prerequisites`] and [`pending_deletion`]. The machines of a migrated shoot are restored
//! from [`machine_state`]. [`steady`] handles Workers without a requested operation.

pub mod changes;
pub mod class_images;
pub mod class_inputs;
pub mod conditions;
pub mod decode;
pub mod deletion_prerequisites;
pub mod deployment;
pub mod desired;
pub mod difference;
pub mod digest;
pub mod events;
pub mod every_node_ready;
pub mod live_machine;
pub mod machine_objects;
pub mod machine_state;
pub mod node_count;
pub mod orphans;
pub mod other_workers;
pub mod outcome;
pub mod pending_deletion;
pub mod plan;
pub mod planned_rolls;
pub mod pool_readiness;
pub mod progress;
pub mod published;
pub mod reconcile_outcome;
pub mod reconcile_state;
pub mod request;
pub mod rolls;
pub mod rolls_as_planned;
pub mod status;
pub mod status_text;
pub mod steady;

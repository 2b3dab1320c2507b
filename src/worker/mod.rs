//! The decisions about one Worker, one file per step. All of them are pure: `controller` reads, calls them and writes.
//!
//! ```text
//!  request          Worker                                   → what is requested: begin, continue, nothing
//!  reconcile_state  request and what happens                 → where a reconcile stands
//!  decode           Worker + Cluster + Secrets               → WorkerContext
//!  desired          WorkerContext                            → DesiredState: a plan or an error for each pool (plan)
//!                   DesiredState + MachineObjects            → Drift: changes, orphans, whether the status is current
//!  rolls            changes + MachineObjects                 → whose machines are replaced, and why (class_inputs)
//!  progress         plan + MachineObjects after the writes   → what the machines are waited for
//!  conditions       plan + progress + failed writes          → conditions
//!  every_node_ready machine deployments                      → a condition, unless somebody else has written it
//!  node_count       nodes of the shoot + machine deployments → the same condition, with --health-check
//!  class_images     plan + MachineObjects                    → which image a class was made with, and a condition
//!  rolls_as_planned rolls + planned_rolls of an annotation    → a condition, where rolls were saved
//!  versions_current what is known of the shoot's versions     → a condition
//!  events           conditions before + progress             → what events are published about
//!  outcome          all of it                                → Succeeded, Waiting or Failed, and when to requeue
//!  status           outcome, conditions, bounds              → the patch of the status
//! ```
//!
//! A deletion goes by [`deletion_prerequisites`] and [`pending_deletion`]; the machines of a shoot that moves come back from
//! [`machine_state`]; [`steady`] decides over Workers of which nothing is requested.

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
pub mod versions_current;

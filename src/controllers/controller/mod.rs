//! Reconciles Workers: the only room where decisions and cluster meet.
//!
//! ```text
//!  watches ─► run ─► queue ─► reconcile ─┬─► steady           no operation: only follows the machines
//!                              │         ├─► deploy, delete   the steps of an operation
//!                              ▼         └─► report           metrics, events, status, requeue
//!                     reconcile_context: the Worker and the state of its operation
//! ```

pub(crate) mod apply;
pub(crate) mod arguments;
pub(crate) mod backoff;
pub(crate) mod clean_up;
pub(crate) mod context;
pub(crate) mod delete;
pub(crate) mod delete_objects;
pub(crate) mod dependencies;
pub(crate) mod deploy;
pub(crate) mod dry_run;
pub(crate) mod error;
pub(crate) mod events;
pub(crate) mod force_deletion;
pub(crate) mod gauges;
pub(crate) mod handover;
#[cfg(test)]
#[path = "../../../test/charts/incidents.rs"]
mod incidents;
pub(crate) mod machine_controller_manager;
pub(crate) mod memory;
pub mod metrics;
mod node_counts;
pub(crate) mod queue;
pub(crate) mod rate_limit;
pub(crate) mod reconcile;
pub(crate) mod reconcile_context;
pub(crate) mod reconcile_metrics;
pub(crate) mod repair;
pub(crate) mod report;
pub(crate) mod restore;
pub(crate) mod result;
pub(crate) mod run;
pub mod served;
pub(crate) mod sharding;
pub mod start;
pub(crate) mod status_writes;
pub(crate) mod steady;
#[cfg(test)]
pub(crate) mod test_seed;
#[cfg(test)]
pub(crate) mod test_support;
#[cfg(test)]
mod two_workers;
pub(crate) mod undecodable;
pub(crate) mod version_forecast;
pub(crate) mod version_metrics;

pub use arguments::ControllerArguments;

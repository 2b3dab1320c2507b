//! Reconciles Workers: the only room where decisions and cluster meet. The folders are the way of a Worker.
//!
//! ```text
//!  watches ─► run ─► queue ─► reconcile ─┬─► steady           no operation: only follows the machines
//!                              │         ├─► deploy, deletion the steps of an operation
//!                              ▼         └─► report           metrics, events, status, requeue
//!                     reconcile_context: the Worker and the state of its operation
//! ```
//!
//! * [`run`]: start and stop of the controller, which Workers it serves, what it keeps in memory for each;
//! * [`queue`]: which Worker is reconciled when;
//! * [`reconcile`]: the steps of one reconcile;
//! * [`deletion`]: the steps that delete a Worker;
//! * [`report`]: status, conditions, events, metrics.

pub mod deletion;
pub mod queue;
pub mod reconcile;
pub mod report;
pub mod run;

#[cfg(test)]
#[path = "../../../test/charts/incidents.rs"]
mod incidents;
#[cfg(test)]
pub(crate) mod test_seed;
#[cfg(test)]
pub(crate) mod test_support;
#[cfg(test)]
mod two_workers;

pub use run::arguments::ControllerArguments;

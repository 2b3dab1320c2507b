//! Previews the effect of changed inputs on machines, and finds the inputs that cause it. Pure, without I/O.
//!
//! ```text
//!  old inputs ──► plan ──► objects ─┐
//!                                   ├─ rule: machine-controller-manager's comparison ─► a verdict per pool and zone
//!  new inputs ──► plan ──► objects ─┘                                                   nodes, surge, hazards
//!      │
//!      └─ difference: every changed input ──► trials: what if it had not changed? ─► the causes of each verdict
//! ```
//!
//! * `inputs`, `cloud_profile`: the inputs of a plan, as documents; CloudProfiles are shared by content;
//! * `named_profiles`: the CloudProfiles that Shoots refer to;
//! * `maintenance`: the inputs after the next maintenance window;
//! * `shoot_source`: the inputs derived from a Shoot, as gardenlet would write them;
//! * `presumption`: assumptions about values that a Shoot omits; `refusals`: the reasons for which the garden rejects it;
//! * `rendered_pools`, `placement`: the rendered objects of a plan, by placement;
//! * `rule`: the changes for which machine-controller-manager replaces or updates machines;
//! * `difference`: the difference of two documents, as named changes that can be applied one by one;
//! * `trials`, `cause`: which of these changes cause an effect;
//! * `surge`, `finding`: the pace of a roll and its hazards; `capacity`, `machine_size`: whether its machines fit the
//!   cloud's limits; `budget_effect`, `held_rolls`: which rolls a budget holds;
//! * [`compare()`], `placement_change`: the whole comparison of one Worker;
//! * `dry_run`: the writes of a reconcile, for a controller that only watches.

mod budget_effect;
mod capacity;
mod cause;
mod cloud_profile;
mod compare;
mod difference;
pub mod dry_run;
mod durations;
mod finding;
mod held_rolls;
mod inputs;
mod machine_size;
mod maintenance;
mod named_profiles;
mod placement;
mod placement_change;
mod presumption;
mod refusals;
mod rendered_pools;
mod rule;
mod shoot_source;
mod surge;
mod trials;

pub use budget_effect::BudgetEffect;
pub use capacity::{Limit, LimitUnit, LimitedTypes, evaluate_capacity};
pub use cause::Cause;
pub use cloud_profile::CloudProfiles;
pub use cloud_profile::SharedCloudProfile;
pub use compare::{Baseline, WorkerChange, compare};
pub use difference::{Change, ChangeKind, ChangedObject, Path, Step};
pub use durations::{duration_text, estimate_between, estimate_text};
pub use finding::{Finding, FindingKind, Severity};
pub use held_rolls::hold_rolls;
pub use inputs::{ExistingWorker, Inputs, ShootSource};
pub use machine_size::MachineSize;
pub use maintenance::{Maintained, NoMaintenance, after_next_window};
pub use named_profiles::NamedProfiles;
pub use placement_change::{Nodes, PlacementChange};
pub use presumption::Assumption;
pub use rendered_pools::{Failure, worker_context};
pub use rule::{Effect, Verdict};
pub use shoot_source::technical_id;
pub use surge::{Pace, SurgePlan};

//! Computes how maintenance windows change the versions of a shoot: Kubernetes of the control plane and of pools, and
//! machine images. docs/versions.md describes the rules; the tests `maintenance` and `vectors` compare them with
//! Gardener.
//!
//! ```text
//!  CloudProfile ─► catalog ─┐
//!                           ├─► candidates ─► target ─┐
//!  Shoot ───────────────────┘                         ├─► maintenance ─► history ─► forecast
//!         window ─► time    kubernetes_settings, garden, update_rules: other changes
//! ```
//!
//! * [`catalog`]: the versions of a profile with their lifetimes; [`candidates`]: those that fit a pool;
//! * [`target`]: the target version of an update, automatic or forced;
//! * [`window`]: the time of maintenance; [`maintenance`]: one run; [`run`]: its result; [`texts`]: Gardener's messages
//!   about it; [`history`]: many runs; [`forecast`]: their result;
//! * [`still_on`]: who still runs a version at a time, and why;
//! * [`notices`]: advance notices for users; [`declined_updates`]: newer images that owners opted out of; [`expirations`]: new notices when a profile changes;
//! * [`kubernetes_settings`], [`garden`]: settings that an update removes from a Shoot; [`update_rules`]: updates that
//!   the API server rejects; [`write_rules`]: Shoots of users that it rejects;
//! * [`selectable`]: the versions that new pools can select; [`shoot_defaults`]: the defaults for versions that a Shoot
//!   omits; [`measured_kubernetes`]: versions that are newer than the measured Gardener supports.
//!
//! Pure: the time is an argument.

pub mod candidates;
pub mod catalog;
pub mod current;
pub mod declined_updates;
pub mod expirations;
pub mod forecast;
pub mod garden;
pub mod history;
pub mod kubernetes_settings;
pub mod maintenance;
pub mod measured_kubernetes;
pub mod notices;
pub mod run;
pub mod selectable;
pub mod shoot_defaults;
pub mod still_on;
pub mod target;
pub mod texts;
pub mod update_rules;
pub mod window;
pub mod write_rules;

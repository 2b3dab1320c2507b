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
//! * [`catalog`]: the versions of a profile with their stages; [`candidates`]: those that fit a pool;
//! * [`target`]: the target of an automatic or forced update;
//! * [`window`]: the maintenance window; [`maintenance`]: one run; [`run`]: its result; [`texts`]: what Gardener writes
//!   about it; [`history`]: many runs; [`forecast`]: the outcome of future runs;
//! * [`notices`]: warnings about future forced updates; [`expirations`]: compares expirations when a profile changes;
//! * [`kubernetes_settings`], [`garden`]: what an update removes from a Shoot; [`update_rules`]: updates that the API
//!   server rejects;
//! * [`selectable`]: the versions that new pools can select; [`shoot_defaults`]: the defaults of a Shoot without
//!   versions.
//!
//! Pure: the time is an argument.

pub mod candidates;
pub mod catalog;
pub mod expirations;
pub mod forecast;
pub mod garden;
pub mod history;
pub mod kubernetes_settings;
pub mod maintenance;
pub mod notices;
pub mod run;
pub mod selectable;
pub mod shoot_defaults;
pub mod target;
pub mod texts;
pub mod update_rules;
pub mod window;

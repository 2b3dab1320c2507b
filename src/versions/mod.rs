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
//! * [`catalog`]: the versions of a profile with their lives; [`candidates`]: those that fit a pool;
//! * [`target`]: where an update goes, automatic or forced;
//! * [`window`]: when; [`maintenance`]: one run; [`run`]: what it did; [`texts`]: what Gardener writes about it; [`history`]: many runs;
//!   [`forecast`]: what comes of them;
//! * [`notices`]: what of it people should know in advance; [`expirations`]: what is new of it when a profile changes;
//! * [`kubernetes_settings`], [`garden`]: what an update takes out of a Shoot; [`update_rules`]: what is refused of it,
//!   [`write_rules`]: what is refused of a Shoot that a person writes;
//! * [`selectable`]: which versions new pools can select; [`shoot_defaults`]: what a Shoot gets that leaves versions open.
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
pub mod write_rules;

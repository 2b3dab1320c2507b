//! Our side against Gardener's own code (v1.150.0, built from `test/control-plane/gardener`):
//! `cargo test --test garden`.
//!
//! ```text
//! stage                gardens with Gardener's API server and controller-manager, with our webhooks and without
//! profiles             a garden accepts the examples and the output of `convert` and `minimize`
//! broken               a garden refuses exactly what `lint` reports as refused
//! namespaced           NamespacedCloudProfiles, merged by Gardener's controller
//! translation          from Shoot to Worker by gardenlet's component: which edits roll
//! maintenance          Gardener's maintenance of a Shoot against our forecast
//! project, shoots      Shoots of a project: responses to users, and maintenance alongside our webhooks
//! installation         from `example/landscape` to the objects applied on a seed, by gardener-operator and gardenlet
//! takeover             `takeover plan`, forward and back, next to a registration of the Go extension
//! worker_client        gardenlet's client for Workers against our controller
//! ```

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test may end where its own input is not what it expects"
)]

mod broken;
mod installation;
mod maintenance;
mod namespaced;
mod profiles;
mod project;
mod shoots;
mod stage;
mod takeover;
mod translation;
#[path = "../properties/version_worlds.rs"]
mod version_worlds;
mod worker_client;

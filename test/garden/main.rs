//! Our side against Gardener's own code (v1.150.0, built from `test/control-plane/gardener`): `cargo test --test garden`.
//!
//! ```text
//! stage                gardens with Gardener's API server and controller-manager, with our webhooks and without
//! profiles             what a garden takes: examples, what `convert` and `minimize` write
//! broken               what a garden refuses is what `lint` calls refused
//! namespaced           NamespacedCloudProfiles, merged by Gardener's controller
//! translation          from Shoot to Worker by gardenlet's component: which edits roll
//! maintenance          what Gardener's maintenance does to a Shoot, and what the forecast says
//! project, shoots      Shoots of a project: what people are answered, and what maintenance does beside our webhooks
//! installation         from `example/landscape` to what is applied on a seed, by gardener-operator's and gardenlet's code
//! takeover             `takeover plan`, there and back, next to a registration of the Go extension
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

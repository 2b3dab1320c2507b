//! A Gardener provider extension that owns the `Worker` resource: it turns a Worker and its Cluster into machine classes
//! and machine deployments, and follows the machines until they are ready.
//!
//! ```text
//!  Worker + Cluster + Secrets + live objects
//!         │  decode: strict, with the path of what is wrong
//!         ▼
//!  Plan: for each pool a PoolPlan or a PoolError        (pure: no clock, no client)
//!         │                         │
//!         │ apply: only what differs │ render · explain · why (cli, the same Plan, no cluster)
//!         ▼                         ▼
//!  cluster objects            a person's terminal
//!         │  progress: pure fold over watched objects
//!         ▼
//!  Worker.status, events
//! ```
//!
//! The rooms in the order of the data; each uses only those above it:
//!
//! * [`api`]: objects on the wire;
//! * [`capabilities`]: which image flavor fits a machine, and which fits best (GEP-33);
//! * [`cloud_profile`]: CloudProfiles as Gardener itself treats them;
//! * [`versions`]: what becomes of the versions of a shoot in its maintenance windows;
//! * [`pool`]: zones, hash, names, settings;
//! * [`shoot`]: from a Shoot to the Worker that gardenlet writes;
//! * [`provider`]: the seam, and one folder per provider;
//! * [`offer`]: what a CloudProfile offers, what is wrong with it, how it could be written;
//! * [`images`]: images by flavor: which there are, which is used, what is locked;
//! * [`worker`]: the decisions about one Worker, all of them pure;
//! * [`cloud`]: clients of clouds, for what pools depend on there;
//! * [`explain`]: a plan for people;
//! * [`preview`]: what a change does before it happens, and why;
//! * [`diagnose`]: why a Worker is not ready, from its objects as they are;
//! * `process`: logs, traces, endpoints, leader election;
//! * `reader`: everything that a person hands in: files, folders, standard input;
//! * `cluster`: clients, watches, the store, reads and writes;
//! * `webhook`: the server of admission reviews, its certificate and registration;
//! * `image_controller`: keeps objects for machine images;
//! * `controller`: reconciles Workers: the only place where decisions and cluster meet;
//! * [`admission`]: webhooks of the garden;
//! * [`sidecar`]: the webhook of a seed that completes machine-controller-manager;
//! * [`cli`]: what a person types;
//! * `fuzzing`: what fuzz targets reach of private rooms, only with that feature;
//! * `simulation`: the controller with an API server of a test, only with that feature.

//!
//! Another crate that brings a provider builds on [`api`], [`capabilities`], [`pool`], [`provider`], [`cloud`] with what its trait
//! names of [`worker`], and starts with [`cli`]: these follow semantic versioning. The other rooms are public for the tests and
//! tools of this repository, are left out of the documentation, and may change with any version.

#[doc(hidden)]
pub mod admission;
pub mod api;
pub mod capabilities;
pub mod cli;
pub mod cloud;
#[doc(hidden)]
pub mod cloud_profile;
pub(crate) mod cluster;
pub(crate) mod controller;
#[doc(hidden)]
pub mod diagnose;
#[doc(hidden)]
pub mod explain;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub(crate) mod image_controller;
#[doc(hidden)]
pub mod images;
#[doc(hidden)]
pub mod offer;
pub mod pool;
#[doc(hidden)]
pub mod preview;
pub(crate) mod process;
pub mod provider;
#[doc(hidden)]
pub mod reader;
#[doc(hidden)]
pub mod shoot;
#[doc(hidden)]
pub mod sidecar;
#[cfg(feature = "simulation")]
#[doc(hidden)]
pub mod simulation;
#[doc(hidden)]
pub mod versions;
pub(crate) mod webhook;
pub mod worker;

/// How property tests run: what has failed once is kept beside the other tests, and tried first.
#[cfg(test)]
fn property_tests() -> proptest::test_runner::Config {
    use proptest::test_runner::{Config, FileFailurePersistence};
    let kept = FileFailurePersistence::SourceParallel("test/proptest-regressions");
    Config { failure_persistence: Some(Box::new(kept)), ..Config::default() }
}

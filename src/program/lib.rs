//! A Gardener provider extension that owns the `Worker` resource: it turns a Worker and its Cluster into machine classes
//! and machine deployments, and follows the machines until they are ready.
//!
//! ```text
//!  Worker + Cluster + Secrets + live objects
//!         │  decode: strict; errors contain the path
//!         ▼
//!  Plan: a PoolPlan or PoolError per pool               (pure: no clock, no client)
//!         │                         │
//!         │ apply: only differences │ render · explain · why (cli, the same Plan, no cluster)
//!         ▼                         ▼
//!  cluster objects                terminal
//!         │  progress: pure fold over watched objects
//!         ▼
//!  Worker.status, events
//! ```
//!
//! The modules follow the flow of data. Each uses only those listed above it:
//!
//! * [`api`]: API objects;
//! * [`capabilities`]: which image flavors fit a machine, and which fits best (GEP-33);
//! * [`cloud_profile`]: CloudProfiles as Gardener interprets them;
//! * [`versions`]: updates of a Shoot's versions in its maintenance windows;
//! * [`pool`]: zones, hash, names, settings;
//! * [`shoot`]: renders a Shoot to the Worker that gardenlet writes;
//! * [`provider`]: the provider traits, and one folder per provider;
//! * [`resolved_profile`]: the images a CloudProfile offers, problems in it, and equivalent ways to write it;
//! * [`images`]: images by flavor: existing, used and locked ones;
//! * [`worker`]: all decisions about one Worker, without I/O;
//! * [`cloud`]: clients of clouds, for the dependencies of pools;
//! * [`explain`]: explains a plan to users;
//! * [`preview`]: predicts the effect of a change and its cause;
//! * [`diagnose`]: finds out from existing objects why a Worker is not ready;
//! * `process`: logs, traces, endpoints, leader election;
//! * `reader`: reads user input: files, folders, standard input;
//! * `cluster`: clients, watches, the store, reads and writes;
//! * `webhook`: the server for admission reviews, its certificate and registration;
//! * `image_controller`: maintains objects for machine images;
//! * `controller`: reconciles Workers. Only this module combines decisions with cluster I/O;
//! * [`admission`]: webhooks for the garden;
//! * [`sidecar`]: the webhook for seeds that adds the provider's sidecar to machine-controller-manager;
//! * [`cli`]: the command line;
//! * `fuzzing`: exposes private functions to fuzz targets (feature `fuzzing`);
//! * `simulation`: runs the controller against a simulated API server (feature `simulation`).

//!
//! A crate that adds a provider builds on [`api`], [`capabilities`], [`pool`], [`provider`], [`cloud`], and the parts
//! of [`worker`] that the provider trait uses. It starts with [`cli`]. These modules follow semantic versioning. The
//! others are public only for this repository's tests and tools. They are hidden from the documentation and may change
//! in any version.

#[doc(hidden)]
pub mod admission;
pub mod cli;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
#[doc(hidden)]
pub mod sidecar;
#[cfg(feature = "simulation")]
#[doc(hidden)]
pub mod simulation;

pub use decisions::{pool, provider, worker};
#[doc(hidden)]
pub use explanations::{diagnose, explain, preview};
#[doc(hidden)]
pub use profiles::{cloud_profile, images, resolved_profile, shoot, versions};
pub use runtime::cloud;
#[doc(hidden)]
pub use runtime::reader;
pub use wire::{api, capabilities};

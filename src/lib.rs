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
//! The rooms in the order of the road; each uses only those above it:
//!
//! * [`api`]: objects on the wire;
//! * [`capabilities`]: which image flavor fits a machine, and which fits best (GEP-33);
//! * [`cloud_profile`]: CloudProfiles as Gardener itself treats them;
//! * [`pool`]: zones, hash, names, settings;
//! * [`provider`]: the seam, and one folder per provider;
//! * [`offer`]: what a CloudProfile offers, what is wrong with it, how it could be written;
//! * [`worker`]: the pipeline, one file per step;
//! * [`cloud`]: clients of clouds, for what pools depend on there;
//! * [`explain`]: a plan for people;
//! * [`preview`]: what a change does before it happens, and why;
//! * [`runtime`]: watches and wiring;
//! * [`admission`]: webhooks of the garden;
//! * [`sidecar`]: the webhook of a seed that completes machine-controller-manager;
//! * [`cli`]: what a person types.

pub mod admission;
pub mod api;
pub mod capabilities;
pub mod cli;
pub mod cloud;
pub mod cloud_profile;
pub mod explain;
pub mod offer;
pub mod pool;
pub mod preview;
pub mod provider;
pub mod runtime;
pub mod sidecar;
pub mod worker;

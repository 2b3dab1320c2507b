//! What the pools of every provider share: no provider, no cluster.
//!
//! * [`zones`]: how the numbers of a pool are spread over its zones;
//! * [`hash`]: the five characters that decide whether nodes roll;
//! * [`names`]: names of machine classes and machine deployments;
//! * [`settings`]: settings for machine-controller-manager and annotations for the cluster-autoscaler;
//! * [`strategy`]: how a changed pool is updated.

pub mod hash;
pub mod names;
pub mod settings;
pub mod strategy;
pub mod zones;

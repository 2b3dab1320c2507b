//! What the pools of every provider share: no provider, no cluster.
//!
//! * [`zones`]: how a number is spread over zones; [`bounds`]: all numbers of a pool in one of them;
//! * [`hash`]: the five characters that decide whether nodes roll;
//! * [`config_items`], [`virtual_capacity`]: what of a provider config counts in it;
//! * [`names`]: names of machine classes and machine deployments;
//! * [`settings`]: settings for machine-controller-manager and annotations for the cluster-autoscaler;
//! * [`strategy`]: how a changed pool is updated; [`roll_bounds`]: how many machines at a time;
//! * [`volumes`]: sizes and order of volumes.

pub mod bounds;
pub mod config_items;
pub mod hash;
pub mod names;
pub mod roll_bounds;
pub mod settings;
pub mod strategy;
pub mod virtual_capacity;
pub mod volumes;
pub mod zones;

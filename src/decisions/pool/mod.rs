//! Pool logic that all providers share, without access to a cluster.
//!
//! * [`zones`] splits machine counts among zones; [`bounds`] does so for all counts of a pool;
//! * [`hash`] computes the five-character class hash that decides whether nodes roll;
//! * [`config_items`] and [`virtual_capacity`] select the hash inputs of a provider config;
//! * [`names`] formats names of machine classes and machine deployments;
//! * [`settings`] maps settings for machine-controller-manager and annotations for the cluster-autoscaler;
//! * [`strategy`] maps the update strategy of a pool; [`roll_bounds`] computes how many machines roll at a time;
//! * [`volumes`] parses volume sizes and orders volumes.

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

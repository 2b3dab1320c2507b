//! Access to a cluster: clients, watches, stores, reads and writes. This room makes no decisions.

pub(crate) mod api_request;
pub mod assignment;
pub mod cache;
pub mod client;
pub(crate) mod client_config;
pub(crate) mod cluster_cache;
pub mod config_files;
pub mod connection;
pub mod decode_guard;
pub mod error;
pub mod events;
pub mod garden;
pub mod garden_cluster;
pub mod identity;
pub mod machine_objects;
pub mod machine_reads;
pub mod machine_writes;
pub mod request_metrics;
pub mod responses;
pub mod retry_layer;
pub mod secret_cache;
pub mod seed;
pub mod served_kinds;
pub mod shoot_namespace;
pub mod shoot_nodes;
pub mod slot;
pub mod store;
#[cfg(test)]
mod test_support;
pub mod too_large;
pub mod trimmed;
pub(crate) mod watch_start;
pub(crate) mod watch_stream;
pub mod watches;
pub mod write_fence;

/// Limit of concurrent requests, enough for all pools of a large Worker.
pub const PARALLEL_REQUESTS: usize = 320;

/// Name of the Secret with a shoot's credentials, set by gardenlet. The controller watches Secrets of this name.
pub const CREDENTIALS: &str = "cloudprovider";

//! Access to a cluster: clients, watches, stores, reads and writes. This room makes no decisions.

pub(crate) mod answers;
pub(crate) mod api_request;
pub(crate) mod assignment;
pub(crate) mod cache;
pub(crate) mod client;
pub(crate) mod client_config;
pub(crate) mod cluster_cache;
pub(crate) mod config_files;
pub(crate) mod connection;
pub(crate) mod decode_guard;
pub(crate) mod error;
pub(crate) mod events;
pub(crate) mod garden;
pub(crate) mod garden_cluster;
pub(crate) mod identity;
pub(crate) mod machine_objects;
pub(crate) mod machine_reads;
pub(crate) mod machine_writes;
pub(crate) mod request_metrics;
pub(crate) mod retry_layer;
pub(crate) mod secret_cache;
pub(crate) mod seed;
pub(crate) mod served_kinds;
pub(crate) mod shoot_namespace;
pub(crate) mod shoot_nodes;
pub(crate) mod slot;
pub(crate) mod store;
#[cfg(test)]
mod test_support;
pub(crate) mod too_large;
pub(crate) mod trimmed;
pub(crate) mod watch_start;
pub(crate) mod watch_stream;
pub(crate) mod watches;
pub(crate) mod write_fence;

/// Limit of concurrent requests, enough for all pools of a large Worker.
pub(crate) const PARALLEL_REQUESTS: usize = 320;

/// Name of the Secret with a shoot's credentials, set by gardenlet. The controller watches Secrets of this name.
pub(crate) const CREDENTIALS: &str = "cloudprovider";

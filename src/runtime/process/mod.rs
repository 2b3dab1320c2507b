//! Infrastructure of long-running processes: logs, traces, health and metrics endpoints, leader election, clock,
//! threads.

pub mod clock;
pub mod election;
pub mod endpoints;
pub mod failure_reason;
pub mod heartbeat;
pub(crate) mod http_server;
pub mod jitter;
pub mod leadership;
pub mod lease;
pub mod logs;
pub mod output;
pub mod readiness;
pub mod shard;
pub mod signals;
pub mod threads;
pub mod traces;
pub mod workflow_commands;

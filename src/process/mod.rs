//! Infrastructure of long-running processes: logs, traces, health and metrics endpoints, leader election, clock,
//! threads.

pub(crate) mod clock;
pub(crate) mod election;
pub(crate) mod endpoints;
pub(crate) mod failure_reason;
pub(crate) mod heartbeat;
pub(crate) mod http_server;
pub(crate) mod jitter;
pub(crate) mod leadership;
pub(crate) mod lease;
pub(crate) mod logs;
pub(crate) mod output;
pub(crate) mod readiness;
pub(crate) mod shard;
pub(crate) mod signals;
pub(crate) mod threads;
pub(crate) mod traces;
pub(crate) mod workflow_commands;

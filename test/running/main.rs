//! The controller process from the operator's perspective: leader election, termination, and reports.
//! `cargo test --test running`.
//!
//! ```text
//! controller   one process of the binary with its own ports and settings
//! stalls       responses that stall
//! proxy        the proxy of the fault tests, which stalls them
//! slots        slow writes do not delay other Workers
//! election     leader election of two processes; a suspended leader writes nothing
//! shards       processes share a seed with a real sharder: one writer per Worker while processes join, leave or die
//! takeover     the Go extension's objects: compared by a dry run and by `takeover check`, then taken over
//! traces       traces in an OpenTelemetry collector
//! upheavals    permissions, the process, the owner or proxies change while it runs
//! nodes        with --health-check, counts nodes through the shoots' API servers
//! landscape    creates a seed with thousands of Workers
//! many         measures start, no-op, roll and growth there, with one process or four
//! returns      memory is released when Workers are deleted
//! departures   a deleted Worker leaves no metrics
//! operations   health, readiness, metrics, log level, heartbeat, configuration
//! ```

#![allow(clippy::expect_used, clippy::panic, reason = "a test may end where its own input is not what it expects")]

mod controller;
mod departures;
mod election;
mod landscape;
mod many;
mod nodes;
mod operations;
mod returns;
mod shards;
mod slots;
mod stalls;
mod takeover;
mod traces;
mod upheavals;

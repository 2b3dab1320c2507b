//! The process of the controller as an operator runs it: who leads, how it stops, what it reports.
//! `cargo test --test running`.
//!
//! ```text
//! controller   one process of the binary, with ports and settings of its own
//! stalls       answers that stop on their way
//! proxy        that of the faults: where they stop
//! slots        writes that take long hold up no other Worker
//! election     one of two leads; a leader that was suspended writes nothing
//! shards       several share a seed, with a real sharder: one writer for each Worker, whoever joins, leaves or is killed
//! takeover     what the Go extension has left: compared by a dry run and by `takeover check`, then taken over
//! traces       what a collector of OpenTelemetry gets
//! nodes        with --health-check, nodes are counted at the API servers of shoots
//! landscape    how a seed with thousands of Workers is made
//! many         what that costs, one process or four: start, no-op, roll, growth
//! returns      memory returns when Workers go
//! departures   a Worker that is gone leaves no metrics
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

//! Async runtimes and their threads.

use std::future::Future;
use std::io;
use std::thread::available_parallelism;

use anyhow::Context;

use tokio::runtime::{Builder, Runtime};

/// Maximum number of threads. More would mostly be idle, and each needs memory; a node may have a hundred CPUs.
const MOST: usize = 4;

/// Single-threaded runtime for I/O-bound commands. Handing work between threads would cost more than it gains
/// (docs/performance-evidence.md#threads).
pub fn one() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Runtime with one thread per CPU, for servers: one slow response must not delay the next.
pub(crate) fn several() -> io::Result<Runtime> {
    let threads = available_parallelism().map_or(1, usize::from).min(MOST);
    Builder::new_multi_thread().worker_threads(threads).enable_all().build()
}

/// Runs the requests of a command to completion.
pub fn block_on<T>(requests: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    one().context("no runtime")?.block_on(requests)
}

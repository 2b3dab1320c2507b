//! The threads that everything runs on.

use std::future::Future;
use std::io;
use std::thread::available_parallelism;

use anyhow::Context;

use tokio::runtime::{Builder, Runtime};

/// More threads than these would mostly wait, and each holds memory of its own: a node may have a hundred processors.
const MOST: usize = 4;

/// One for everything, for who mostly asks others and waits: to hand work from one thread to the next costs more than is gained
/// (docs/performance.md#threads).
pub(crate) fn one() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// As many as there are processors, for whom others wait: one long answer must not hold up the next.
pub(crate) fn several() -> io::Result<Runtime> {
    let threads = available_parallelism().map_or(1, usize::from).min(MOST);
    Builder::new_multi_thread().worker_threads(threads).enable_all().build()
}

/// Waits for the requests of a command.
pub(crate) fn block_on<T>(requests: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    one().context("no runtime")?.block_on(requests)
}

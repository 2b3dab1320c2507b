//! The threads that everything runs on.

use std::future::Future;
use std::thread::available_parallelism;

use anyhow::Context;

use tokio::runtime::{Builder, Runtime};

/// More threads than these would mostly wait, and each holds memory of its own: a node may have a hundred processors.
const MOST: usize = 4;

/// Starts them.
pub(crate) fn start() -> std::io::Result<Runtime> {
    let threads = available_parallelism().map_or(1, usize::from).min(MOST);
    Builder::new_multi_thread().worker_threads(threads).enable_all().build()
}

/// Waits for the requests of a command.
pub(crate) fn block_on<T>(requests: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    Builder::new_current_thread().enable_all().build().context("no runtime")?.block_on(requests)
}

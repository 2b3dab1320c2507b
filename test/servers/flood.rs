//! Many silent clients at once, and how long a good client waits alongside them.

use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures::future::{Either, select};
use futures::stream::{StreamExt as _, iter};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::timeout;

use crate::stage::{Held, Stage};

/// More clients than any port accepts, and more than the process has descriptors.
pub(crate) const FLOOD: usize = 700;
/// Number of clients that connect concurrently.
const SIDE_BY_SIDE: usize = 16;
/// Number of requests by the good client once all clients of the flood have connected.
const QUERIES: usize = 3;
/// Time limit for a request of a good client.
pub(crate) const COMPLETED: Duration = Duration::from_secs(1);

/// Runs one flood at a time. The test has few descriptors and processors, and a concurrent flood would distort the
/// measurement.
pub(crate) async fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::const_new(());
    ALONE.lock().await
}

/// Measures how long good clients wait for responses.
pub(crate) struct Stopwatch {
    /// Time limit for one request.
    limit: Duration,
    longest: Duration,
}

impl Stopwatch {
    /// Sends a request, and fails if the response takes too long.
    pub(crate) async fn request<T>(&mut self, query: impl Future<Output = Result<T>>) -> Result<T> {
        let began = Instant::now();
        let response = timeout(self.limit, query).await;
        let response = response.with_context(|| format!("no answer in {:?}", self.limit))?.context("no good answer")?;
        self.longest = self.longest.max(began.elapsed());
        Ok(response)
    }
}

/// Floods a port, with the clients distributed over the stages. While the flood connects and afterwards, good clients
/// send requests. Each must get its response within the limit. Returns the longest wait.
pub(crate) async fn good_clients_beside(
    port: u16,
    stages: &[Stage],
    limit: Duration,
    mut request: impl AsyncFnMut(&mut Stopwatch) -> Result<()>,
) -> Result<Duration> {
    let names = stages.iter().map(|stage| stage.name).collect::<Vec<_>>().join(", ");
    let mut stopwatch = Stopwatch { limit, longest: Duration::ZERO };
    let coming = iter(stages.iter().cycle().take(FLOOD)).map(|stage| stage.reach(port));
    // A client of the flood that is rejected or disconnected has lost. Only the good clients decide the result.
    let mut coming = pin!(coming.buffer_unordered(SIDE_BY_SIDE).collect::<Vec<Result<Held>>>());
    let flood = loop {
        let asking = pin!(request(&mut stopwatch));
        match select(coming, asking).await {
            Either::Left((flood, asking)) => {
                asking.await.with_context(|| names.clone())?;
                break flood;
            }
            Either::Right((response, still_coming)) => {
                response.with_context(|| format!("while they come: {names}"))?;
                coming = still_coming;
            }
        }
    };
    for _ in 0..QUERIES {
        request(&mut stopwatch).await.with_context(|| names.clone())?;
    }
    drop(flood);
    Ok(stopwatch.longest)
}

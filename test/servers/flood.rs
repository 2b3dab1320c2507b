//! Many silent clients at once, and how long a good one waits beside them.

use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures::future::{Either, select};
use futures::stream::{StreamExt as _, iter};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::timeout;

use crate::stage::{Held, Stage};

/// More than any port takes, and than the process has descriptors.
pub(crate) const FLOOD: usize = 700;
/// How many come at the same time.
const SIDE_BY_SIDE: usize = 16;
/// How often the good client asks when all of them are there.
const QUERIES: usize = 3;
/// What a good client may wait.
pub(crate) const COMPLETED: Duration = Duration::from_secs(1);

/// One flood after the other: descriptors of the test and processors are few, and one that comes beside another is not what is
/// measured.
pub(crate) async fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::const_new(());
    ALONE.lock().await
}

/// How long good clients waited for their answers.
pub(crate) struct Stopwatch {
    /// What one of them may wait.
    limit: Duration,
    longest: Duration,
}

impl Stopwatch {
    /// Asks, and fails when the answer takes too long.
    pub(crate) async fn request<T>(&mut self, query: impl Future<Output = Result<T>>) -> Result<T> {
        let began = Instant::now();
        let response = timeout(self.limit, query).await;
        let response = response.with_context(|| format!("no answer in {:?}", self.limit))?.context("no good answer")?;
        self.longest = self.longest.max(began.elapsed());
        Ok(response)
    }
}

/// Brings a flood to a port, each client to the next of the stages. While it comes and when it is there, good clients ask;
/// each has to have its answer within the limit. Returns the longest that one of them waited.
pub(crate) async fn good_clients_beside(
    port: u16,
    stages: &[Stage],
    limit: Duration,
    mut request: impl AsyncFnMut(&mut Stopwatch) -> Result<()>,
) -> Result<Duration> {
    let names = stages.iter().map(|stage| stage.name).collect::<Vec<_>>().join(", ");
    let mut stopwatch = Stopwatch { limit, longest: Duration::ZERO };
    let coming = iter(stages.iter().cycle().take(FLOOD)).map(|stage| stage.reach(port));
    // Whoever is not let in, or is sent away again, has lost; that is for the good clients to judge.
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

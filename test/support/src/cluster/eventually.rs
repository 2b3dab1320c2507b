//! Waiting for a condition: the only place of the tests that polls.

use std::future::Future;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::time::{Instant, sleep};

/// How long to wait between two checks. Short, because what is waited for is on the same machine.
const PAUSE: Duration = Duration::from_millis(50);

/// Calls `check` until it succeeds and returns what it returned, at most for `deadline`.
///
/// `check` fails by saying what is missing, e.g. `ensure!(ready == 3, "{ready} of 3 machines are ready")`;
/// the last such answer is part of the error when time is up. A check that hangs is cut off too.
pub async fn eventually<T, Check, Answer>(deadline: Duration, what: &str, mut check: Check) -> Result<T>
where
    Check: FnMut() -> Answer,
    Answer: Future<Output = Result<T>>,
{
    let end = Instant::now() + deadline;
    let mut missing = anyhow::anyhow!("the first check did not return");
    loop {
        match tokio::time::timeout_at(end, check()).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(answer)) => missing = answer,
            Err(_) => {}
        }
        if Instant::now() + PAUSE >= end {
            return Err(missing).with_context(|| format!("{what}: not within {deadline:?}"));
        }
        sleep(PAUSE).await;
    }
}

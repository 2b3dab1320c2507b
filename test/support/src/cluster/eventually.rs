//! Waits for conditions. No other code of the tests polls.

use std::future::Future;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::time::{Instant, sleep};

/// Pause between checks. It is short because everything runs on the same machine.
const PAUSE: Duration = Duration::from_millis(50);

/// Calls `check` until it succeeds, for at most `deadline`, and returns its result.
///
/// An error of `check` states what is missing, for example `ensure!(ready == 3, "{ready} of 3 machines are ready")`. On
/// timeout, the last error is part of the returned one. A check that hangs is cancelled.
pub async fn eventually<T, Check, Reply>(deadline: Duration, what: &str, mut check: Check) -> Result<T>
where
    Check: FnMut() -> Reply,
    Reply: Future<Output = Result<T>>,
{
    let end = Instant::now() + deadline;
    let mut missing = anyhow::anyhow!("the first check did not return");
    loop {
        match tokio::time::timeout_at(end, check()).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(response)) => missing = response,
            Err(_) => {}
        }
        if Instant::now() + PAUSE >= end {
            return Err(missing).with_context(|| format!("{what}: not within {deadline:?}"));
        }
        sleep(PAUSE).await;
    }
}

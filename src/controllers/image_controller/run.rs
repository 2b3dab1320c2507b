//! Runs the image controllers: a round after each change, and whenever the sources were read.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use tokio::sync::Notify;
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{debug, info, warn};

use super::arguments::ImageArguments;
use super::live::Live;
use super::metrics::ImageMetrics;
use super::round::{Found, RoundOutcome, round};
use super::sources::{Versions, read_all, versions};
use super::stores::Stores;
use profiles::images::catalogue::Catalogue;
use profiles::images::source_path::SourcePath;
use runtime::cluster::connection::Access;
use runtime::cluster::events::EventRecorder;
use runtime::cluster::write_fence::WriteFence;
use runtime::process::clock::Clock;
use runtime::process::failure_reason::reason;

/// Changes within this time are handled in one round.
const QUIET: Duration = Duration::from_millis(100);
/// How often to check whether stale watches have recovered.
const STALE: Duration = Duration::from_secs(1);
/// First and maximum pause after failed writes. The pause doubles with each failure.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Runs indefinitely while this process leads. Does nothing if the image controllers are disabled, or in a dry run.
pub(crate) async fn run(
    arguments: &ImageArguments,
    Access { client, fence, .. }: &Access,
    metrics: &ImageMetrics,
) -> Infallible {
    if !arguments.images || matches!(fence, WriteFence::Shut) {
        return pending().await;
    }
    if let WriteFence::Leader(leadership) = fence {
        leadership.wait().await;
    }
    info!(templates = arguments.image_machine_templates, "following images");
    let stores = Stores::new(arguments.image_machine_templates);
    let live = Live::default();
    let changed = Notify::new();
    let interval = Duration::from_secs(arguments.image_interval_seconds.into());
    tokio::join!(
        stores.follow(client, &changed),
        live.ask((arguments.ec2_endpoint(), arguments.secrets()), interval, || stores.known_lookups(), &changed),
        work(arguments, (client, metrics), (&stores, &live), &changed)
    )
    .2
}

async fn work(
    arguments: &ImageArguments,
    (client, metrics): (&Client, &ImageMetrics),
    (stores, live): (&Stores, &Live),
    changed: &Notify,
) -> Infallible {
    let events = EventRecorder::new(client.clone(), Clock::default());
    let interval = Duration::from_secs(arguments.image_interval_seconds.into());
    let mut read = Listed::read(arguments, None).await;
    let mut read_again = Instant::now() + interval;
    let mut failures = 0;
    let mut reported = Vec::new();
    loop {
        if read_again <= Instant::now() {
            read = Listed::read(arguments, Some(read)).await;
            read_again = Instant::now() + interval;
        }
        if !stores.are_fresh() {
            sleep(STALE).await;
            continue;
        }
        let (outcome, found) = round(client, stores, &events, ((Arc::clone(&read.content), read.checked), live)).await;
        if let Some(Found { numbers, problems }) = found {
            metrics.set(&numbers, |lookup| live.last_success(lookup, &numbers).unwrap_or(read.checked));
            report(&problems, &mut reported);
        }
        failures = if outcome == RoundOutcome::Failed { failures + 1 } else { 0 };
        match outcome {
            RoundOutcome::Written => {}
            RoundOutcome::Unchanged => until(read_again, changed).await,
            RoundOutcome::Failed => until(read_again.min(Instant::now() + pause(failures)), changed).await,
        }
        sleep(QUIET).await;
    }
}

/// Waits for a change, at most until `end`.
async fn until(end: Instant, changed: &Notify) {
    tokio::select! {
        () = changed.notified() => {}
        () = sleep_until(end) => {}
    }
}

fn pause(failures: u32) -> Duration {
    SHORTEST_PAUSE.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(LONGEST_PAUSE)
}

/// Logs new problems.
fn report(problems: &[String], reported: &mut Vec<String>) {
    for problem in problems.iter().filter(|problem| !reported.contains(problem)) {
        warn!(problem, "an object of images can't be used");
    }
    *reported = problems.to_vec();
}

/// Content of the sources.
struct Listed {
    /// Versions of the files that were read; `None` if they had an error.
    versions: Option<Versions>,
    content: Arc<Result<Catalogue, String>>,
    /// When they were last checked.
    checked: Timestamp,
}

impl Listed {
    /// Reads the sources on a thread where it does not block requests. Skipped if no file has changed.
    async fn read(arguments: &ImageArguments, before: Option<Self>) -> Self {
        let sources = arguments.sources.clone();
        let listed = spawn_blocking(move || {
            let versions = versions(&sources).ok();
            match before.filter(|before| before.versions.is_some() && before.versions == versions) {
                Some(before) => Self { checked: Timestamp::now(), ..before },
                None => Self::anew(&sources, versions),
            }
        });
        let failed = |error: JoinError| Self::of(None, Err(error.to_string()));
        let listed = listed.await.unwrap_or_else(failed);
        debug!("the sources are checked");
        listed
    }

    fn anew(sources: &[SourcePath], versions: Option<Versions>) -> Self {
        let content = read_all(sources).map_err(|error| reason(error.as_ref()));
        match &content {
            Ok(catalogue) => info!(images = catalogue.images().len(), "the sources are read"),
            Err(error) if !sources.is_empty() => warn!(error, "the sources of images can't be read"),
            Err(_) => {}
        }
        // A file that failed, possibly because it was being written, is read again.
        Self::of(if content.is_ok() { versions } else { None }, content)
    }

    fn of(versions: Option<Versions>, content: Result<Catalogue, String>) -> Self {
        Self { versions, content: Arc::new(content), checked: Timestamp::now() }
    }
}

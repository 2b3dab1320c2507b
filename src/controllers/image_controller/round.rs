//! One round: computes all necessary writes and executes them.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream;
use jiff::Timestamp;
use kube::Client;
use tokio::task::spawn_blocking;
use tracing::{debug, warn};

use super::live::Live;
use super::stores::Stores;
use super::writes::{WriteError, write};
use profiles::images::catalogue::Catalogue;
use profiles::images::objects::Objects;
use profiles::images::objects::discovery::Sources;
use profiles::images::objects::numbers::ImageNumbers;
use profiles::images::objects::write::Write;
use runtime::cluster::events::EventRecorder;

/// Maximum number of parallel writes.
const PARALLEL_WRITES: usize = 16;

/// Content of the files, and when they were last checked.
pub(super) type SourcesRead = (Arc<Result<Catalogue, String>>, Timestamp);

/// Result of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RoundOutcome {
    /// There was nothing to write.
    Unchanged,
    /// At least one write; another round may find more.
    Written,
    /// A write has failed and is retried after a pause.
    Failed,
}

/// Other results of a round.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Number of objects by state.
    pub(super) numbers: ImageNumbers,
    /// Objects that can't be processed.
    pub(super) problems: Vec<String>,
}

/// Decides and writes once. Images come first, so that a first resolution chooses from everything found in the same
/// round. Failed image writes do not block the selections, but after a successful one the rest is left to the next
/// round.
pub(super) async fn round(
    client: &Client,
    stores: &Stores,
    events: &EventRecorder,
    ((read, checked), live): (SourcesRead, &Live),
) -> (RoundOutcome, Option<Found>) {
    let live = live.clone();
    let images = decide(stores, move |objects, now| {
        objects.images_to_write_with((Sources::from(&*read), checked), &live.results(&objects.lookups), now)
    });
    let images = write_all(images.await, client, stores, events).await;
    if images == RoundOutcome::Written {
        return (images, None);
    }
    let decided = decide(stores, |objects, now| {
        let (writes, problems) = objects.selections_to_write(now);
        (writes, Some(Found { numbers: objects.numbers(now), problems }))
    });
    let (writes, found) = decided.await;
    match write_all(writes, client, stores, events).await {
        RoundOutcome::Unchanged => (images, found),
        ended => (ended, found),
    }
}

/// Computes a decision on a thread where it does not block requests.
async fn decide<T: Default + Send + 'static>(
    stores: &Stores,
    decision: impl FnOnce(&Objects, Timestamp) -> T + Send + 'static,
) -> T {
    let stores = stores.clone();
    let now = Timestamp::now();
    // Fractions of a second are not worth the space.
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let decided = spawn_blocking(move || decision(&stores.objects(), now)).await;
    decided.inspect_err(|error| warn!(%error, "images can't be decided")).unwrap_or_default()
}

async fn write_all(writes: Vec<Write>, client: &Client, stores: &Stores, events: &EventRecorder) -> RoundOutcome {
    if writes.is_empty() {
        return RoundOutcome::Unchanged;
    }
    let results = stream::iter(writes).map(|one| write(one, client, stores, events)).buffer_unordered(PARALLEL_WRITES);
    let failed = results.filter_map(async |result| result.err()).fold(0, async |failed: usize, error| {
        match &error {
            // Another client has changed the object. The next round starts from its version.
            WriteError::Request(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {
                debug!(%error, "an object has changed meanwhile");
            }
            error => warn!(%error, "an object can't be written"),
        }
        failed + 1
    });
    if failed.await == 0 { RoundOutcome::Written } else { RoundOutcome::Failed }
}

//! Lookups that query a cloud instead of files. Each runs separately and with a time limit, so that a failing one
//! does not affect the others.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use kube::ResourceExt;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use profiles::images::catalogue::Catalogue;
use profiles::images::objects::discovery::Answers;
use profiles::images::objects::numbers::ImageNumbers;
use wire::api::image_objects::ImageLookup;

/// Maximum number of lookups that run at the same time.
const PARALLEL: usize = 4;
/// Time limit for all pages of one lookup.
const TIMEOUT: Duration = Duration::from_secs(300);
/// How often to check which lookups are due.
const CHECK: Duration = Duration::from_secs(1);

/// Last responses of clouds. Clones share their state.
#[derive(Clone, Default)]
pub(super) struct Live(Arc<Mutex<BTreeMap<String, Asked>>>);

/// The last response for a lookup.
struct Asked {
    /// Generation of the spec that was used.
    generation: Option<i64>,
    at: (Instant, Timestamp),
    answer: Arc<Result<Catalogue, String>>,
}

impl Live {
    /// Runs indefinitely. Repeats each lookup after the interval or when its spec has changed, and notifies `changed`
    /// of every response.
    pub(super) async fn ask(
        &self,
        (endpoint, secrets): (Option<&str>, Option<&Path>),
        interval: Duration,
        lookups: impl Fn() -> Option<Vec<Arc<ImageLookup>>>,
        changed: &Notify,
    ) -> Infallible {
        let mut under_way = FuturesUnordered::new();
        let mut names = BTreeSet::new();
        loop {
            for lookup in self.due(lookups(), interval) {
                if names.len() < PARALLEL && names.insert(lookup.name_any()) {
                    under_way.push(async move {
                        let answer = timeout(TIMEOUT, answer(&lookup, endpoint, secrets)).await;
                        (lookup, answer.unwrap_or_else(|_| Err(format!("no complete answer within {TIMEOUT:?}"))))
                    });
                }
            }
            if under_way.is_empty() {
                sleep(CHECK).await;
                continue;
            }
            if let Ok(Some((lookup, answer))) = timeout(CHECK, under_way.next()).await {
                names.remove(&lookup.name_any());
                self.keep(&lookup, answer);
                changed.notify_one();
            }
        }
    }

    /// Returns the lookups that are due, and drops responses for deleted ones. `lookups` is `None` until the store is
    /// synced.
    fn due(&self, lookups: Option<Vec<Arc<ImageLookup>>>, interval: Duration) -> Vec<Arc<ImageLookup>> {
        let Some(mut lookups) = lookups else { return Vec::new() };
        lookups.retain(|lookup| lookup.spec.ec2.is_some());
        let mut known = self.known();
        known.retain(|name, _| lookups.iter().any(|lookup| lookup.metadata.name.as_ref() == Some(name)));
        lookups.retain(|lookup| {
            known
                .get(&lookup.name_any())
                .is_none_or(|asked| asked.generation != lookup.metadata.generation || asked.at.0.elapsed() >= interval)
        });
        lookups
    }

    fn keep(&self, lookup: &ImageLookup, answer: Result<Catalogue, String>) {
        let name = lookup.name_any();
        match &answer {
            Ok(catalogue) => info!(lookup = name, images = catalogue.images().len(), "EC2 has answered"),
            Err(error) => warn!(lookup = name, error, "EC2 can't be asked"),
        }
        let at = (Instant::now(), Timestamp::now());
        let asked = Asked { generation: lookup.metadata.generation, at, answer: Arc::new(answer) };
        self.known().insert(name, asked);
    }

    /// The last responses, without those for an outdated spec.
    pub(super) fn answers(&self, lookups: &[Arc<ImageLookup>]) -> Answers {
        let known = self.known();
        let answer = |lookup: &Arc<ImageLookup>| {
            let asked = known.get(lookup.metadata.name.as_ref()?)?;
            let is_current = asked.generation == lookup.metadata.generation;
            is_current.then(|| (lookup.name_any(), (Arc::clone(&asked.answer), asked.at.1)))
        };
        lookups.iter().filter_map(answer).collect()
    }

    /// When the cloud last responded to a lookup without an error; from its status if that was before this process
    /// started.
    pub(super) fn last_success(&self, lookup: &str, numbers: &ImageNumbers) -> Option<Timestamp> {
        let answered = self.known().get(lookup).filter(|asked| asked.answer.is_ok()).map(|asked| asked.at.1);
        answered.or_else(|| numbers.live.get(lookup).copied())
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Asked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All images that EC2 has for a lookup, in all its regions.
#[cfg(feature = "live-images")]
async fn answer(lookup: &ImageLookup, endpoint: Option<&str>, secrets: Option<&Path>) -> Result<Catalogue, String> {
    use profiles::images::lookup::Lookup;
    use profiles::images::query::ImageQuery;
    use runtime::cloud::aws::Ec2;
    use runtime::cloud::image_source::ImageSource;

    let known = Lookup::new(&lookup.name_any(), lookup.spec.clone()).map_err(|error| error.to_string())?;
    let query = ImageQuery::of_lookup(&known, &[]);
    let regions = lookup.spec.ec2.as_ref().map(|ec2| ec2.regions.as_slice()).unwrap_or_default();
    let mut listings = Vec::new();
    let regions = Ec2::in_regions(regions, endpoint, &known.identity, secrets).await;
    for region in regions.map_err(|error| error.to_string())? {
        listings.push(region.images(&query).await.map_err(|error| error.to_string())?);
    }
    Catalogue::new(listings).map_err(|error| error.to_string())
}

/// Without the feature, every lookup fails.
#[cfg(not(feature = "live-images"))]
async fn answer(_: &ImageLookup, _: Option<&str>, _: Option<&Path>) -> Result<Catalogue, String> {
    Err("spec.ec2: the controller was built without the feature live-images".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_success_of_a_live_lookup_outlives_a_restart_and_failures() {
        let at = Timestamp::constant;
        let numbers = ImageNumbers { live: BTreeMap::from([("live".to_owned(), at(5, 0))]), ..ImageNumbers::default() };
        let live = Live::default();
        assert_eq!(live.last_success("live", &numbers), Some(at(5, 0)));
        assert_eq!(live.last_success("of files", &numbers), None, "this is when the files were checked");
        let lookup: ImageLookup = serde_json::from_value(json!({"metadata": {"name": "live"}, "spec": {
            "provider": "aws", "lookupFormat": "x", "arch": [], "versions": ">=1", "owners": []}}))
        .unwrap();
        live.keep(&lookup, Err("refused".to_owned()));
        assert_eq!(live.last_success("live", &numbers), Some(at(5, 0)));
        live.keep(&lookup, Ok(Catalogue::default()));
        assert!(live.last_success("live", &numbers) > Some(at(5, 0)));
    }
}

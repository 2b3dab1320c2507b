//! Caches the pools of the garden's Shoots. A review waits for a read only as long as a user would.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::Client;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::pool_warnings::{Parents, UsedPool};
use runtime::cluster::garden_cluster::GardenKind;

/// Age at which the cache is reread.
const CACHE_TTL: Duration = Duration::from_secs(5 * 60);
/// Maximum wait of a review; an API server waits ten seconds for the whole response.
const READ_TIMEOUT: Duration = Duration::from_secs(3);

/// A shared cache of the garden's pools.
#[derive(Clone)]
pub(super) struct GardenShoots {
    client: Client,
    known: Arc<Mutex<Option<CachedPools>>>,
}

struct CachedPools {
    since: Instant,
    pools: Arc<Vec<UsedPool>>,
}

impl GardenShoots {
    pub(super) fn new(client: Client) -> Self {
        Self { client, known: Arc::default() }
    }

    /// The pools of all Shoots, or why they are not available in time. The read continues for the next review.
    pub(super) async fn pools(&self) -> Result<Arc<Vec<UsedPool>>, String> {
        let Self { client, known } = self.clone();
        let reading = tokio::spawn(async move {
            // Concurrent reviews wait for the same read.
            let mut known = known.lock().await;
            if let Some(fresh) = known.as_ref().filter(|known| known.since.elapsed() < CACHE_TTL) {
                return Ok(Arc::clone(&fresh.pools));
            }
            let pools = Arc::new(read(&client).await.map_err(|error| format!("{error:#}"))?);
            *known = Some(CachedPools { since: Instant::now(), pools: Arc::clone(&pools) });
            Ok(pools)
        });
        let late = || "the garden's Shoots are still being read; ask again soon".to_owned();
        timeout(READ_TIMEOUT, reading).await.map_err(|_| late())?.map_err(|error| error.to_string())?
    }
}

async fn read(client: &Client) -> anyhow::Result<Vec<UsedPool>> {
    let mut parents = Parents::default();
    let mut pools = Vec::new();
    GardenKind::NamespacedCloudProfile.list(client, None, |profile| parents.add(&profile)).await?;
    GardenKind::Shoot.list(client, None, |shoot| pools.extend(UsedPool::of_shoot(&shoot, &parents))).await?;
    Ok(pools)
}

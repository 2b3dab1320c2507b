//! The nodes of shoots (`--health-check`), counted behind the scenes: an API server of a shoot that does not answer holds up no
//! reconcile, and no shoot whose API server does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::Client;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::cloud::{TaskEnded, WorkerName};
use crate::cluster::identity::Identity;
use crate::cluster::shoot_nodes::count_nodes;
use crate::worker::node_count::{MachineCount, NodeCount};

/// How often nodes are counted: where they are those that are wanted, and where they are not.
const SETTLED: Duration = Duration::from_secs(60);
const UNSETTLED: Duration = Duration::from_secs(15);
/// Counts under way at a time; those of shoots whose last one failed are among themselves.
const PARALLEL: usize = 16;
const PARALLEL_FAILING: usize = 2;

/// What was found last. An error is published as it is.
pub(crate) type Counted = Result<NodeCount, String>;

/// What is known of the nodes of all shoots.
pub(crate) struct NodeCounts {
    seed: Client,
    /// Calls for a reconcile of the Worker when a count has ended.
    ended: TaskEnded,
    answering: Semaphore,
    failing: Semaphore,
    shoots: Mutex<HashMap<String, Shoot>>,
}

/// One shoot, by the uid of its Worker. Its count ends with it.
struct Shoot {
    wanted: MachineCount,
    last: Option<(Counted, Instant)>,
    count: Option<JoinHandle<()>>,
}

impl Drop for Shoot {
    fn drop(&mut self) {
        if let Some(count) = self.count.take() {
            count.abort();
        }
    }
}

impl Shoot {
    /// How long what is known lasts; `None` where it is time to count.
    fn lasts(&self, wanted: MachineCount, now: Instant) -> Option<Duration> {
        let (counted, at) = self.last.as_ref()?;
        let is_settled = counted.as_ref().is_ok_and(|nodes| wanted.is_met_by(*nodes));
        let interval = if is_settled { SETTLED } else { UNSETTLED };
        (*at + interval).checked_duration_since(now).filter(|left| !left.is_zero())
    }
}

impl NodeCounts {
    pub(crate) fn new(seed: Client, ended: TaskEnded) -> Arc<Self> {
        Arc::new(Self {
            seed,
            ended,
            answering: Semaphore::new(PARALLEL),
            failing: Semaphore::new(PARALLEL_FAILING),
            shoots: Mutex::default(),
        })
    }

    /// What was found last, and when to ask again. Begins to count where it is time; the Worker is reconciled at its end.
    pub(crate) fn of(
        self: &Arc<Self>,
        worker: &Identity,
        wanted: MachineCount,
        now: Instant,
    ) -> (Option<Counted>, Duration) {
        let mut shoots = self.shoots();
        let shoot = shoots.entry(worker.uid.clone()).or_insert(Shoot { wanted, last: None, count: None });
        shoot.wanted = wanted;
        let lasts = shoot.lasts(wanted, now);
        if lasts.is_none() && shoot.count.as_ref().is_none_or(JoinHandle::is_finished) {
            let is_failing = matches!(shoot.last, Some((Err(_), _)));
            shoot.count = Some(tokio::spawn(Arc::clone(self).count(worker.clone(), wanted, is_failing)));
        }
        (shoot.last.as_ref().map(|(counted, _)| counted.clone()), lasts.unwrap_or(SETTLED))
    }

    async fn count(self: Arc<Self>, worker: Identity, wanted: MachineCount, is_failing: bool) {
        let counts = if is_failing { &self.failing } else { &self.answering };
        let counted = {
            // Nobody closes it.
            let Ok(_permit) = counts.acquire().await else { return };
            count_nodes(&self.seed, &worker.namespace, wanted).await.map_err(|error| error.to_string())
        };
        if let Some(shoot) = self.shoots().get_mut(&worker.uid) {
            shoot.last = Some((counted, Instant::now()));
            shoot.count = None;
        }
        (self.ended)(WorkerName { namespace: worker.namespace, name: worker.name });
    }

    /// The Worker is gone.
    pub(crate) fn forget(&self, uid: &str) {
        self.shoots().remove(uid);
    }

    fn shoots(&self) -> MutexGuard<'_, HashMap<String, Shoot>> {
        self.shoots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

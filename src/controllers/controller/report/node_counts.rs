//! Counts the nodes of shoots (`--health-check`) in the background, so that an unresponsive API server of a shoot
//! delays neither reconciles nor the counts of other shoots.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use decisions::worker::machines::node_count::{MachineCount, NodeCount};
use runtime::cloud::{TaskEnded, WorkerName};
use runtime::cluster::identity::Identity;
use runtime::cluster::shoot_nodes::count_nodes;

/// How often nodes are counted: once they match the target, and until then.
const SETTLED_PERIOD: Duration = Duration::from_secs(60);
const UNSETTLED_PERIOD: Duration = Duration::from_secs(15);
/// Maximum number of parallel counts. Shoots whose last count failed share a smaller pool of their own.
const PARALLEL: usize = 16;
const PARALLEL_FAILING: usize = 2;

/// The last count. An error is published verbatim.
pub(crate) type Counted = Result<NodeCount, String>;

/// Node counts of all shoots.
pub(crate) struct NodeCounts {
    seed: Client,
    /// Requeues the Worker when a count has ended.
    ended: TaskEnded,
    answering: Semaphore,
    failing: Semaphore,
    shoots: Mutex<BTreeMap<String, Shoot>>,
}

/// One shoot, by the UID of its Worker. Dropping it aborts its count.
struct Shoot {
    target: MachineCount,
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
    /// How long the last count stays valid; `None` if a new one is due.
    fn lasts(&self, target: MachineCount, now: Instant) -> Option<Duration> {
        let (counted, at) = self.last.as_ref()?;
        let is_settled = counted.as_ref().is_ok_and(|nodes| target.is_met_by(*nodes));
        let interval = if is_settled { SETTLED_PERIOD } else { UNSETTLED_PERIOD };
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

    /// Returns the last count and when to check again. Starts a new count if one is due, which requeues the Worker
    /// when it ends.
    pub(crate) fn of(
        self: &Arc<Self>,
        worker: &Identity,
        target: MachineCount,
        now: Instant,
    ) -> (Option<Counted>, Duration) {
        let mut shoots = self.shoots();
        let shoot = shoots.entry(worker.uid.clone()).or_insert(Shoot { target, last: None, count: None });
        shoot.target = target;
        let lasts = shoot.lasts(target, now);
        if lasts.is_none() && shoot.count.as_ref().is_none_or(JoinHandle::is_finished) {
            let is_failing = matches!(shoot.last, Some((Err(_), _)));
            shoot.count = Some(tokio::spawn(Arc::clone(self).count(worker.clone(), target, is_failing)));
        }
        (shoot.last.as_ref().map(|(counted, _)| counted.clone()), lasts.unwrap_or(SETTLED_PERIOD))
    }

    async fn count(self: Arc<Self>, worker: Identity, target: MachineCount, is_failing: bool) {
        let counts = if is_failing { &self.failing } else { &self.answering };
        let counted = {
            // The semaphore is never closed.
            let Ok(_permit) = counts.acquire().await else { return };
            count_nodes(&self.seed, &worker.namespace, target).await.map_err(|error| error.to_string())
        };
        if let Some(shoot) = self.shoots().get_mut(&worker.uid) {
            shoot.last = Some((counted, Instant::now()));
            shoot.count = None;
        }
        (self.ended)(WorkerName { namespace: worker.namespace, name: worker.name });
    }

    /// Sets the count without counting.
    #[cfg(test)]
    pub(crate) fn set(&self, uid: &str, target: MachineCount, counted: Counted) {
        let last = Some((counted, Instant::now()));
        self.shoots().insert(uid.to_owned(), Shoot { target, last, count: None });
    }

    /// Drops the count of a deleted Worker.
    pub(crate) fn forget(&self, uid: &str) {
        self.shoots().remove(uid);
    }

    fn shoots(&self) -> MutexGuard<'_, BTreeMap<String, Shoot>> {
        self.shoots.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::http::{Request, Response};
    use futures::future;
    use kube::client::Body;
    use tokio::sync::Notify;
    use tokio::task::yield_now;
    use tokio::time::timeout;
    use tower::service_fn;

    use super::*;
    use crate::controller::test_support::refusal;

    const TARGET: MachineCount = MachineCount { desired: 3, preserved: 0 };
    const LONG: Duration = Duration::from_secs(30);

    fn worker() -> Identity {
        Identity { namespace: "ns".to_owned(), name: "w".to_owned(), uid: "u".to_owned(), version: 7 }
    }

    #[test]
    fn a_count_lasts_longer_where_all_nodes_are_there() {
        let start = Instant::now();
        let left = |counted: Option<Counted>, seconds: u64| {
            let shoot = Shoot { target: TARGET, last: counted.map(|counted| (counted, start)), count: None };
            shoot.lasts(TARGET, start + Duration::from_secs(seconds)).map(|left| left.as_secs())
        };
        let nodes = |number| Some(Ok(NodeCount { registered: number, ready: number }));
        assert_eq!(left(None, 0), None);
        assert_eq!((left(nodes(3), 10), left(nodes(3), 59), left(nodes(3), 60)), (Some(50), Some(1), None));
        assert_eq!((left(nodes(2), 10), left(nodes(2), 15)), (Some(5), None));
        assert_eq!(left(Some(Err("no answer".to_owned())), 10), Some(5));
    }

    #[tokio::test]
    async fn nodes_are_counted_once_at_a_time_and_not_as_long_as_the_count_lasts() {
        let requested = Arc::<AtomicUsize>::default();
        let ended = Arc::new(Notify::new());
        let seen = Arc::clone(&requested);
        let reported = Arc::clone(&ended);
        let service = service_fn(move |_: Request<Body>| {
            seen.fetch_add(1, Ordering::Relaxed);
            let (code, status) = refusal(404, "NotFound");
            let response = Response::builder().status(code).body(Body::from(status.to_string().into_bytes()));
            future::ok::<_, kube::Error>(response.unwrap())
        });
        let counts = NodeCounts::new(Client::new(service, "default"), Arc::new(move |_| reported.notify_one()));
        let of = || counts.of(&worker(), TARGET, Instant::now());
        assert_eq!(of(), (None, SETTLED_PERIOD));
        assert_eq!(of().0, None, "the count goes on");
        timeout(LONG, ended.notified()).await.unwrap();
        let (counted, again) = of();
        assert!(counted.is_some_and(|counted| counted.is_err()) && again <= UNSETTLED_PERIOD, "{again:?}");
        for _ in 0..100 {
            yield_now().await;
        }
        assert_eq!(requested.load(Ordering::Relaxed), 2, "one count asks for two Secrets");
    }

    #[tokio::test]
    async fn a_count_ends_with_its_worker() {
        let continues = Arc::new(());
        let held = Arc::clone(&continues);
        let service = service_fn(move |_: Request<Body>| {
            let held = Arc::clone(&held);
            async move {
                pending::<()>().await;
                drop(held);
                Ok::<_, kube::Error>(Response::new(Body::empty()))
            }
        });
        let counts = NodeCounts::new(Client::new(service, "default"), Arc::new(|_| ()));
        counts.of(&worker(), TARGET, Instant::now());
        let is_requested = || Arc::strong_count(&continues) > 2;
        let requested = async {
            while !is_requested() {
                yield_now().await;
            }
        };
        timeout(LONG, requested).await.unwrap();
        counts.forget("u");
        for _ in 0..100 {
            yield_now().await;
        }
        assert!(!is_requested());
    }
}

//! The work queue decides which Worker is reconciled when, earliest due time first. A Worker is reconciled by one
//! slot at a time; requests that arrive meanwhile are handled right after. A waiting Worker occupies no slot.
//!
//! A slot is meant for the work of a reconcile, which takes milliseconds. A reconcile that gets no answer from the
//! API server for half a second gives its slot to another Worker. The number of such reconciles is bounded by their
//! machine deployments (`MAX_WAITING_WEIGHT`), because each holds in memory what it is about to write.

pub(crate) mod backoff;
pub(crate) mod rate_limit;

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tracing::error;

use runtime::cloud::WorkerName;
use runtime::cluster::slot::Slot;

/// When to reconcile a Worker again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requeue {
    /// On the next event.
    OnEvent,
    /// After this time, or earlier on an event.
    After(Duration),
}

/// Maximum number of machine deployments, over all Workers, whose reconciles wait without a slot.
const MAX_WAITING_WEIGHT: usize = 256;

/// Requeue delay after a reconcile has panicked.
const PANIC_DELAY: Duration = Duration::from_secs(60);

/// Reconciles requested Workers in `slots` slots until it is `stopped` or all senders are dropped, then waits for
/// running reconciles. `weight` is the number of machine deployments of a Worker. A panic only affects its own
/// Worker.
pub(crate) async fn run<F>(
    mut requests: UnboundedReceiver<WorkerName>,
    slots: usize,
    weight: impl Fn(&WorkerName) -> usize + Clone + Send + 'static,
    stopped: impl Future<Output = ()>,
    mut reconcile: impl FnMut(WorkerName) -> F,
) where
    F: Future<Output = Requeue> + Send + 'static,
{
    let mut schedule = Schedule::new(slots);
    let mut running = JoinSet::new();
    let mut stopped = pin!(stopped);
    loop {
        while let Some((worker, slot)) = schedule.start(Instant::now(), weight.clone()) {
            let reconciled = AssertUnwindSafe(slot.reconcile(reconcile(worker.clone()))).catch_unwind();
            running.spawn(async move { (worker, reconciled.await) });
        }
        let next = schedule.next_start(Instant::now());
        tokio::select! {
            biased;
            () = &mut stopped => break,
            Some(ended) = running.join_next() => {
                // Nothing is cancelled while the queue runs, and panics are caught.
                let Ok((worker, result)) = ended else { continue };
                let requeue = result.unwrap_or_else(|_| {
                    error!(namespace = worker.namespace, name = worker.name, "reconcile panicked");
                    Requeue::After(PANIC_DELAY)
                });
                schedule.ended(worker, requeue, Instant::now());
            }
            request = requests.recv() => match request {
                Some(worker) => schedule.add(worker, Instant::now()),
                None => break,
            },
            () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
        }
    }
    while running.join_next().await.is_some() {}
}

/// Due times of Workers, and running reconciles.
struct Schedule {
    slots: usize,
    due: BTreeSet<(Instant, WorkerName)>,
    times: BTreeMap<WorkerName, Instant>,
    running: BTreeMap<WorkerName, Running>,
}

/// A running reconcile.
struct Running {
    slot: Slot,
    /// Computed only when needed, because it decodes the Worker.
    weight: LazyCell<usize, Box<dyn FnOnce() -> usize + Send>>,
    /// When the Worker is due again because of an event during this reconcile.
    again: Option<Instant>,
}

impl Schedule {
    fn new(slots: usize) -> Self {
        Self { slots, due: BTreeSet::new(), times: BTreeMap::new(), running: BTreeMap::new() }
    }

    /// Enqueues a Worker for the time `at`. The earliest of all requested times applies.
    fn add(&mut self, worker: WorkerName, at: Instant) {
        if let Some(running) = self.running.get_mut(&worker) {
            running.again = Some(running.again.map_or(at, |again| again.min(at)));
            return;
        }
        match self.times.get(&worker) {
            Some(cached) if *cached <= at => return,
            Some(cached) => drop(self.due.remove(&(*cached, worker.clone()))),
            None => {}
        }
        self.times.insert(worker.clone(), at);
        self.due.insert((at, worker));
    }

    /// Pops the next due Worker if there is a slot for it, and marks it as running.
    fn start(
        &mut self,
        now: Instant,
        weight: impl FnOnce(&WorkerName) -> usize + Send + 'static,
    ) -> Option<(WorkerName, Slot)> {
        if self.next_start(now)? > now {
            return None;
        }
        let (_, worker) = self.due.pop_first()?;
        self.times.remove(&worker);
        let slot = Slot::taken(now);
        let weighed = worker.clone();
        let weight: Box<dyn FnOnce() -> usize + Send> = Box::new(move || weight(&weighed));
        let running = Running { slot: slot.clone(), weight: LazyCell::new(weight), again: None };
        self.running.insert(worker.clone(), running);
        Some((worker, slot))
    }

    /// Called when the reconcile of a Worker has ended.
    fn ended(&mut self, worker: WorkerName, requeue: Requeue, now: Instant) {
        let again = self.running.remove(&worker).and_then(|running| running.again);
        let requeued = match requeue {
            Requeue::OnEvent => None,
            Requeue::After(delay) => Some(now + delay),
        };
        if let Some(at) = [again, requeued].into_iter().flatten().min() {
            self.add(worker, at);
        }
    }

    /// When the next Worker can start if no reconcile ends before; `None` if none is due or too many wait.
    fn next_start(&self, now: Instant) -> Option<Instant> {
        let (at, _) = self.due.first()?;
        if self.running.len() < self.slots {
            return Some(*at);
        }
        let (occupied, waiting): (Vec<&Running>, Vec<&Running>) =
            self.running.values().partition(|running| running.slot.ends() > now);
        if waiting.into_iter().map(|running| *running.weight).sum::<usize>() >= MAX_WAITING_WEIGHT {
            return None;
        }
        let is_free = occupied.len() < self.slots;
        let free_at = if is_free { now } else { occupied.into_iter().map(|running| running.slot.ends()).min()? };
        Some(free_at.max(*at))
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::mpsc;

    use super::*;
    use runtime::cluster::slot::SLOT_TIMEOUT;

    fn worker(name: &str) -> WorkerName {
        WorkerName { namespace: "ns".to_owned(), name: name.to_owned() }
    }

    /// The Worker that starts at that time, if any.
    fn started(schedule: &mut Schedule, now: Instant, weight: usize) -> Option<WorkerName> {
        schedule.start(now, move |_| weight).map(|(worker, _)| worker)
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_worker_is_reconciled_by_one_slot_at_a_time_and_again_after_an_event() {
        let mut schedule = Schedule::new(2);
        let now = Instant::now();
        schedule.add(worker("a"), now);
        schedule.add(worker("a"), now);
        assert_eq!(started(&mut schedule, now, 1), Some(worker("a")));
        assert_eq!(started(&mut schedule, now, 1), None, "asked for twice, done once");
        schedule.add(worker("a"), now);
        assert_eq!(started(&mut schedule, now, 1), None, "it is under way");
        schedule.ended(worker("a"), Requeue::OnEvent, now);
        assert_eq!(started(&mut schedule, now, 1), Some(worker("a")), "something has happened meanwhile");
        schedule.ended(worker("a"), Requeue::OnEvent, now);
        assert_eq!((started(&mut schedule, now, 1), schedule.next_start(now)), (None, None));
        assert!(schedule.times.is_empty() && schedule.due.is_empty() && schedule.running.is_empty());
    }

    #[test]
    fn the_earliest_time_counts_and_slots_are_bounded() {
        let mut schedule = Schedule::new(1);
        let now = Instant::now();
        schedule.add(worker("later"), now + seconds(10));
        schedule.add(worker("later"), now + seconds(20));
        schedule.add(worker("a"), now + seconds(30));
        assert_eq!(schedule.next_start(now), Some(now + seconds(10)));
        schedule.add(worker("a"), now);
        assert_eq!(
            started(&mut schedule, now, MAX_WAITING_WEIGHT),
            Some(worker("a")),
            "an event comes before its requeue"
        );
        assert_eq!(started(&mut schedule, now + seconds(15), MAX_WAITING_WEIGHT), None, "the only slot is occupied");
        assert_eq!(schedule.next_start(now + seconds(15)), None);
        schedule.ended(worker("a"), Requeue::After(seconds(60)), now + seconds(15));
        assert_eq!(started(&mut schedule, now + seconds(15), MAX_WAITING_WEIGHT), Some(worker("later")));
        schedule.add(worker("later"), now + seconds(15));
        schedule.ended(worker("later"), Requeue::After(seconds(1)), now + seconds(15));
        assert_eq!(schedule.next_start(now), Some(now + seconds(15)));
    }

    #[test]
    fn waiting_reconcile_occupies_no_slot() {
        let mut schedule = Schedule::new(2);
        let now = Instant::now();
        let heavy = MAX_WAITING_WEIGHT / 8;
        (0..100).for_each(|number| schedule.add(worker(&format!("{number:02}")), now));
        let started = |schedule: &mut Schedule, now| {
            std::iter::from_fn(|| started(schedule, now, heavy)).map(|worker| worker.name).collect::<Vec<_>>()
        };
        assert_eq!(started(&mut schedule, now), ["00", "01"]);
        assert_eq!(schedule.next_start(now), Some(now + SLOT_TIMEOUT));
        for at in 1..4 {
            assert_eq!(started(&mut schedule, now + SLOT_TIMEOUT * at).len(), 2, "nobody has ended");
        }
        let later = now + SLOT_TIMEOUT * 20;
        assert_eq!(schedule.running.len(), 8);
        assert_eq!((started(&mut schedule, later), schedule.next_start(later)), (vec![], None), "enough of them wait");
        ["00", "01", "02"].into_iter().for_each(|name| schedule.ended(worker(name), Requeue::OnEvent, later));
        assert_eq!(started(&mut schedule, later).len(), 2, "slots are free again");
    }

    #[test]
    fn counts_machines_only_for_the_weight() {
        let mut schedule = Schedule::new(2);
        let now = Instant::now();
        let requested = Arc::new(AtomicUsize::new(0));
        let start = |schedule: &mut Schedule, name: &str, now| {
            schedule.add(worker(name), now);
            let requested = Arc::clone(&requested);
            schedule.start(now, move |_| requested.fetch_add(1, Ordering::Relaxed) + 1).is_some()
        };
        assert!(start(&mut schedule, "a", now) && start(&mut schedule, "b", now));
        schedule.ended(worker("b"), Requeue::OnEvent, now);
        assert!(start(&mut schedule, "b", now));
        assert_eq!(requested.load(Ordering::Relaxed), 0, "nobody waits for answers");
        let later = now + SLOT_TIMEOUT;
        assert!(start(&mut schedule, "c", later) && start(&mut schedule, "d", later));
        assert_eq!(requested.load(Ordering::Relaxed), 2, "once for each that waits");
    }

    #[test]
    fn reconcile_with_a_response_keeps_its_slot() {
        let mut schedule = Schedule::new(1);
        let start = Instant::now();
        ["a", "b"].into_iter().for_each(|name| schedule.add(worker(name), start));
        let slot = schedule.start(start, |_| 1).map(|(_, slot)| slot).unwrap();
        let responses: Vec<Instant> = (1..100).map(|tenths| start + SLOT_TIMEOUT / 5 * tenths).collect();
        for now in &responses {
            assert_eq!(started(&mut schedule, *now, 1), None, "it is at work");
            slot.extend(*now);
        }
        let silent = *responses.last().unwrap() + SLOT_TIMEOUT;
        assert_eq!(schedule.next_start(start), Some(silent));
        assert_eq!(started(&mut schedule, silent, 1), Some(worker("b")));
    }

    #[tokio::test]
    async fn a_reconcile_that_panics_disturbs_no_other() {
        let (sender, requests) = mpsc::unbounded_channel();
        let done = Arc::new(AtomicUsize::new(0));
        for name in ["a", "poison", "b"] {
            sender.send(worker(name)).unwrap();
        }
        let queue = tokio::spawn(run(requests, 1, |_| 1, pending(), {
            let done = Arc::clone(&done);
            move |worker| {
                let done = Arc::clone(&done);
                async move {
                    assert!(worker.name != "poison", "as a bug would");
                    done.fetch_add(1, Ordering::Relaxed);
                    Requeue::OnEvent
                }
            }
        }));
        tokio::time::timeout(seconds(10), async {
            while done.load(Ordering::Relaxed) < 2 {
                tokio::task::yield_now().await;
            }
        })
        .await
        .unwrap();
        drop(sender);
        queue.await.unwrap();
    }
}

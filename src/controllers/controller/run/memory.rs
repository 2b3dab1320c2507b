//! State that the controller keeps per Worker between reconciles, dropped as a whole with the Worker. State that has
//! to survive a restart is kept in the Worker's status instead.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use crate::controller::queue::backoff::Backoff;
use crate::controller::queue::rate_limit::RateLimit;
use explanations::preview::dry_run::Comparison;

/// State kept for one Worker.
#[derive(Debug, Default)]
pub(crate) struct WorkerMemory {
    pub(crate) backoff: Backoff,
    pub(crate) rate_limit: RateLimit,
    /// Version of the Cluster at the last comparison that found no drift.
    pub(crate) compared_cluster: Option<u64>,
    /// With `--shadow`: the last comparison with what this controller would write.
    pub(crate) comparison: Option<Comparison>,
    /// Version of the Worker with which the last operation began.
    pub(crate) began_with: Option<u64>,
    /// The last operation missed something: an object that it deleted still exists, or a watch reported a change late
    /// that was made before the operation began. Another operation has to start without a request.
    pub(crate) must_start_operation: bool,
    /// Whether the bounds of the current operation are published. The status shows that only if the clocks of
    /// gardenlet and controller agree, and not within one second.
    pub(crate) publication: Publication,
    /// Dropped with the memory, so that work still in progress detects that the Worker moved to another shard.
    pub(crate) assignment: Arc<()>,
    /// Whether machine objects were reread since this process took over the Worker.
    pub(crate) has_read_machine_objects: bool,
    /// Version in which the Worker was found steady while the watches were behind.
    pub(crate) steady_until_watched: Option<u64>,
    unready_since: Option<Instant>,
    /// The unsupported operation that was reported.
    unsupported_migration: Option<String>,
}

/// Whether the bounds of an operation are published for gardenlet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Publication {
    /// Another process began the operation.
    #[default]
    Unknown,
    /// The operation began, and its bounds are not published yet.
    Due,
    Done,
}

impl WorkerMemory {
    /// Remaining time for which nodes have to stay unready before it is reported; `None` if it is time to report.
    pub(crate) fn until_unready_is_reported(&mut self, lasting: Duration, now: Instant) -> Option<Duration> {
        let since = *self.unready_since.get_or_insert(now);
        (since + lasting).checked_duration_since(now).filter(|wait| !wait.is_zero())
    }

    /// Handles a late watch event of a machine object. The API server counts the versions of Workers and machine
    /// objects together. A version older than the one with which the operation began was therefore missing from its
    /// inputs.
    pub(crate) fn planned_object_changed(&mut self, version: u64) {
        self.must_start_operation |= self.began_with.is_some_and(|began| version < began);
    }

    /// Whether the Worker in this version can be skipped until the watches have caught up.
    pub(crate) fn awaits_watches(&self, version: u64) -> bool {
        self.steady_until_watched == Some(version) && !self.must_start_operation
    }

    /// Called after the status was written. `is_published`: it included the bounds of the machine deployments.
    pub(crate) fn status_is_written(&mut self, is_published: bool) {
        self.rate_limit.text_written();
        if is_published {
            self.publication = Publication::Done;
        }
    }

    /// With `--shadow`: stores the comparison and returns whether it has changed.
    pub(crate) fn comparison_changed(&mut self, comparison: &Comparison) -> bool {
        let is_news = self.comparison.as_ref() != Some(comparison);
        self.comparison = Some(comparison.clone());
        is_news
    }

    /// Stores the requested operation if it is unsupported, and returns whether it has changed.
    pub(crate) fn unsupported_migration_changed(&mut self, request: Option<&str>) -> bool {
        let is_news = self.unsupported_migration.as_deref() != request;
        self.unsupported_migration = request.map(str::to_owned);
        is_news
    }

    /// Called once the condition is up to date.
    pub(crate) fn readiness_is_reported(&mut self) {
        self.unready_since = None;
    }
}

/// State of all Workers, by UID.
#[derive(Default)]
pub(crate) struct Memory(Mutex<BTreeMap<String, WorkerMemory>>);

impl Memory {
    /// Reads or changes the state of a Worker.
    pub(crate) fn of<T>(&self, uid: &str, change: impl FnOnce(&mut WorkerMemory) -> T) -> T {
        change(self.all().entry(uid.to_owned()).or_default())
    }

    /// Drops the state of a deleted Worker.
    pub(crate) fn forget(&self, uid: &str) {
        self.all().remove(uid);
    }

    /// Folds over the comparisons of all Workers.
    pub(crate) fn comparisons<T: Default>(&self, mut count: impl FnMut(&mut T, &Comparison)) -> T {
        let mut counted = T::default();
        self.all().values().filter_map(|memory| memory.comparison.as_ref()).for_each(|one| count(&mut counted, one));
        counted
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, WorkerMemory>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LASTING: Duration = Duration::from_secs(30);

    #[test]
    fn only_lasting_unreadiness_is_reported() {
        let memory = Memory::default();
        let start = Instant::now();
        let wait = |uid: &str, now: Instant| memory.of(uid, |worker| worker.until_unready_is_reported(LASTING, now));
        assert_eq!(wait("w", start), Some(LASTING));
        assert_eq!(wait("w", start + LASTING / 2), Some(LASTING / 2), "counted from the first time");
        assert_eq!(wait("other", start + LASTING), Some(LASTING));
        assert_eq!(wait("w", start + LASTING), None);
        memory.of("w", WorkerMemory::readiness_is_reported);
        assert_eq!(wait("w", start + LASTING), Some(LASTING));
    }

    #[test]
    fn a_change_from_before_an_operation_begins_another_one_where_the_watch_is_late() {
        let overlooked = |began_with, version| {
            let mut memory = WorkerMemory { began_with, ..WorkerMemory::default() };
            memory.planned_object_changed(version);
            memory.must_start_operation
        };
        assert!(overlooked(Some(7), 6));
        assert!(!overlooked(Some(7), 8), "that is for the next operation");
        assert!(!overlooked(None, 6), "no operation was to go by it");
    }

    #[test]
    fn only_the_unrequested_version_waits_for_watches() {
        let awaits = |memory: WorkerMemory| memory.awaits_watches(7);
        let steady = |version| WorkerMemory { steady_until_watched: Some(version), ..WorkerMemory::default() };
        assert!(awaits(steady(7)));
        assert!(!awaits(steady(6)), "somebody may have asked for something since");
        assert!(!awaits(WorkerMemory::default()), "nobody has found out what is asked");
        assert!(!awaits(WorkerMemory { must_start_operation: true, ..steady(7) }), "an operation has to begin");
    }

    #[test]
    fn deleted_worker_leaves_no_memory() {
        let memory = Memory::default();
        memory.of("w", |worker| worker.backoff.failed(false, Instant::now()));
        memory.forget("w");
        assert!(memory.all().is_empty());
        assert_eq!(memory.of("w", |worker| worker.backoff.failed(false, Instant::now())).delay.as_secs(), 1);
    }

    #[test]
    fn bounds_are_due_until_they_are_published() {
        for before in [Publication::Unknown, Publication::Due] {
            let mut memory = WorkerMemory { publication: before, ..WorkerMemory::default() };
            memory.status_is_written(false);
            assert_eq!(memory.publication, before);
            memory.status_is_written(true);
            assert_eq!(memory.publication, Publication::Done);
            memory.status_is_written(false);
            assert_eq!(memory.publication, Publication::Done, "no operation has begun since");
        }
    }

    #[test]
    fn only_what_differs_in_another_way_is_news() {
        let mut memory = WorkerMemory::default();
        let invalid = Comparison::Unplanned("no image".to_owned());
        assert!(memory.comparison_changed(&Comparison::Same));
        assert!(!memory.comparison_changed(&Comparison::Same));
        assert!(memory.comparison_changed(&invalid) && !memory.comparison_changed(&invalid));
    }
}

//! Something that is done behind the scenes, and what is known of it meanwhile.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tracing::Instrument;

use super::{TaskEnded, WorkerName};
use crate::api::gardener::{ErrorCode, Worker};
use crate::provider::DependencyFailure;

/// How long a reconcile waits for tasks: long enough for a cloud that has nothing to do, too short for anybody to
/// notice.
pub(in crate::cloud) const SETTLE_TIMEOUT: Duration = Duration::from_millis(400);
/// When a failed task is tried again: after the first time, then after twice as long each time, up to the second.
const RETRIES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));

/// A task; it ends when this is dropped.
pub(in crate::cloud) struct BackgroundTask<T> {
    state: watch::Receiver<TaskState<T>>,
    task: JoinHandle<()>,
}

/// How a task stands.
#[derive(Clone, Debug)]
pub(in crate::cloud) enum TaskState<T> {
    /// It goes on; what holds it up.
    Running(Option<Delay>),
    /// It is over, since then.
    Ended(Result<T, DependencyFailure>, Instant),
}

/// What holds a task up, and the code for it if that takes too long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::cloud) struct Delay {
    pub(in crate::cloud) text: String,
    pub(in crate::cloud) code: Option<ErrorCode>,
}

/// Where a task reports what it is held up by.
pub struct Report<T>(watch::Sender<TaskState<T>>);

impl<T: Send + Sync + 'static> Report<T> {
    pub(in crate::cloud) fn delayed(&self, text: impl Into<String>, code: Option<ErrorCode>) {
        let _ = self.0.send(TaskState::Running(Some(Delay { text: text.into(), code })));
    }
}

impl<T: Clone + Send + Sync + 'static> BackgroundTask<T> {
    /// Begins `work` and calls `tell` when it is over.
    pub(in crate::cloud) fn begin<Work>(
        work: impl FnOnce(Arc<Report<T>>) -> Work,
        tell: impl FnOnce() + Send + 'static,
    ) -> Self
    where
        Work: Future<Output = Result<T, DependencyFailure>> + Send + 'static,
    {
        let (sender, state) = watch::channel(TaskState::Running(None));
        let report = Arc::new(Report(sender));
        let work = work(Arc::clone(&report));
        let task = async move {
            // One that has panicked has failed, and is tried again like any other.
            let result = AssertUnwindSafe(work).catch_unwind().await;
            let result =
                result.unwrap_or_else(|_| Err(DependencyFailure::without_code("the task ended without a result")));
            let _ = report.0.send(TaskState::Ended(result, Instant::now()));
            tell();
        };
        Self { state, task: tokio::spawn(task.in_current_span()) }
    }

    /// How it stands now.
    pub(in crate::cloud) fn state(&self) -> TaskState<T> {
        self.state.borrow().clone()
    }

    /// Whether it still goes on.
    pub(in crate::cloud) fn is_running(&self) -> bool {
        matches!(self.state(), TaskState::Running(_))
    }

    /// Something to wait with for its end.
    pub(in crate::cloud) fn watch(&self) -> watch::Receiver<TaskState<T>> {
        self.state.clone()
    }
}

impl<T> Drop for BackgroundTask<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// How long until a failed task is tried again; `None` when it is time.
pub(in crate::cloud) fn due(since: Instant, tries: u32) -> Option<Duration> {
    let delay = RETRIES.0.saturating_mul(2_u32.saturating_pow(tries)).min(RETRIES.1);
    (since + delay).checked_duration_since(Instant::now()).filter(|wait| !wait.is_zero())
}

/// What has to be called when a task of the Worker has ended: the Worker is reconciled, unless whoever began the task has
/// waited for it.
pub(in crate::cloud) fn ended(worker: &Worker, task_ended: &TaskEnded) -> impl FnOnce() + Send + use<> {
    let (task_ended, begun) = (Arc::clone(task_ended), Instant::now());
    let name = WorkerName {
        namespace: worker.metadata.namespace.clone().unwrap_or_default(),
        name: worker.metadata.name.clone().unwrap_or_default(),
    };
    move || {
        if begun.elapsed() >= SETTLE_TIMEOUT {
            task_ended(name);
        }
    }
}

/// Waits a moment for tasks to come to an end.
pub(in crate::cloud) async fn settle<T: Clone + Send + Sync>(
    tasks: Vec<watch::Receiver<TaskState<T>>>,
    moment: Duration,
) {
    let ends = tasks.into_iter().map(|mut task| async move {
        let _ = task.wait_for(|state| matches!(state, TaskState::Ended(..))).await;
    });
    let _ = tokio::time::timeout(moment, join_all(ends)).await;
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_has_failed_once_and_is_due_again() {
        let is_told = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&is_told);
        let task: BackgroundTask<()> =
            BackgroundTask::begin(|_| async { panic!("in a test") }, move || told.store(true, Ordering::Relaxed));
        task.watch().wait_for(|state| matches!(state, TaskState::Ended(..))).await.unwrap();
        tokio::task::yield_now().await;
        assert!(is_told.load(Ordering::Relaxed), "its Worker is reconciled");
        tokio::time::advance(RETRIES.0).await;
        let TaskState::Ended(Err(_), since) = task.state() else { panic!("it has not failed") };
        assert_eq!(due(since, 0), None, "it is time");
    }
}

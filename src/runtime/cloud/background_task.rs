//! A background task at a cloud, and its state.

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
use decisions::provider::DependencyFailure;
use wire::api::gardener::{ErrorCode, Worker};

/// How long a reconcile waits for tasks: long enough if a cloud has nothing to do, and too short to be noticed.
pub(in crate::cloud) const SETTLE_TIMEOUT: Duration = Duration::from_millis(400);
/// First and maximum retry delay of a failed task. The delay doubles with each failure.
const RETRIES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));

/// A task, aborted when this is dropped.
pub(in crate::cloud) struct BackgroundTask<T> {
    state: watch::Receiver<TaskState<T>>,
    task: JoinHandle<()>,
}

/// State of a task.
#[derive(Clone, Debug)]
pub(in crate::cloud) enum TaskState<T> {
    /// It is running, possibly with a cause of a delay.
    Running(Option<Delay>),
    /// It has ended at that time.
    Ended(Result<T, DependencyFailure>, Instant),
}

/// What delays a task, and the error code if that takes too long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::cloud) struct Delay {
    pub(in crate::cloud) text: String,
    pub(in crate::cloud) code: Option<ErrorCode>,
}

/// Lets a task report delays.
pub struct Report<T>(watch::Sender<TaskState<T>>);

impl<T: Send + Sync + 'static> Report<T> {
    pub(in crate::cloud) fn delayed(&self, text: impl Into<String>, code: Option<ErrorCode>) {
        let _ = self.0.send(TaskState::Running(Some(Delay { text: text.into(), code })));
    }
}

impl<T: Clone + Send + Sync + 'static> BackgroundTask<T> {
    /// Starts `work` and calls `tell` when it has ended.
    pub(in crate::cloud) fn begin<Work>(
        work: impl FnOnce(Arc<Report<T>>) -> Work,
        notify: impl FnOnce() + Send + 'static,
    ) -> Self
    where
        Work: Future<Output = Result<T, DependencyFailure>> + Send + 'static,
    {
        let (sender, state) = watch::channel(TaskState::Running(None));
        let report = Arc::new(Report(sender));
        let work = work(Arc::clone(&report));
        let task = async move {
            // A panic is a failure and retried like any other.
            let result = AssertUnwindSafe(work).catch_unwind().await;
            let result =
                result.unwrap_or_else(|_| Err(DependencyFailure::without_code("the task ended without a result")));
            let _ = report.0.send(TaskState::Ended(result, Instant::now()));
            notify();
        };
        Self { state, task: tokio::spawn(task.in_current_span()) }
    }

    /// The current state.
    pub(in crate::cloud) fn state(&self) -> TaskState<T> {
        self.state.borrow().clone()
    }

    /// Whether it is still running.
    pub(in crate::cloud) fn is_running(&self) -> bool {
        matches!(self.state(), TaskState::Running(_))
    }

    /// Returns a receiver that can wait for its end.
    pub(in crate::cloud) fn watch(&self) -> watch::Receiver<TaskState<T>> {
        self.state.clone()
    }
}

impl<T> Drop for BackgroundTask<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Remaining time until a failed task is retried; `None` if it is due.
pub(in crate::cloud) fn due(since: Instant, tries: u32) -> Option<Duration> {
    let delay = RETRIES.0.saturating_mul(2_u32.saturating_pow(tries)).min(RETRIES.1);
    (since + delay).checked_duration_since(Instant::now()).filter(|wait| !wait.is_zero())
}

/// Returns the callback for the end of a task. It requeues the Worker, unless the reconcile that started the task was
/// still waiting for it.
pub(in crate::cloud) fn ended(worker: &Worker, task_ended: &TaskEnded) -> impl FnOnce() + Send + use<> {
    let task_ended = Arc::clone(task_ended);
    let begun = Instant::now();
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

/// Waits briefly for tasks to end.
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
        let is_reported = Arc::new(AtomicBool::new(false));
        let reported = Arc::clone(&is_reported);
        let task: BackgroundTask<()> =
            BackgroundTask::begin(|_| async { panic!("in a test") }, move || reported.store(true, Ordering::Relaxed));
        task.watch().wait_for(|state| matches!(state, TaskState::Ended(..))).await.unwrap();
        tokio::task::yield_now().await;
        assert!(is_reported.load(Ordering::Relaxed), "its Worker is reconciled");
        tokio::time::advance(RETRIES.0).await;
        let TaskState::Ended(Err(_), since) = task.state() else { panic!("it has not failed") };
        assert_eq!(due(since, 0), None, "it is time");
    }
}

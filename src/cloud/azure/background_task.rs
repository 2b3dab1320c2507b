//! Something that is done behind the scenes, and what is known of it meanwhile.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::Instrument;

use super::retry_listener::{RetryCause, RetryListener};
use crate::api::gardener::ErrorCode;
use crate::provider::DependencyFailure;

/// The first wait for something else that goes on with a scale set, and the longest.
pub(super) const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// How long something else may go on with a scale set.
pub(super) const OPERATION_TIMEOUT: Duration = Duration::from_secs(300);

/// A task; it ends when this is dropped.
pub(super) struct BackgroundTask<T> {
    state: watch::Receiver<TaskState<T>>,
    task: JoinHandle<()>,
}

/// How an task stands.
#[derive(Clone, Debug)]
pub(super) enum TaskState<T> {
    /// It goes on; what holds it up.
    Running(Option<Delay>),
    /// It is over, since then.
    Ended(Result<T, DependencyFailure>, Instant),
}

/// What holds an task up, and the code for it if that takes too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Delay {
    pub(super) text: String,
    pub(super) code: Option<ErrorCode>,
}

/// Where an task says what it is held up by.
pub(super) struct Report<T>(watch::Sender<TaskState<T>>);

impl<T: Send + Sync + 'static> Report<T> {
    pub(super) fn delayed(&self, text: impl Into<String>, code: Option<ErrorCode>) {
        let _ = self.0.send(TaskState::Running(Some(Delay { text: text.into(), code })));
    }
}

impl<T: Send + Sync + 'static> RetryListener for Report<T> {
    fn delayed(&self, cause: RetryCause) {
        let (text, code) = match cause {
            RetryCause::Answer { status: 429, retry_after } => {
                let wait = retry_after.map(|seconds| format!(" and asks to wait {seconds} s")).unwrap_or_default();
                (format!("Azure limits the rate of requests{wait}"), Some(ErrorCode::InfraRateLimitsExceeded))
            }
            RetryCause::Answer { status, .. } => (format!("Azure answers with status {status}"), None),
            RetryCause::NoAnswer => ("Azure or its login authority can't be reached".to_owned(), None),
        };
        Report::delayed(self, text, code);
    }
}

impl<T: Clone + Send + Sync + 'static> BackgroundTask<T> {
    /// Begins `work` and calls `tell` when it is over.
    pub(super) fn begin<Work>(work: impl FnOnce(Arc<Report<T>>) -> Work, tell: impl FnOnce() + Send + 'static) -> Self
    where
        Work: Future<Output = Result<T, DependencyFailure>> + Send + 'static,
    {
        let (sender, state) = watch::channel(TaskState::Running(None));
        let report = Arc::new(Report(sender));
        let work = work(Arc::clone(&report));
        let task = async move {
            let result = work.await;
            let _ = report.0.send(TaskState::Ended(result, Instant::now()));
            tell();
        };
        Self { state, task: tokio::spawn(task.in_current_span()) }
    }

    /// How it stands now.
    pub(super) fn state(&self) -> TaskState<T> {
        let state = self.state.borrow().clone();
        match state {
            TaskState::Running(_)
                if self.task.is_finished() && matches!(*self.state.borrow(), TaskState::Running(_)) =>
            {
                let failure = DependencyFailure { message: "the task ended without a result".to_owned(), code: None };
                TaskState::Ended(Err(failure), Instant::now())
            }
            state => state,
        }
    }

    /// Whether it still goes on.
    pub(super) fn is_running(&self) -> bool {
        matches!(self.state(), TaskState::Running(_))
    }

    /// Something to wait with for its end.
    pub(super) fn watch(&self) -> watch::Receiver<TaskState<T>> {
        self.state.clone()
    }
}

impl<T> Drop for BackgroundTask<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Waits a moment for tasks to come to an end.
pub(super) async fn settle<T: Clone + Send + Sync>(tasks: Vec<watch::Receiver<TaskState<T>>>, moment: Duration) {
    let ends = tasks.into_iter().map(|mut task| async move {
        let _ = task.wait_for(|state| matches!(state, TaskState::Ended(..))).await;
    });
    let _ = tokio::time::timeout(moment, join_all(ends)).await;
}

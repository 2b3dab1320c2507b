//! Something that is done behind the scenes, and what is known of it meanwhile.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::Instrument;

use super::notes::{Listener, Trouble};
use crate::api::gardener::ErrorCode;
use crate::provider::DependencyFailure;

/// The first wait for something else that goes on with a scale set, and the longest.
pub(super) const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// How long something else may go on with a scale set.
pub(super) const PATIENCE: Duration = Duration::from_secs(300);

/// An errand; it ends when this is dropped.
pub(super) struct Errand<T> {
    state: watch::Receiver<State<T>>,
    task: JoinHandle<()>,
}

/// How an errand stands.
#[derive(Clone, Debug)]
pub(super) enum State<T> {
    /// It goes on; what holds it up.
    Going(Option<Holdup>),
    /// It is over, since then.
    Over(Result<T, DependencyFailure>, Instant),
}

/// What holds an errand up, and the code for it if that takes too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Holdup {
    pub(super) text: String,
    pub(super) code: Option<ErrorCode>,
}

/// Where an errand says what it is held up by.
pub(super) struct Report<T>(watch::Sender<State<T>>);

impl<T: Send + Sync + 'static> Report<T> {
    pub(super) fn held_up(&self, text: impl Into<String>, code: Option<ErrorCode>) {
        let _ = self.0.send(State::Going(Some(Holdup { text: text.into(), code })));
    }
}

impl<T: Send + Sync + 'static> Listener for Report<T> {
    fn held_up(&self, trouble: Trouble) {
        let (text, code) = match trouble {
            Trouble::Answer { status: 429, retry_after } => {
                let wait = retry_after.map(|seconds| format!(" and asks to wait {seconds} s")).unwrap_or_default();
                (format!("Azure limits the rate of requests{wait}"), Some(ErrorCode::InfraRateLimitsExceeded))
            }
            Trouble::Answer { status, .. } => (format!("Azure answers with status {status}"), None),
            Trouble::NoAnswer => ("Azure or its authority can't be reached".to_owned(), None),
        };
        Report::held_up(self, text, code);
    }
}

impl<T: Clone + Send + Sync + 'static> Errand<T> {
    /// Begins `work` and calls `tell` when it is over.
    pub(super) fn begin<Work>(work: impl FnOnce(Arc<Report<T>>) -> Work, tell: impl FnOnce() + Send + 'static) -> Self
    where
        Work: Future<Output = Result<T, DependencyFailure>> + Send + 'static,
    {
        let (sender, state) = watch::channel(State::Going(None));
        let report = Arc::new(Report(sender));
        let work = work(Arc::clone(&report));
        let task = async move {
            let result = work.await;
            let _ = report.0.send(State::Over(result, Instant::now()));
            tell();
        };
        Self { state, task: tokio::spawn(task.in_current_span()) }
    }

    /// How it stands now.
    pub(super) fn state(&self) -> State<T> {
        let state = self.state.borrow().clone();
        match state {
            State::Going(_) if self.task.is_finished() && matches!(*self.state.borrow(), State::Going(_)) => {
                let failure = DependencyFailure { message: "the errand ended without a result".to_owned(), code: None };
                State::Over(Err(failure), Instant::now())
            }
            state => state,
        }
    }

    /// Whether it still goes on.
    pub(super) fn is_going(&self) -> bool {
        matches!(self.state(), State::Going(_))
    }

    /// Something to wait with for its end.
    pub(super) fn watch(&self) -> watch::Receiver<State<T>> {
        self.state.clone()
    }
}

impl<T> Drop for Errand<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Waits a moment for errands to come to an end.
pub(super) async fn settle<T: Clone + Send + Sync>(errands: Vec<watch::Receiver<State<T>>>, moment: Duration) {
    let ends = errands.into_iter().map(|mut errand| async move {
        let _ = errand.wait_for(|state| matches!(state, State::Over(..))).await;
    });
    let _ = tokio::time::timeout(moment, join_all(ends)).await;
}

//! Whether the Worker of a reconcile is still this process's, where several share the Workers of a seed. The write fence asks before
//! each write: a reconcile under way writes nothing more once another process may have the Worker.

use std::future::Future;
use std::sync::Arc;

/// Tells whether the Worker is ours.
pub(crate) type Assignment = Arc<dyn Fn() -> bool + Send + Sync>;

tokio::task_local! {
    static OWN: Assignment;
}

/// A reconcile that writes only while its Worker is ours.
pub(crate) fn while_assigned<F: Future>(assignment: Assignment, reconcile: F) -> impl Future<Output = F::Output> {
    OWN.scope(assignment, reconcile)
}

/// Whether whoever asks here may write: a reconcile whose Worker is ours, or somebody who works for no Worker.
pub(crate) fn is_held() -> bool {
    OWN.try_with(|is_ours| is_ours()).unwrap_or(true)
}

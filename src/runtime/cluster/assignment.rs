//! Whether the Worker of a reconcile still belongs to this process when several processes share a seed. The write fence
//! checks this before each write, so a running reconcile stops writing once another shard may own the Worker.

use std::future::Future;
use std::sync::Arc;

/// Returns whether the Worker belongs to this process.
pub type Assignment = Arc<dyn Fn() -> bool + Send + Sync>;

tokio::task_local! {
    static OWN: Assignment;
}

/// Runs a reconcile that may write only while its Worker belongs to this process.
pub fn while_assigned<F: Future>(assignment: Assignment, reconcile: F) -> impl Future<Output = F::Output> {
    OWN.scope(assignment, reconcile)
}

/// Whether the current task may write. Tasks outside of a reconcile always may.
pub(crate) fn is_held() -> bool {
    OWN.try_with(|is_ours| is_ours()).unwrap_or(true)
}

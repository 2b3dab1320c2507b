//! I/O: deletes many objects side by side. One that is gone is done; the first failure is reported after all were tried.

use futures::{StreamExt, stream};
use k8s_openapi::Resource;

use crate::cluster::PARALLEL_REQUESTS;
use crate::cluster::machine_objects::Cached;
use crate::cluster::machine_writes::MachineApis;
use crate::controller::error::ReconcileError;

/// Name and uid of an object that is to be deleted: the one that was seen, not one that was made under the same name since.
pub(crate) type Doomed<'a> = (&'a str, Option<&'a str>);

/// Deletes them.
///
/// # Errors
/// When one can't be deleted.
pub(crate) async fn delete_all<T: Cached>(apis: &MachineApis, doomed: Vec<Doomed<'_>>) -> Result<(), ReconcileError> {
    let deletions = doomed.into_iter().map(|(name, uid)| async move {
        let kind = T::Kind::KIND;
        apis.delete::<T>(name, uid).await.map_err(|source| ReconcileError::Delete {
            kind,
            name: name.to_owned(),
            source,
        })
    });
    let deletions: Vec<_> = deletions.collect();
    let mut results = stream::iter(deletions).buffer_unordered(PARALLEL_REQUESTS);
    let mut outcome = Ok(());
    while let Some(result) = results.next().await {
        outcome = outcome.and(result);
    }
    outcome
}

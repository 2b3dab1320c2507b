//! I/O: deletes many objects side by side. One that is gone is done; the first failure is reported after all were tried.

use futures::{StreamExt, stream};
use k8s_openapi::Resource;

use super::apply::PARALLEL_REQUESTS;
use super::machine_apis::MachineApis;
use super::mirror::Mirrored;
use super::reconcile::PassError;

/// Name and uid of an object that is to be deleted: the one that was seen, not one that was made under the same name since.
pub(super) type Doomed<'a> = (&'a str, Option<&'a str>);

/// Deletes them.
///
/// # Errors
/// When one can't be deleted.
pub(super) async fn delete_all<T: Mirrored>(apis: &MachineApis, doomed: Vec<Doomed<'_>>) -> Result<(), PassError> {
    let deletions = doomed.into_iter().map(|(name, uid)| async move {
        let kind = T::Kind::KIND;
        apis.delete::<T>(name, uid).await.map_err(|source| PassError::Delete { kind, name: name.to_owned(), source })
    });
    let deletions: Vec<_> = deletions.collect();
    let mut results = stream::iter(deletions).buffer_unordered(PARALLEL_REQUESTS);
    let mut outcome = Ok(());
    while let Some(result) = results.next().await {
        outcome = outcome.and(result);
    }
    outcome
}

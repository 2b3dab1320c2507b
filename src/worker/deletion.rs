//! I/O: deletes many objects side by side. One that is gone is done; the first failure is reported after all were tried.

use std::fmt::Debug;

use futures::{StreamExt, stream};
use kube::Resource;
use kube::api::{Api, DeleteParams, Preconditions};
use serde::de::DeserializeOwned;

use super::apply::PARALLEL_WRITES;
use super::reconcile::PassError;

/// An object that is to be deleted: the one that was seen, not one that was made under the same name since.
pub(super) struct Doomed {
    /// Its name.
    pub(super) name: String,
    /// Its uid, where it was seen.
    pub(super) uid: Option<String>,
}

/// Deletes them.
///
/// # Errors
/// When one can't be deleted.
pub(super) async fn delete_all<K>(api: &Api<K>, kind: &'static str, doomed: Vec<Doomed>) -> Result<(), PassError>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let deletions: Vec<_> = doomed.into_iter().map(|doomed| delete_one(api, kind, doomed)).collect();
    let mut results = stream::iter(deletions).buffer_unordered(PARALLEL_WRITES);
    let mut outcome = Ok(());
    while let Some(result) = results.next().await {
        outcome = outcome.and(result);
    }
    outcome
}

async fn delete_one<K>(api: &Api<K>, kind: &'static str, doomed: Doomed) -> Result<(), PassError>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let Doomed { name, uid } = doomed;
    let parameters = DeleteParams::default();
    let parameters = match uid {
        None => parameters,
        Some(uid) => parameters.preconditions(Preconditions { uid: Some(uid), resource_version: None }),
    };
    match api.delete(&name, &parameters).await {
        Ok(_) => Ok(()),
        // A conflict says that the object with that uid is gone and another one has its name.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        Err(source) => Err(PassError::Delete { kind, name, source }),
    }
}

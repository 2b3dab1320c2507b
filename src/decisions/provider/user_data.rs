//! The boot script of a pool's machines.

use super::{PoolProblem, UserData, WorkerContext};
use wire::api::gardener::WorkerPool;

/// Returns the boot script that the pool refers to.
///
/// # Errors
/// If the Secret or its key is missing, or the script is empty.
pub fn user_data(context: &WorkerContext<'_>, pool: &WorkerPool) -> Result<UserData, PoolProblem> {
    let reference = &pool.user_data_secret_ref;
    let namespace = context.worker.metadata.namespace.as_deref().unwrap_or_default();
    let secret = context
        .secrets
        .get(namespace, &reference.name)
        .ok_or_else(|| PoolProblem::UserDataSecretMissing(reference.name.clone()))?;
    let content = secret
        .non_empty(&reference.key)
        .ok_or_else(|| PoolProblem::UserDataEmpty { secret: reference.name.clone(), key: reference.key.clone() })?;
    Ok(UserData(content.to_vec()))
}

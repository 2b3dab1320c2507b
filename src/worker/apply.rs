//! I/O step: writes the changes. Secrets and classes go before the deployments that refer to them; placements go side by
//! side, at most [`PARALLEL_REQUESTS`] at a time. What fails for one does not stop the others.

use futures::StreamExt;
use futures::stream;

use super::changes::MachineChanges;
use super::live::{Live, MachineObjects};
use super::machine_apis::{MachineApis, WriteError};
use crate::api::machine::MachineDeployment;

/// Most requests under way at a time: all pools of a large Worker.
pub const PARALLEL_REQUESTS: usize = 320;

/// What came of the changes. Status can be computed only from this.
pub struct Applied {
    /// The machine objects as they are after the writes; of what was written, deployments only.
    pub live: MachineObjects,
    /// Writes that failed.
    pub errors: Vec<ApplyError>,
    /// Number of writes that were done.
    pub writes: usize,
}

impl Applied {
    /// Whether a write was computed from what is not so any more.
    #[must_use]
    pub fn is_outdated(&self) -> bool {
        self.errors.iter().any(|error| error.source.is_outdated())
    }
}

/// A write that failed.
#[derive(Debug, thiserror::Error)]
#[error("pool {pool:?}: {kind} {name}: {source}")]
pub struct ApplyError {
    /// Name of the pool.
    pub pool: String,
    /// Kind of the object.
    pub kind: &'static str,
    /// Name of the object.
    pub name: String,
    /// Why.
    #[source]
    pub source: WriteError,
}

/// Writes all changes. `live` is what they were computed from.
pub async fn apply(apis: &MachineApis, changes: Vec<MachineChanges<'_>>, live: MachineObjects) -> Applied {
    let mut applied = Applied { live, errors: Vec::new(), writes: 0 };
    let writes: Vec<_> = changes.into_iter().map(|change| apply_machine(apis, change)).collect();
    let mut results = stream::iter(writes).buffer_unordered(PARALLEL_REQUESTS);
    while let Some((result, writes)) = results.next().await {
        applied.writes += writes;
        match result {
            Ok(Some((name, deployment))) => {
                applied.live.deployments.insert(name, deployment);
            }
            Ok(None) => {}
            Err(error) => applied.errors.push(error),
        }
    }
    applied.errors.sort_by(|left, right| (&left.pool, &left.name).cmp(&(&right.pool, &right.name)));
    applied
}

type WrittenDeployment = Option<(String, Live<MachineDeployment>)>;

/// Writes Secret, class and deployment of one placement, in this order.
async fn apply_machine(
    apis: &MachineApis,
    change: MachineChanges<'_>,
) -> (Result<WrittenDeployment, ApplyError>, usize) {
    let MachineChanges { machine, secret, class, deployment } = change;
    let wanted = &machine.deployment;
    let failed =
        |kind, name: &str, source| ApplyError { pool: wanted.pool_name.clone(), kind, name: name.to_owned(), source };
    let mut writes = 0;
    if let Some(write) = secret {
        if let Err(source) = apis.write_secret(&wanted.secret_name.0, write).await {
            return (Err(failed("Secret", &wanted.secret_name.0, source)), writes);
        }
        writes += 1;
    }
    if let Some(write) = class {
        if let Err(source) = apis.write_class(&wanted.class_name.0, write).await {
            return (Err(failed("MachineClass", &wanted.class_name.0, source)), writes);
        }
        writes += 1;
    }
    let Some(write) = deployment else { return (Ok(None), writes) };
    match apis.write_deployment(&wanted.name.0, write).await {
        Ok(live) => (Ok(Some((wanted.name.0.clone(), live))), writes + 1),
        Err(source) => (Err(failed("MachineDeployment", &wanted.name.0, source)), writes),
    }
}

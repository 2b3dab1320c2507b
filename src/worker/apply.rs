//! I/O step: writes the changes. Secrets and classes go before the deployments that refer to them; placements go side by
//! side, at most [`PARALLEL_WRITES`] at a time. What fails for one does not stop the others.

use std::collections::BTreeMap;

use futures::StreamExt;
use futures::stream;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::Value;

use super::changes::{MachineChanges, Write};
use super::live::{Live, MachineObjects};
use crate::api::machine::{MachineClass, MachineDeployment};

/// Most writes under way at a time, for one Worker.
pub const PARALLEL_WRITES: usize = 50;

/// What came of the changes. Status can be computed only from this.
pub struct Applied {
    /// Deployments as they are after the writes, by name; those that were not written as they were.
    pub deployments: BTreeMap<String, Live<MachineDeployment>>,
    /// Writes that failed.
    pub errors: Vec<ApplyError>,
    /// Number of writes that were done.
    pub writes: usize,
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

/// Why a write failed.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The API server said no, or nothing.
    #[error(transparent)]
    Api(#[from] kube::Error),
    /// The API server's answer can't be read.
    #[error("unexpected answer of the API server: {0}")]
    Answer(#[from] serde_json::Error),
}

/// The APIs that machine objects are written through.
#[derive(Clone)]
pub struct MachineApis {
    /// Secrets of the Worker's namespace.
    pub secrets: Api<Secret>,
    /// Machine classes.
    pub classes: Api<DynamicObject>,
    /// Machine deployments.
    pub deployments: Api<DynamicObject>,
}

impl MachineApis {
    /// The APIs of a namespace.
    #[must_use]
    pub fn new(client: &kube::Client, namespace: &str) -> Self {
        Self {
            secrets: Api::namespaced(client.clone(), namespace),
            classes: Api::namespaced_with(client.clone(), namespace, &ApiResource::erase::<MachineClass>(&())),
            deployments: Api::namespaced_with(client.clone(), namespace, &ApiResource::erase::<MachineDeployment>(&())),
        }
    }
}

/// Writes all changes.
pub async fn apply(apis: &MachineApis, changes: Vec<MachineChanges<'_>>, live: &MachineObjects) -> Applied {
    let mut applied = Applied { deployments: live.deployments.clone(), errors: Vec::new(), writes: 0 };
    let writes: Vec<_> = changes.into_iter().map(|change| apply_machine(apis, change)).collect();
    let mut results = stream::iter(writes).buffer_unordered(PARALLEL_WRITES);
    while let Some((result, writes)) = results.next().await {
        applied.writes += writes;
        match result {
            Ok(Some((name, deployment))) => {
                applied.deployments.insert(name, deployment);
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
        if let Err(source) = write_secret(&apis.secrets, &wanted.secret_name.0, write).await {
            return (Err(failed("Secret", &wanted.secret_name.0, source)), writes);
        }
        writes += 1;
    }
    if let Some(write) = class {
        if let Err(source) = write_document(&apis.classes, &wanted.class_name.0, write).await {
            return (Err(failed("MachineClass", &wanted.class_name.0, source)), writes);
        }
        writes += 1;
    }
    let Some(write) = deployment else { return (Ok(None), writes) };
    let written = async {
        let document = write_document(&apis.deployments, &wanted.name.0, write).await?;
        Ok(Live::read(serde_json::to_value(document)?)?)
    };
    match written.await {
        Ok(live) => (Ok(Some((wanted.name.0.clone(), live))), writes + 1),
        Err(source) => (Err(failed("MachineDeployment", &wanted.name.0, source)), writes),
    }
}

async fn write_secret(api: &Api<Secret>, name: &str, write: Write<Secret>) -> Result<(), WriteError> {
    match write {
        Write::Create(secret) => api.create(&PostParams::default(), &secret).await?,
        Write::Replace(secret) => api.replace(name, &PostParams::default(), &secret).await?,
        Write::Patch { patch, .. } => api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?,
    };
    Ok(())
}

async fn write_document(
    api: &Api<DynamicObject>,
    name: &str,
    write: Write<Value>,
) -> Result<DynamicObject, WriteError> {
    let parameters = PostParams::default();
    Ok(match write {
        Write::Create(document) => api.create(&parameters, &serde_json::from_value(document)?).await?,
        Write::Replace(document) => api.replace(name, &parameters, &serde_json::from_value(document)?).await?,
        Write::Patch { patch, .. } => api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?,
    })
}

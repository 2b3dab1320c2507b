//! I/O step: reads what a pass needs. Once per pass, side by side.

use std::sync::Arc;

use futures::future::try_join_all;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, GetParams, ListParams, Request};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::apply::MachineApis;
use super::cleanup::MachineController;
use super::live::{Digested, Live, MachineObjects, PURPOSE_LABEL};
use crate::api::gardener::{Cluster, Worker};
use crate::api::gotext::json::{DecodeError, decode_lenient};
use crate::api::machine::{Machine, MachineSet};
use crate::api::secret::{SecretContent, Secrets};

/// Name of the Deployment that runs machine-controller-manager, in each shoot namespace.
pub const MACHINE_CONTROLLER_MANAGER: &str = "machine-controller-manager";

/// Why something can't be read.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// The API server said no, or nothing.
    #[error("{what} can't be read: {source}")]
    Api {
        /// What was read.
        what: String,
        /// Why.
        source: kube::Error,
    },
    /// An object is not what its kind says.
    #[error("{what} can't be decoded: {source}")]
    Decode {
        /// What was read.
        what: String,
        /// Why.
        source: serde_json::Error,
    },
    /// A member of the Cluster has the wrong type.
    #[error("Cluster {name:?} can't be decoded: {source}")]
    Cluster {
        /// Name of the Cluster.
        name: String,
        /// Where and why.
        source: DecodeError,
    },
}

fn api_error(what: impl Into<String>) -> impl FnOnce(kube::Error) -> ObserveError {
    let what = what.into();
    move |source| ObserveError::Api { what, source }
}

/// The Cluster of a Worker, `None` when there is none. Read as text, because it holds raw JSON and its errors name a path.
///
/// # Errors
/// When it can't be read or decoded.
pub async fn cluster(client: &Client, name: &str) -> Result<Option<Arc<Cluster>>, ObserveError> {
    let what = || format!("Cluster {name:?}");
    let request = Request::new(Cluster::url_path(&(), None))
        .get(name, &GetParams::default())
        .map_err(|error| api_error(what())(kube::Error::BuildRequest(error)))?;
    match client.request_text(request).await {
        Ok(text) => {
            let decoded = decode_lenient(&text);
            let cluster = decoded.map_err(|source| ObserveError::Cluster { name: name.to_owned(), source })?;
            Ok(Some(Arc::new(cluster)))
        }
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(api_error(what())(error)),
    }
}

/// The Secrets that a Worker refers to: credentials and user data, each once. Missing ones are left out.
///
/// # Errors
/// When one can't be read.
pub async fn secrets(client: &Client, worker: &Worker) -> Result<Secrets, ObserveError> {
    let namespace = worker.namespace().unwrap_or_default();
    let credentials = &worker.spec.secret_ref;
    let mut references =
        vec![(credentials.namespace.clone().unwrap_or_default(), credentials.name.clone().unwrap_or_default())];
    references.extend(worker.spec.pools.iter().map(|pool| (namespace.clone(), pool.user_data_secret_ref.name.clone())));
    references.retain(|(namespace, name)| !namespace.is_empty() && !name.is_empty());
    references.sort();
    references.dedup();
    let reads = references.into_iter().map(|(namespace, name)| async move {
        let api: Api<Secret> = Api::namespaced(client.clone(), &namespace);
        let secret = api.get_opt(&name).await.map_err(api_error(format!("Secret {namespace}/{name}")))?;
        Ok::<_, ObserveError>((namespace, name, secret))
    });
    let mut secrets = Secrets::default();
    for (namespace, name, secret) in try_join_all(reads).await? {
        if let Some(secret) = secret {
            secrets.insert(&namespace, &name, SecretContent::from(secret));
        }
    }
    Ok(secrets)
}

/// The credentials of a Worker; nothing when they are missing.
///
/// # Errors
/// When they can't be read.
pub async fn credentials(client: &Client, worker: &Worker) -> Result<Secrets, ObserveError> {
    let mut secrets = Secrets::default();
    let reference = &worker.spec.secret_ref;
    if let (Some(namespace), Some(name)) = (&reference.namespace, &reference.name) {
        let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
        let secret = api.get_opt(name).await.map_err(api_error(format!("Secret {namespace}/{name}")))?;
        if let Some(secret) = secret {
            secrets.insert(namespace, name, SecretContent::from(secret));
        }
    }
    Ok(secrets)
}

/// All machine objects of a namespace.
///
/// # Errors
/// When a list can't be read or an object can't be decoded.
pub async fn machine_objects(client: &Client, namespace: &str) -> Result<MachineObjects, ObserveError> {
    let apis = MachineApis::new(client, namespace);
    let all = ListParams::default();
    let class_secrets = ListParams::default().labels(&format!("{}={}", PURPOSE_LABEL.0, PURPOSE_LABEL.1));
    let (deployments, classes, secrets, machine_sets, machines) = tokio::try_join!(
        async { apis.deployments.list(&all).await.map_err(api_error("MachineDeployments")) },
        async { apis.classes.list(&all).await.map_err(api_error("MachineClasses")) },
        async { apis.secrets.list(&class_secrets).await.map_err(api_error("Secrets of machine classes")) },
        list::<MachineSet>(client, namespace, "MachineSets"),
        list::<Machine>(client, namespace, "Machines"),
    )?;
    let mut objects = MachineObjects { machine_sets, machines, ..MachineObjects::default() };
    for deployment in deployments {
        let name = deployment.name_any();
        let decode = |source| ObserveError::Decode { what: format!("MachineDeployment {name:?}"), source };
        let live = serde_json::to_value(deployment).and_then(Live::read).map_err(decode)?;
        objects.deployments.insert(name, live);
    }
    for class in classes {
        let name = class.name_any();
        let decode = |source| ObserveError::Decode { what: format!("MachineClass {name:?}"), source };
        let class = serde_json::to_value(class).and_then(Digested::class).map_err(decode)?;
        objects.classes.insert(name.clone(), class);
    }
    objects.class_secrets = secrets.into_iter().map(|secret| (secret.name_any(), Digested::secret(secret))).collect();
    Ok(objects)
}

async fn list<K>(client: &Client, namespace: &str, what: &str) -> Result<Vec<K>, ObserveError>
where
    K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    Ok(api.list(&ListParams::default()).await.map_err(api_error(what))?.items)
}

/// Whether machine-controller-manager is meant to run.
///
/// # Errors
/// When its Deployment can't be read.
pub async fn machine_controller(client: &Client, namespace: &str) -> Result<MachineController, ObserveError> {
    let api: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let deployment = api
        .get_opt(MACHINE_CONTROLLER_MANAGER)
        .await
        .map_err(api_error(format!("Deployment {MACHINE_CONTROLLER_MANAGER:?}")))?;
    // An absent number means one replica; an absent Deployment none.
    let replicas = deployment.map_or(0, |deployment| deployment.spec.and_then(|spec| spec.replicas).unwrap_or(1));
    Ok(if replicas > 0 { MachineController::Running } else { MachineController::Stopped })
}

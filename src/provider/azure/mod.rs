//! Azure: documents, images, disks, networks and machine classes of `spec.type: azure`.
//!
//! * [`documents`]: what stands in `providerConfig` and its relatives;
//! * [`image`], [`network`], [`disks`], [`tags`], [`cloud`]: one question of a machine each;
//! * [`hash_data`], [`virtual_capacity`]: what Azure adds to the pool hash;
//! * [`machine_class`]: the provider spec;
//! * [`pool`]: one pool from all of it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::api::gardener::{CapabilityDefinition, ErrorCode, WorkerPool};
use crate::provider::document::{Document, decode_document};
use crate::provider::{PoolError, PoolPlan, PoolPlanner, Provider, WorkerContext, WorkerError};

pub mod cloud;
pub mod disks;
pub mod documents;
pub mod error_codes;
pub mod hash_data;
pub mod image;
mod machine_class;
pub mod network;
mod pool;
mod status;
pub mod tags;
pub mod virtual_capacity;

use documents::{CloudProfileConfig, InfrastructureStatus, Subnet, WorkerStatus};

/// The provider of Workers of type `azure`.
pub struct Azure;

/// What all pools of one Worker share.
struct AzureWorker<'a> {
    context: WorkerContext<'a>,
    config: Option<Arc<CloudProfileConfig>>,
    infrastructure: InfrastructureStatus,
    status: Option<WorkerStatus>,
    /// Capabilities of the CloudProfile, or those that the old format stands for.
    definitions: Cow<'a, [CapabilityDefinition]>,
    /// Whether the CloudProfile is in the old format.
    old_format: bool,
    nodes_subnet: Subnet,
}

impl Provider for Azure {
    fn worker_type(&self) -> &'static str {
        "azure"
    }

    fn open<'a>(&self, context: WorkerContext<'a>) -> Result<Box<dyn PoolPlanner + 'a>, WorkerError> {
        let worker = context.worker;
        let config = profile_config(&context)?;
        check_credentials(&context)?;
        let infrastructure: InfrastructureStatus =
            decode("Worker spec.infrastructureProviderStatus", worker.spec.infrastructure_provider_status.as_deref())?
                .ok_or_else(|| WorkerError::DocumentMissing {
                    path: "Worker spec.infrastructureProviderStatus".to_owned(),
                    kind: InfrastructureStatus::KIND,
                })?;
        let status = decode("Worker status.providerStatus", worker.status.provider_status.as_deref())?;
        let nodes_subnet = network::nodes_subnet(&infrastructure).ok_or(WorkerError::NodesSubnetMissing)?.clone();
        let declared = &context.cloud_profile.spec.machine_capabilities;
        let old_format = declared.is_empty();
        let definitions =
            if old_format { Cow::Owned(image::old_format_definitions()) } else { Cow::Borrowed(declared.as_slice()) };
        Ok(Box::new(AzureWorker { context, config, infrastructure, status, definitions, old_format, nodes_subnet }))
    }

    fn error_codes(&self, code: Option<&str>, text: &str) -> BTreeSet<ErrorCode> {
        error_codes::error_codes(code, text)
    }
}

impl PoolPlanner for AzureWorker<'_> {
    fn plan_pool(&self, pool: &WorkerPool) -> Result<PoolPlan, PoolError> {
        self.plan(pool).map_err(|problem| problem.of_pool(&pool.name))
    }

    fn provider_status(&self, planned: &[&PoolPlan], failed: &[&WorkerPool]) -> Value {
        status::provider_status(self.status.as_ref(), planned, failed)
    }
}

fn decode<T: Document>(path: &str, raw: Option<&RawValue>) -> Result<Option<T>, WorkerError> {
    raw.map(decode_document).transpose().map_err(|source| WorkerError::Document { path: path.to_owned(), source })
}

/// The provider config of the CloudProfile, with a cloud that exists.
fn profile_config(context: &WorkerContext<'_>) -> Result<Option<Arc<CloudProfileConfig>>, WorkerError> {
    let profile = context.cloud_profile.metadata.name.as_deref().unwrap_or_default();
    let path = format!("CloudProfile {profile:?} spec.providerConfig");
    let spec = &context.cloud_profile.spec;
    // Many Workers share a profile, and it is the largest document of all.
    let decoded = spec.decoded_provider_config.get_or_decode(|| {
        spec.provider_config
            .as_deref()
            .map(decode_document::<CloudProfileConfig>)
            .transpose()
            .map(|config| config.map(Arc::new))
    });
    let config = (*decoded).clone().map_err(|source| WorkerError::Document { path: path.clone(), source })?;
    let configuration = config.as_deref().and_then(|config| config.cloud_configuration.as_ref());
    if let Some(configuration) = configuration.filter(|configuration| cloud::configured_cloud(configuration).is_none())
    {
        return Err(WorkerError::UnknownCloud {
            path: format!("{path}.cloudConfiguration.name"),
            name: configuration.name.clone(),
            supported: cloud::CLOUDS,
        });
    }
    Ok(config)
}

/// Machines can't be made without credentials, so they are looked at before anything is written.
fn check_credentials(context: &WorkerContext<'_>) -> Result<(), WorkerError> {
    const KEYS: [&str; 4] = ["subscriptionID", "tenantID", "clientID", "clientSecret"];
    const WORKLOAD_IDENTITY: (&str, &str) = ("security.gardener.cloud/purpose", "workload-identity-token-requestor");
    let reference = &context.worker.spec.secret_ref;
    let (namespace, name) =
        (reference.namespace.as_deref().unwrap_or_default(), reference.name.as_deref().unwrap_or_default());
    let secret = || format!("{namespace}/{name}");
    let content =
        context.secrets.get(namespace, name).ok_or_else(|| WorkerError::CredentialsMissing { secret: secret() })?;
    if content.labels.get(WORKLOAD_IDENTITY.0).is_some_and(|purpose| purpose == WORKLOAD_IDENTITY.1) {
        return Ok(());
    }
    match KEYS.into_iter().find(|key| !content.has_key(key)) {
        Some(key) => Err(WorkerError::CredentialsIncomplete { secret: secret(), key }),
        None => Ok(()),
    }
}

//! Handles a request: identifies the object, reads what it needs of the shoot, and returns the patch.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use futures::future::{BoxFuture, FutureExt};
use json_patch::Patch;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, GetParams};
use kube::core::Request;
use kube::{Client, ResourceExt};
use serde_json::Value;
use tokio::time::timeout;

use super::container::{CREDENTIALS, Sidecar};
use super::injection::{AUTOSCALER, DEPLOYMENT, into_autoscaler, into_deployment, is_subject};
use super::surroundings::{Surroundings, is_self_hosted};
use super::webhooks::{AUTOSCALERS, DEPLOYMENTS};
use runtime::webhook::{Denial, Operation, ReviewRequest, Reviewer, Verdict};

/// Time limit for reads. The API server waits ten seconds for the whole response.
const READ_TIMEOUT: Duration = Duration::from_secs(5);
const CLUSTERS: &str = "/apis/extensions.gardener.cloud/v1alpha1/clusters";
/// Label of Secrets with their purpose.
const PURPOSE: &str = "security.gardener.cloud/purpose";
/// Value of that label for Secrets with a renewed token.
const TOKEN_REQUESTOR: &str = "workload-identity-token-requestor";

/// Injects the sidecar of one provider.
pub(super) struct Injector {
    pub(super) sidecar: Sidecar,
    pub(super) client: Client,
}

impl Reviewer for Injector {
    fn review(&self, request: Arc<ReviewRequest>) -> BoxFuture<'_, Verdict> {
        async move {
            self.patch(&request).await.map_or_else(
                // Not an error of the object, so the client may retry.
                |error| {
                    let object = request.object_name();
                    Verdict::Denied(Denial::internal(format!("{} {object}: {error:#}", request.resource)))
                },
                |patch| Verdict::Allowed { patch, warnings: Vec::new() },
            )
        }
        .boxed()
    }
}

impl Injector {
    async fn patch(&self, request: &ReviewRequest) -> anyhow::Result<Patch> {
        let is_written = matches!(request.operation, Operation::Create | Operation::Update);
        if !is_written || !request.sub_resource.is_empty() {
            return Ok(Patch::default());
        }
        let Some(object) = request.object.as_deref() else { return Ok(Patch::default()) };
        let object: Value = serde_json::from_slice(object).context("the object can't be read")?;
        match (request.group.as_str(), request.resource.as_str()) {
            DEPLOYMENTS if is_subject(&object, DEPLOYMENT) => {
                let surroundings = timeout(READ_TIMEOUT, self.surroundings(&request.namespace));
                let surroundings =
                    surroundings.await.with_context(|| format!("no answer within {READ_TIMEOUT:?}"))??;
                Ok(into_deployment(&object, &self.sidecar, &request.namespace, surroundings))
            }
            AUTOSCALERS if is_subject(&object, AUTOSCALER) => Ok(into_autoscaler(&object, &self.sidecar)),
            _ => Ok(Patch::default()),
        }
    }

    /// Not cached, because requests are rare and the data may change.
    async fn surroundings(&self, namespace: &str) -> anyhow::Result<Surroundings> {
        let (self_hosted, workload_identity) =
            tokio::try_join!(self.is_self_hosted(namespace), self.is_workload_identity(namespace))?;
        Ok(Surroundings { self_hosted, workload_identity })
    }

    async fn is_self_hosted(&self, namespace: &str) -> anyhow::Result<bool> {
        let request = Request::new(CLUSTERS).get(namespace, &GetParams::default()).context("the namespace")?;
        let text = self.client.request_text(request).await;
        let text = text.with_context(|| format!("Cluster {namespace} can't be read"))?;
        let self_hosted = is_self_hosted(&text).with_context(|| format!("Cluster {namespace} can't be understood"))?;
        self_hosted.with_context(|| format!("Cluster {namespace} has no Shoot"))
    }

    /// Reads only the metadata of the credentials.
    async fn is_workload_identity(&self, namespace: &str) -> anyhow::Result<bool> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let credentials = api.get_metadata(CREDENTIALS).await;
        let credentials = credentials.with_context(|| format!("Secret {namespace}/{CREDENTIALS} can't be read"))?;
        Ok(credentials.labels().get(PURPOSE).is_some_and(|purpose| purpose == TOKEN_REQUESTOR))
    }
}

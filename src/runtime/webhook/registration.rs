//! Registers webhooks in a ValidatingWebhookConfiguration and a MutatingWebhookConfiguration.

use std::collections::BTreeMap;

use anyhow::Context;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use tracing::info;

use super::certificate_authority::CaBundle;

/// Seconds that an API server waits for a response.
const TIMEOUT_SECONDS: i32 = 10;

/// Whether webhooks validate or change objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookKind {
    Validating,
    Mutating,
}

impl WebhookKind {
    /// Kind of the configuration.
    fn as_str(self) -> &'static str {
        match self {
            Self::Validating => "ValidatingWebhookConfiguration",
            Self::Mutating => "MutatingWebhookConfiguration",
        }
    }
}

/// Resources of one group whose creation and updates are reviewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookRule {
    pub group: &'static str,
    /// API version. The API server converts requests in other versions to it.
    pub version: &'static str,
    /// Plural names; a subresource follows after a slash.
    pub resources: Vec<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Name, which must be a domain.
    pub name: String,
    pub path: String,
    pub rules: Vec<WebhookRule>,
    /// Labels that select objects.
    pub object_labels: BTreeMap<String, String>,
    /// Labels that select namespaces.
    pub namespace_labels: BTreeMap<String, String>,
}

/// How the API server reaches the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Url {
        /// Host and port, such as `admission.garden.svc:443`.
        host: String,
    },
    Service {
        namespace: String,
        name: String,
        port: u16,
    },
}

impl Address {
    /// DNS names or IP addresses that the server's certificate must include.
    pub(crate) fn names(&self) -> Vec<String> {
        match self {
            Self::Url { host } => {
                // Remove the port and the brackets of IPv6 addresses.
                let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
                let name = name.map_or(host.as_str(), |(name, _)| name);
                vec![name.trim_matches(|bracket| bracket == '[' || bracket == ']').to_owned()]
            }
            Self::Service { namespace, name, .. } => {
                vec![format!("{name}.{namespace}.svc"), format!("{name}.{namespace}"), name.clone()]
            }
        }
    }

    fn client_config(&self, path: &str, bundle: &CaBundle) -> Value {
        let bundle = BASE64.encode(&bundle.0);
        match self {
            Self::Url { host } => json!({"caBundle": bundle, "url": format!("https://{host}{path}")}),
            Self::Service { namespace, name, port } => {
                let service = json!({"namespace": namespace, "name": name, "path": path, "port": port});
                json!({"caBundle": bundle, "service": service})
            }
        }
    }
}

/// A pair of webhook configurations; both have the same name.
#[derive(Clone, Debug, PartialEq)]
pub struct Registration {
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    /// The object whose deletion also deletes the configurations.
    pub(crate) owner: Option<OwnerReference>,
    pub(crate) address: Address,
    pub(crate) webhooks: Vec<(WebhookKind, Webhook)>,
}

/// Writes the webhooks with the CA bundle to the configurations that differ. Skips kinds without webhooks.
pub async fn publish(client: &Client, registration: &Registration, bundle: &CaBundle) -> anyhow::Result<()> {
    for kind in [WebhookKind::Validating, WebhookKind::Mutating] {
        let webhooks = registration.entries(kind, bundle);
        if !webhooks.is_empty() {
            let written = write(client, registration, kind, webhooks.into()).await;
            written.with_context(|| format!("{} {}", kind.as_str(), registration.name))?;
        }
    }
    Ok(())
}

/// Replaces all webhooks. In the metadata, this controller owns only its labels and its owner reference.
async fn write(
    client: &Client,
    registration: &Registration,
    kind: WebhookKind,
    webhooks: Value,
) -> Result<(), kube::Error> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind.as_str()));
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let name = registration.name.as_str();
    let live = api.get_opt(name).await?;
    let mut target = live.clone().unwrap_or_else(|| DynamicObject::new(name, &resource).data(json!({})));
    target.metadata.labels.get_or_insert_default().extend(registration.labels.clone());
    if let Some(owner) = &registration.owner {
        target.metadata.owner_references = Some(vec![owner.clone()]);
    }
    target.data["webhooks"] = webhooks;
    if live.is_none() {
        api.create(&PostParams::default(), &target).await?;
        info!(name, kind = kind.as_str(), "webhooks registered");
    } else if live.as_ref() != Some(&target) {
        api.replace(name, &PostParams::default(), &target).await?;
        info!(name, kind = kind.as_str(), "webhook configurations updated");
    }
    Ok(())
}

impl Registration {
    /// The webhooks of a kind, with API server defaults filled in so that they compare as equal.
    fn entries(&self, kind: WebhookKind, bundle: &CaBundle) -> Vec<Value> {
        let webhooks = self.webhooks.iter().filter(|(is, _)| *is == kind);
        let entry = |(_, webhook): &(WebhookKind, Webhook)| {
            let mut entry = json!({
                "name": webhook.name,
                "clientConfig": self.address.client_config(&webhook.path, bundle),
                "rules": webhook.rules.iter().map(rule).collect::<Vec<_>>(),
                "objectSelector": selector(&webhook.object_labels),
                "namespaceSelector": selector(&webhook.namespace_labels),
                "matchPolicy": "Equivalent",
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "timeoutSeconds": TIMEOUT_SECONDS,
                "admissionReviewVersions": ["v1", "v1beta1"],
            });
            if kind == WebhookKind::Mutating {
                entry["reinvocationPolicy"] = "Never".into();
            }
            entry
        };
        webhooks.map(entry).collect()
    }
}

fn selector(labels: &BTreeMap<String, String>) -> Value {
    if labels.is_empty() { json!({}) } else { json!({"matchLabels": labels}) }
}

fn rule(rule: &WebhookRule) -> Value {
    json!({
        "apiGroups": [rule.group],
        "apiVersions": [rule.version],
        "operations": ["CREATE", "UPDATE"],
        "resources": rule.resources,
        "scope": "*",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_for_the_names_that_the_api_server_uses() {
        let url = |host: &str| Address::Url { host: host.to_owned() }.names();
        assert_eq!(url("admission.garden:8443"), ["admission.garden"]);
        assert_eq!(url("admission.garden"), ["admission.garden"]);
        assert_eq!(url("127.0.0.1:9443"), ["127.0.0.1"]);
        assert_eq!(url("[::1]:9443"), ["::1"]);
        let service = Address::Service { namespace: "garden".to_owned(), name: "admission".to_owned(), port: 443 };
        assert_eq!(service.names(), ["admission.garden.svc", "admission.garden", "admission"]);
    }
}

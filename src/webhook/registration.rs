//! The ValidatingWebhookConfiguration and MutatingWebhookConfiguration by which an API server learns of the webhooks.

use std::collections::BTreeMap;

use anyhow::Context;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ServiceReference, ValidatingWebhook,
    ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, OwnerReference};
use kube::api::{Api, ObjectMeta, PostParams};
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tracing::info;

use super::authority::Bundle;

/// Seconds that an API server waits for an answer.
const TIMEOUT: i32 = 10;

/// Whether webhooks judge objects or change them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WebhookKind {
    /// They judge.
    Validating,
    /// They change.
    Mutating,
}

/// Resources of one group that are reviewed when they are made or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WebhookRule {
    /// API group.
    pub(crate) group: &'static str,
    /// Its version. Requests in other versions are converted to it.
    pub(crate) version: &'static str,
    /// Plural names, sub-resources behind a slash.
    pub(crate) resources: Vec<&'static str>,
}

/// One webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Webhook {
    /// Its name, a domain.
    pub(crate) name: String,
    /// Path on the server.
    pub(crate) path: String,
    /// What is reviewed.
    pub(crate) rules: Vec<WebhookRule>,
    /// Labels that an object must have.
    pub(crate) object_labels: BTreeMap<String, String>,
    /// Labels that its namespace must have.
    pub(crate) namespace_labels: BTreeMap<String, String>,
}

/// Where the API server finds the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// Host and port.
    Url {
        /// Such as `admission.garden.svc:443`.
        host: String,
    },
    /// A Service of the cluster.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Its port.
        port: u16,
    },
}

impl Address {
    /// The names or addresses that the server's certificate must be for.
    pub(crate) fn names(&self) -> Vec<String> {
        match self {
            Self::Url { host } => {
                // Port and the brackets of IPv6 addresses are no part of a name.
                let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
                let name = name.map_or(host.as_str(), |(name, _)| name);
                vec![name.trim_matches(|bracket| bracket == '[' || bracket == ']').to_owned()]
            }
            Self::Service { namespace, name, .. } => {
                vec![format!("{name}.{namespace}.svc"), format!("{name}.{namespace}"), name.clone()]
            }
        }
    }

    fn client_config(&self, path: &str, bundle: &Bundle) -> WebhookClientConfig {
        let ca_bundle = Some(ByteString(bundle.0.clone().into_bytes()));
        match self {
            Self::Url { host } => {
                WebhookClientConfig { ca_bundle, url: Some(format!("https://{host}{path}")), service: None }
            }
            Self::Service { namespace, name, port } => {
                let service = ServiceReference {
                    namespace: namespace.clone(),
                    name: name.clone(),
                    path: Some(path.to_owned()),
                    port: Some(i32::from(*port)),
                };
                WebhookClientConfig { ca_bundle, url: None, service: Some(service) }
            }
        }
    }
}

/// A configuration of webhooks; the judging and the changing one have the same name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Registration {
    /// Its name.
    pub(crate) name: String,
    /// Labels of the configuration.
    pub(crate) labels: BTreeMap<String, String>,
    /// Whose deletion takes it along.
    pub(crate) owner: Option<OwnerReference>,
    /// Where the server is.
    pub(crate) address: Address,
    /// The webhooks with their kinds.
    pub(crate) webhooks: Vec<(WebhookKind, Webhook)>,
}

/// Tells the API server of the webhooks and whom to trust; writes only what differs, and no configuration without webhooks.
///
/// # Errors
/// When a configuration can't be read or written.
pub(crate) async fn publish(client: &Client, registration: &Registration, bundle: &Bundle) -> anyhow::Result<()> {
    let name = &registration.name;
    let has = |kind| registration.webhooks.iter().any(|webhook| webhook.0 == kind);
    if has(WebhookKind::Validating) {
        write(
            client,
            registration,
            validating(registration, bundle),
            |wanted: &ValidatingWebhookConfiguration, live| wanted.webhooks == live.webhooks,
        )
        .await
        .with_context(|| format!("ValidatingWebhookConfiguration {name}"))?;
    }
    if has(WebhookKind::Mutating) {
        write(client, registration, mutating(registration, bundle), |wanted: &MutatingWebhookConfiguration, live| {
            wanted.webhooks == live.webhooks
        })
        .await
        .with_context(|| format!("MutatingWebhookConfiguration {name}"))?;
    }
    Ok(())
}

/// Replaces the webhooks as a whole; of the metadata only our labels and our owner are ours.
async fn write<Configuration>(
    client: &Client,
    registration: &Registration,
    mut wanted: Configuration,
    same_webhooks: impl Fn(&Configuration, &Configuration) -> bool,
) -> Result<(), kube::Error>
where
    Configuration: Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope>
        + Clone
        + std::fmt::Debug
        + Serialize
        + DeserializeOwned,
{
    let api: Api<Configuration> = Api::all(client.clone());
    let Some(live) = api.get_opt(&registration.name).await? else {
        api.create(&PostParams::default(), &wanted).await?;
        info!(name = registration.name, kind = %Configuration::kind(&()), "webhooks registered");
        return Ok(());
    };
    let mut metadata = live.meta().clone();
    metadata.labels.get_or_insert_default().extend(registration.labels.clone());
    if let Some(owner) = &registration.owner {
        metadata.owner_references = Some(vec![owner.clone()]);
    }
    if same_webhooks(&wanted, &live) && metadata == *live.meta() {
        return Ok(());
    }
    *wanted.meta_mut() = metadata;
    api.replace(&registration.name, &PostParams::default(), &wanted).await?;
    info!(name = registration.name, kind = %Configuration::kind(&()), "webhook configurations updated");
    Ok(())
}

fn metadata(registration: &Registration) -> ObjectMeta {
    ObjectMeta {
        name: Some(registration.name.clone()),
        labels: Some(registration.labels.clone()),
        owner_references: registration.owner.clone().map(|owner| vec![owner]),
        ..ObjectMeta::default()
    }
}

fn validating(registration: &Registration, bundle: &Bundle) -> ValidatingWebhookConfiguration {
    let webhooks = registration.entries(WebhookKind::Validating, bundle);
    ValidatingWebhookConfiguration { metadata: metadata(registration), webhooks: Some(webhooks.collect()) }
}

/// Entries of this kind differ from the others only in whether they are called once more.
fn mutating(registration: &Registration, bundle: &Bundle) -> MutatingWebhookConfiguration {
    let webhooks = registration.entries(WebhookKind::Mutating, bundle).map(|entry| MutatingWebhook {
        name: entry.name,
        client_config: entry.client_config,
        rules: entry.rules,
        object_selector: entry.object_selector,
        namespace_selector: entry.namespace_selector,
        match_policy: entry.match_policy,
        failure_policy: entry.failure_policy,
        side_effects: entry.side_effects,
        timeout_seconds: entry.timeout_seconds,
        admission_review_versions: entry.admission_review_versions,
        match_conditions: entry.match_conditions,
        reinvocation_policy: Some("Never".to_owned()),
    });
    MutatingWebhookConfiguration { metadata: metadata(registration), webhooks: Some(webhooks.collect()) }
}

impl Registration {
    /// The webhooks of a kind. What an API server would fill in is written out, so that it compares equal.
    fn entries(&self, kind: WebhookKind, bundle: &Bundle) -> impl Iterator<Item = ValidatingWebhook> {
        let webhooks = self.webhooks.iter().filter(move |(is, _)| *is == kind);
        webhooks.map(|(_, webhook)| ValidatingWebhook {
            name: webhook.name.clone(),
            client_config: self.address.client_config(&webhook.path, bundle),
            rules: Some(webhook.rules.iter().map(rule).collect()),
            object_selector: Some(selector(&webhook.object_labels)),
            namespace_selector: Some(selector(&webhook.namespace_labels)),
            match_policy: Some("Equivalent".to_owned()),
            failure_policy: Some("Fail".to_owned()),
            side_effects: "None".to_owned(),
            timeout_seconds: Some(TIMEOUT),
            admission_review_versions: ["v1", "v1beta1"].map(str::to_owned).to_vec(),
            match_conditions: None,
        })
    }
}

fn selector(labels: &BTreeMap<String, String>) -> LabelSelector {
    LabelSelector { match_labels: (!labels.is_empty()).then(|| labels.clone()), match_expressions: None }
}

fn rule(rule: &WebhookRule) -> RuleWithOperations {
    let list = |values: &[&str]| Some(values.iter().map(|value| (*value).to_owned()).collect());
    RuleWithOperations {
        api_groups: list(&[rule.group]),
        api_versions: list(&[rule.version]),
        operations: list(&["CREATE", "UPDATE"]),
        resources: list(&rule.resources),
        scope: Some("*".to_owned()),
    }
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

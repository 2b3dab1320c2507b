//! Webhooks to register in the seed.

use std::collections::BTreeMap;

use runtime::webhook::{Webhook, WebhookRule};

/// Group and plural of Deployments.
pub(super) const DEPLOYMENTS: (&str, &str) = ("apps", "deployments");
/// Group and plural of VerticalPodAutoscalers.
pub(super) const AUTOSCALERS: (&str, &str) = ("autoscaling.k8s.io", "verticalpodautoscalers");
/// Plurals of the changed resources.
pub(super) const RESOURCES: &[&str] = &[DEPLOYMENTS.1, AUTOSCALERS.1];
/// Label that gardenlet sets on objects for provider webhooks.
const FOR_WEBHOOKS: &str = "provider.extensions.gardener.cloud/mutated-by-controlplane-webhook";
/// Label that gardenlet sets on the namespace of a shoot's control plane.
const PROVIDER: &str = "shoot.gardener.cloud/provider";

/// Path of a provider's webhook.
pub(super) fn path(provider_type: &str) -> String {
    format!("/sidecar/{provider_type}")
}

/// The webhook for shoots of one provider. A webhook per provider avoids reading the type of the shoot.
pub(super) fn webhook(provider_type: &str) -> Webhook {
    let rule = |(group, resource)| WebhookRule { group, version: "v1", resources: vec![resource] };
    Webhook {
        name: format!("sidecar.worker-{provider_type}.extensions.gardener.cloud"),
        path: path(provider_type),
        rules: [DEPLOYMENTS, AUTOSCALERS].map(rule).to_vec(),
        object_labels: BTreeMap::from([(FOR_WEBHOOKS.to_owned(), "true".to_owned())]),
        namespace_labels: BTreeMap::from([(PROVIDER.to_owned(), provider_type.to_owned())]),
    }
}

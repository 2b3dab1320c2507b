//! Webhooks to register in the garden (docs/contract.md#webhooks).

use std::collections::BTreeMap;

use super::reviewers::{CLOUD_PROFILES, GROUP, NAMESPACED_CLOUD_PROFILES, SHOOTS};
use runtime::webhook::{Webhook, WebhookKind, WebhookRule};

pub(super) const VALIDATE: &str = "/webhooks/validate";
pub(super) const MUTATE: &str = "/webhooks/mutate";
const VERSION: &str = "v1beta1";

/// One validating and one mutating webhook per provider type. Each selects objects by Gardener's provider label, so
/// that a failure for one provider does not block others.
pub(super) fn webhooks<'a>(provider_types: impl Iterator<Item = &'a str>) -> Vec<(WebhookKind, Webhook)> {
    let webhooks = provider_types.flat_map(|provider_type| {
        let validated = vec![CLOUD_PROFILES, NAMESPACED_CLOUD_PROFILES, SHOOTS];
        let mutated = vec![CLOUD_PROFILES, NAMESPACED_CLOUD_PROFILES, "namespacedcloudprofiles/status"];
        [
            (WebhookKind::Validating, webhook(provider_type, "validator", VALIDATE, validated)),
            (WebhookKind::Mutating, webhook(provider_type, "mutator", MUTATE, mutated)),
        ]
    });
    webhooks.collect()
}

fn webhook(provider_type: &str, role: &str, path: &str, resources: Vec<&'static str>) -> Webhook {
    let label = format!("provider.extensions.gardener.cloud/{provider_type}");
    Webhook {
        name: format!("{role}.worker-admission-{provider_type}.extensions.gardener.cloud"),
        path: path.to_owned(),
        rules: vec![WebhookRule { group: GROUP, version: VERSION, resources }],
        object_labels: BTreeMap::from([(label, "true".to_owned())]),
        namespace_labels: BTreeMap::new(),
    }
}

//! The provider spec of a machine class, as machine-controller-manager's OpenStack driver decodes it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::documents::WorkerConfig;
use super::zonal::OpenStackWorker;
use crate::provider::machine_class::without_nulls;
use crate::provider::zonal::PoolInputs;
use wire::api::gardener::{Shoot, WorkerPool};

impl OpenStackWorker<'_> {
    pub(super) fn provider_spec(&self, inputs: &PoolInputs<'_, Self>, zone: &str) -> Value {
        // Lists every member of the provider config, so that a new one can't be forgotten.
        let WorkerConfig {
            _api_version: _,
            _kind: _,
            // Part of the node template of the class.
            node_template: _,
            // The recorded group of the pool is used instead.
            server_group: _,
            machine_labels: _,
            additional_security_groups,
        } = &inputs.config;
        let image = &inputs.image.reference;
        let named = |member: &str| (image.member == member).then_some(image.value.as_str());
        let subnets = |purpose: &'static str| {
            let of_purpose = self.infrastructure.networks.subnets.iter().filter(move |known| known.purpose == purpose);
            of_purpose.map(|subnet| subnet.id.as_str())
        };
        let security_groups = [&self.security_group].into_iter().chain(additional_security_groups);
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        without_nulls(json!({
            "apiVersion": "openstack.machine.gardener.cloud/v1alpha1",
            "kind": "MachineProviderConfig",
            "spec": {
                "availabilityZone": zone,
                "flavorName": inputs.pool.machine_type,
                "imageID": named("id"),
                "imageName": named("image"),
                "keyName": given(&self.infrastructure.node.key_name),
                "networkID": given(&self.infrastructure.networks.id),
                "podNetworkCIDRs": Some(pod_networks(self.context.shoot)).filter(|networks| !networks.is_empty()),
                "region": self.context.worker.spec.region,
                "rootDiskSize": inputs.shared.root_disk.size,
                "rootDiskType": inputs.shared.root_disk.volume_type,
                "securityGroups": security_groups.collect::<Vec<_>>(),
                "serverGroupID": inputs.shared.server_group,
                "subnetIDs": subnets("nodes").chain(subnets("nodes-ipv6")).collect::<Vec<_>>(),
                "tags": tags(&self.context.shoot.status.technical_id, inputs.pool, &inputs.config),
            },
        }))
    }
}

/// The pod networks: the one in the spec, followed by others in the status.
fn pod_networks(shoot: &Shoot) -> Vec<&str> {
    let ordered = shoot.spec.networking.as_ref().and_then(|networking| networking.pods.as_deref());
    let in_status = shoot.status.networking.iter().flat_map(|networking| &networking.pods);
    ordered.into_iter().chain(in_status.map(String::as_str).filter(|pods| Some(*pods) != ordered)).collect()
}

/// Labels of the pool, overridden by its machine labels, overridden by the tags by which machine-controller-manager
/// finds machines. If two keys become equal, the last one in key order wins.
fn tags(technical_id: &str, pool: &WorkerPool, config: &WorkerConfig) -> BTreeMap<String, String> {
    let labels = pool.labels.iter().chain(config.machine_labels.iter().map(|label| (&label.name, &label.value)));
    let mut tags: BTreeMap<String, String> = labels.map(|(key, value)| (tag_key(key), value.clone())).collect();
    tags.insert(format!("kubernetes.io-cluster-{technical_id}"), "1".to_owned());
    tags.insert("kubernetes.io-role-node".to_owned(), "1".to_owned());
    tags
}

fn tag_key(key: &str) -> String {
    let is_allowed = |character: char| character.is_ascii_alphanumeric() || "-_:. ".contains(character);
    key.chars().map(|character| if is_allowed(character) { character } else { '-' }).collect()
}

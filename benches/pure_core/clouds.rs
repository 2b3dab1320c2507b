//! Differences between the clouds in the documents of a Worker.

use serde_json::{Value, json};

/// One cloud.
pub(crate) struct Cloud {
    pub(crate) worker_type: &'static str,
    pub(crate) region: &'static str,
    pub(crate) zones: [&'static str; super::ZONES],
    pub(crate) volume_type: &'static str,
    /// A capability other than the architecture.
    pub(crate) capability: &'static str,
    /// Its values in order of preference.
    pub(crate) capability_values: [&'static str; 2],
    pub(crate) infrastructure: fn() -> Value,
    pub(crate) worker_config: fn() -> Value,
    /// A flavor without capabilities: the image reference for a name and version.
    pub(crate) image: fn(&str, &str) -> Value,
}

impl Cloud {
    /// Adds API version and kind of the provider to a document.
    pub(crate) fn document(&self, kind: &str, mut members: Value) -> Value {
        members["apiVersion"] = json!(format!("{}.provider.extensions.gardener.cloud/v1alpha1", self.worker_type));
        members["kind"] = json!(kind);
        members
    }
}

pub(crate) const AZURE: Cloud = Cloud {
    worker_type: "azure",
    region: "westeurope",
    zones: ["1", "2", "3"],
    volume_type: "Premium_LRS",
    capability: "azure-networking",
    capability_values: ["accelerated", "basic"],
    infrastructure: || {
        json!({
            "networks": {
                "layout": "SingleSubnet",
                "vnet": {"name": "vnet"},
                "subnets": [{"name": "nodes", "purpose": "nodes"}],
            },
            "resourceGroup": {"name": "group"},
            "zoned": true,
        })
    },
    worker_config: || json!({"volume": {"caching": "ReadOnly"}}),
    image: |name, version| json!({"communityGalleryImageID": format!("/CommunityGalleries/{name}/Images/{name}/Versions/{version}")}),
};

pub(crate) const AWS: Cloud = Cloud {
    worker_type: "aws",
    region: "eu-central-1",
    zones: ["eu-central-1a", "eu-central-1b", "eu-central-1c"],
    volume_type: "gp3",
    capability: "boot-mode",
    capability_values: ["uefi-preferred", "legacy-bios"],
    infrastructure: || {
        let subnet = |zone| json!({"purpose": "nodes", "id": format!("subnet-{zone}"), "zone": zone});
        json!({
            "ec2": {"keyName": "key"},
            "iam": {"instanceProfiles": [{"purpose": "nodes", "name": "nodes"}], "roles": []},
            "vpc": {
                "id": "vpc",
                "securityGroups": [{"purpose": "nodes", "id": "sg-nodes"}],
                "subnets": AWS.zones.map(subnet),
            },
        })
    },
    worker_config: || json!({"volume": {"iops": 4000, "throughput": 250}}),
    image: |name, version| {
        let region = |region: &str| json!({"name": region, "ami": format!("ami-{name}-{version}-{region}")});
        let regions = ["us-east-1", "eu-west-1", AWS.region].map(region);
        json!({ "regions": regions })
    },
};

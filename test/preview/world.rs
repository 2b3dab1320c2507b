//! Worlds to mutate: Workers with their related objects, as gardenlet would write them.

use gardener_extension_worker::api::secret::{SecretContent, Secrets};
use gardener_extension_worker::preview::{CloudProfiles, Inputs};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

const AZURE: &str = "azure.provider.extensions.gardener.cloud/v1alpha1";

/// All inputs of a Worker's plan.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct World {
    pub(crate) worker: Value,
    pub(crate) cloud_profile: Value,
    pub(crate) shoot: Value,
    pub(crate) secrets: Value,
}

impl World {
    pub(crate) fn namespace(&self) -> &str {
        self.worker["metadata"]["namespace"].as_str().unwrap()
    }

    pub(crate) fn cluster(&self) -> Value {
        json!({
            "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Cluster",
            "metadata": {"name": self.namespace()},
            "spec": {"cloudProfile": self.cloud_profile, "shoot": self.shoot},
        })
    }

    pub(crate) fn secret_objects(&self) -> Vec<Value> {
        let secrets = self.secrets.as_object().unwrap().iter();
        secrets
            .map(|(name, data)| {
                json!({
                    "apiVersion": "v1", "kind": "Secret", "stringData": data,
                    "metadata": {"name": name, "namespace": self.namespace()},
                })
            })
            .collect()
    }

    pub(crate) fn secrets(&self) -> Secrets {
        let mut secrets = Secrets::default();
        for (name, texts) in self.secrets.as_object().unwrap() {
            let texts = texts.as_object().unwrap().iter();
            let data = texts.map(|(key, text)| (key.clone(), ByteString(text.as_str().unwrap().into())));
            let secret = Secret { data: Some(data.collect()), ..Secret::default() };
            secrets.insert(self.namespace(), name, SecretContent::from(secret));
        }
        secrets
    }

    pub(crate) fn inputs(&self, profiles: &CloudProfiles) -> Inputs {
        Inputs::new(self.worker.clone(), Some(self.cluster()), self.secrets(), profiles).unwrap()
    }

    pub(crate) fn pools(&self) -> Vec<String> {
        let pools = self.worker["spec"]["pools"].as_array().unwrap().iter();
        pools.map(|pool| pool["name"].as_str().unwrap().to_owned()).collect()
    }
}

/// The Secrets among documents.
pub(crate) fn secrets_of(documents: &[Value]) -> Secrets {
    let mut secrets = Secrets::default();
    for secret in documents.iter().filter(|document| document["kind"] == "Secret") {
        let texts = secret["stringData"].as_object().unwrap().iter();
        let data = texts.map(|(key, text)| (key.clone(), ByteString(text.as_str().unwrap().into())));
        let content = SecretContent::from(Secret { data: Some(data.collect()), ..Secret::default() });
        let name = |member: &str| secret["metadata"][member].as_str().unwrap();
        secrets.insert(name("namespace"), name("name"), content);
    }
    secrets
}

/// All worlds, by name.
pub(crate) fn worlds() -> Vec<(&'static str, World)> {
    let zones3 = || json!(["1", "2", "3"]);
    let zonal = |namespace: &str, pools: Vec<Value>, profile: Value| world(namespace, pools, profile, &single_subnet());
    let mut multi = zonal(
        "shoot--p--multi",
        vec![pool("alpha", "1.34.2", &zones3()), without_agent_secret(pool("beta", "1.33.4", &json!(["1", "2"])))],
        old_format_profile(),
    );
    multi.worker["spec"]["infrastructureProviderStatus"]["networks"] = json!({
        "layout": "MultipleSubnet", "vnet": {"name": "vnet-m", "resourceGroup": "net"},
        "subnets": [
            {"name": "m-nodes", "purpose": "nodes", "zone": "1", "migrated": true},
            {"name": "m-nodes-z2", "purpose": "nodes", "zone": "2"},
            {"name": "m-nodes-z3", "purpose": "nodes", "zone": "3"},
        ],
    });
    multi.shoot["status"]["credentials"] = json!({"rotation": {
        "certificateAuthorities": {"lastInitiationTime": "2025-03-01T10:20:30Z",
            "pendingWorkersRollouts": [{"name": "beta", "lastInitiationTime": "2024-01-02T03:04:05Z"}]},
        "serviceAccountKey": {"lastInitiationTime": "2025-03-01T10:20:31Z"},
    }});
    let mut sleeping = zonal("shoot--p--sleeping", vec![pool("alpha", "1.35.0", &zones3())], capability_profile());
    sleeping.shoot["spec"]["hibernation"] = json!({"enabled": true});
    let mut fixed = zonal(
        "shoot--p--fixed",
        vec![pool("alpha", "1.34.2", &zones3()), without_agent_secret(pool("beta", "1.34.2", &json!(["2"])))],
        capability_profile(),
    );
    for pool in fixed.worker["spec"]["pools"].as_array_mut().unwrap() {
        pool["maximum"] = pool["minimum"].clone();
    }
    let in_place = |name: &str, strategy: &str| {
        let mut pool = pool(name, "1.34.2", &json!(["1", "2"]));
        pool["updateStrategy"] = json!(strategy);
        pool
    };
    let mut flat = world(
        "shoot--p--flat",
        vec![pool("alpha", "1.34.2", &json!([])), pool("beta", "1.35.1", &json!([]))],
        capability_profile(),
        &single_subnet(),
    );
    flat.worker["spec"]["infrastructureProviderStatus"]["zoned"] = json!(false);
    flat.worker["status"] = json!({"providerStatus": {
        "apiVersion": AZURE, "kind": "WorkerStatus",
        "vmoDependencies": [
            {"poolName": "alpha", "id": "/vmss/vmo-alpha-AbCd1234", "name": "vmo-alpha-AbCd1234"},
            {"poolName": "beta", "id": "/vmss/vmo-beta-AbCd1234", "name": "vmo-beta-AbCd1234"},
        ],
    }});
    vec![
        (
            "zonal, with capabilities",
            zonal(
                "shoot--p--caps",
                vec![pool("alpha", "1.34.2", &zones3()), pool("beta", "1.35.1", &json!(["2", "3"]))],
                capability_profile(),
            ),
        ),
        ("a subnet per zone, old-format profile, rotations", multi),
        ("hibernated", sleeping),
        ("no autoscaler", fixed),
        (
            "in place",
            zonal(
                "shoot--p--inplace",
                vec![in_place("alpha", "AutoInPlaceUpdate"), in_place("beta", "ManualInPlaceUpdate")],
                capability_profile(),
            ),
        ),
        ("scale sets", flat),
    ]
}

fn world(namespace: &str, pools: Vec<Value>, cloud_profile: Value, networks: &Value) -> World {
    let mut secrets = json!({
        "cloudprovider": {"subscriptionID": "s", "tenantID": "6f4b0c5a-1f0e-4f5e-9a56-0f1f3c0d2b11", "clientID": "c", "clientSecret": "x"},
        "other-script": {"cloud_config": "#!/bin/bash\necho other"},
    });
    let workers: Vec<Value> =
        pools.iter().map(|pool| json!({"name": pool["name"], "cri": {"name": "containerd"}})).collect();
    for pool in &pools {
        let name = pool["userDataSecretRef"]["name"].as_str().unwrap();
        secrets[name] = json!({"cloud_config": format!("#!/bin/bash\necho {name}"), "second": "#!/bin/sh"});
    }
    World {
        worker: json!({
            "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Worker",
            "metadata": {"name": "worker", "namespace": namespace},
            "spec": {
                "type": "azure", "region": "westeurope",
                "secretRef": {"name": "cloudprovider", "namespace": namespace},
                "sshPublicKey": "c3NoLXJzYSBBQUFBQjNOemFDMXljMkU=",
                "infrastructureProviderStatus": {
                    "apiVersion": AZURE, "kind": "InfrastructureStatus", "networks": networks,
                    "resourceGroup": {"name": namespace}, "identity": {"id": "/identities/one"}, "zoned": true,
                },
                "pools": pools,
            },
        }),
        cloud_profile,
        shoot: json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
            "metadata": {"name": "shoot", "namespace": "garden-p"},
            "spec": {
                "region": "westeurope",
                "kubernetes": {"version": "1.34.2", "kubeProxy": {"enabled": true, "mode": "IPTables"}},
                "systemComponents": {"nodeLocalDNS": {"enabled": true}},
                "provider": {"workers": workers},
            },
            "status": {"technicalID": namespace},
        }),
        secrets,
    }
}

fn single_subnet() -> Value {
    json!({
        "layout": "SingleSubnet", "vnet": {"name": "vnet-a"},
        "subnets": [{"name": "internal-a", "purpose": "internal"}, {"name": "nodes-a", "purpose": "nodes"}],
    })
}

fn pool(name: &str, version: &str, zones: &Value) -> Value {
    json!({
        "name": name, "machineType": "Standard_D4s_v5", "architecture": "amd64",
        "machineImage": {"name": "gardenlinux", "version": "1877.3.0"},
        "minimum": 4, "maximum": 10, "maxSurge": 1, "maxUnavailable": 0, "zones": zones,
        "nodeAgentSecretName": format!("gardener-node-agent-{name}-77ac3aaaf0a1b2c3"),
        "userDataSecretRef": {"name": format!("gardener-node-agent-{name}"), "key": "cloud_config"},
        "kubernetesVersion": version,
        "volume": {"size": "50Gi", "type": "Premium_LRS"},
        "dataVolumes": [{"name": "d2", "size": "20Gi"}, {"name": "d1", "size": "100Gi", "type": "Premium_LRS"}],
        "labels": {"worker.gardener.cloud/pool": name, "team": "one"},
        "annotations": {"note": "x"},
        "taints": [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}, {"key": "cold", "effect": "PreferNoSchedule"}],
        "machineControllerManager": {"machineDrainTimeout": "1h0m0s", "maxEvictRetries": 8, "nodeConditions": ["Disk"]},
        "clusterAutoscaler": {"scaleDownUnneededTime": "30m0s"},
        "kubeletConfig": {"kubeReserved": {"cpu": "80m", "memory": "1Gi"}, "evictionHard": {"memoryAvailable": "100Mi"}},
        "nodeTemplate": {"capacity": {"cpu": "4", "gpu": "0", "memory": "16Gi"}},
        "providerConfig": {
            "apiVersion": AZURE, "kind": "WorkerConfig",
            "nodeTemplate": {"capacity": {"cpu": "4", "memory": "15Gi"}, "virtualCapacity": {"x.y/z": "5"}},
            "diagnosticsProfile": {"enabled": true, "storageURI": "https://d/?a=1&b=2"},
            "volume": {"caching": "None"},
            "dataVolumes": [{"name": "d1", "imageRef": {"id": "/i"}}],
            "capacityReservation": {"capacityReservationGroupID": "/g"},
        },
    })
}

fn without_agent_secret(mut pool: Value) -> Value {
    pool.as_object_mut().unwrap().remove("nodeAgentSecretName");
    pool
}

fn profile(capabilities: Value, machine_types: Value, config: Value) -> Value {
    let mut profile = json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "CloudProfile", "metadata": {"name": "azure"},
        "spec": {"type": "azure", "machineTypes": machine_types, "providerConfig": config},
    });
    if !capabilities.is_null() {
        profile["spec"]["machineCapabilities"] = capabilities;
    }
    profile
}

/// A profile with capabilities in which the order of definitions, values and flavors can matter.
fn capability_profile() -> Value {
    let flavors = |version: &str| {
        let id = |flavor: &str| format!("/CommunityGalleries/g/Images/gardenlinux-{flavor}/Versions/{version}");
        json!([
            {"capabilities": {"architecture": ["amd64"], "hypervisorType": ["gen2"], "azure-networking": ["basic"]},
             "communityGalleryImageID": id("gen2")},
            {"capabilities": {"architecture": ["amd64"], "hypervisorType": ["gen1"], "azure-networking": ["accelerated", "basic"]},
             "communityGalleryImageID": id("gen1")},
            {"capabilities": {"architecture": ["arm64"]}, "communityGalleryImageID": id("arm64")},
        ])
    };
    let version = |version: &str| json!({"version": version, "capabilityFlavors": flavors(version)});
    profile(
        json!([
            {"name": "architecture", "values": ["amd64", "arm64"]},
            {"name": "hypervisorType", "values": ["gen2", "gen1"]},
            {"name": "azure-networking", "values": ["accelerated", "basic"]},
        ]),
        json!([
            {"name": "Standard_D4s_v5", "capabilities": {"architecture": ["amd64"]}},
            {"name": "Standard_D8s_v5", "capabilities": {"architecture": ["amd64"], "hypervisorType": ["gen2"]}},
            {"name": "Standard_DC4as_v5", "capabilities": {"architecture": ["amd64"]}},
        ]),
        json!({"apiVersion": AZURE, "kind": "CloudProfileConfig",
            "countFaultDomains": [{"region": "westeurope", "count": 3}], "machineImages": [
            {"name": "gardenlinux", "versions": [version("1877.3.0"), version("1877.4.0")]},
            {"name": "suse-chost", "versions": [version("1877.3.0")]},
        ]}),
    )
}

fn old_format_profile() -> Value {
    let versions = |name: &str| {
        json!({"name": name, "versions": [
            {"version": "1877.3.0", "urn": format!("{name}:offer:sku:1877.3.0"), "acceleratedNetworking": true},
            {"version": "1877.3.0", "id": format!("/arm/{name}/1877.3.0"), "architecture": "arm64"},
            {"version": "1877.4.0", "sharedGalleryImageID": format!("/shared/{name}/1877.4.0")},
        ]})
    };
    profile(
        Value::Null,
        json!([{"name": "Standard_D4s_v5"}, {"name": "Standard_D8s_v5"}, {"name": "Standard_DC4as_v5"}]),
        json!({"apiVersion": AZURE, "kind": "CloudProfileConfig",
            "countFaultDomains": [{"region": "westeurope", "count": 3}],
            "machineImages": [versions("gardenlinux"), versions("suse-chost")],
            "machineTypes": [{"name": "Standard_D4s_v5", "acceleratedNetworking": true}]}),
    )
}

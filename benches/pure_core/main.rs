//! Measures the pure core on one CPU: decoding, planning and comparing a large Worker, for each cloud.
//!
//! 100 pools in 3 zones each, with a CloudProfile of 400 machine types and 200 image versions with 4 flavors. An
//! element is one pool in one zone, so `thrpt` is pool-zones per second. `docs/performance-evidence.md` lists the results.
//! `clouds.rs` defines the differences between clouds; `gate.rs` measures rolls zone by zone; `profiles.rs` measures commands for CloudProfiles.

#![allow(missing_docs, clippy::expect_used, reason = "a benchmark of inputs that are written here")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use gardener_extension_worker::api::gardener::{Cluster, Worker};
use gardener_extension_worker::api::gotext::json::{decode_lenient, to_go_json};
use gardener_extension_worker::api::secret::{SecretContent, Secrets};
use gardener_extension_worker::provider::{Provider, Providers, WorkerContext};
use gardener_extension_worker::worker::machines::machine_objects::{DigestedObject, LiveDeployment, MachineObjects};
use gardener_extension_worker::worker::plan::changes::{MachineChanges, changes};
use gardener_extension_worker::worker::plan::class_images::ClassImages;
use gardener_extension_worker::worker::plan::{Plan, plan};
use gardener_extension_worker::worker::request::decode;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

mod clouds;
mod gate;
mod profiles;

use clouds::{AWS, AZURE, Cloud};

const NAMESPACE: &str = "shoot--core--large";
const POOLS: usize = 100;
const ZONES: usize = 3;
const MACHINE_TYPES: usize = 400;
const IMAGE_VERSIONS: usize = 200;
/// The current time, which the core receives as an argument.
const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// A Worker and related objects, decoded and as text.
struct Input {
    worker_text: String,
    cluster_text: String,
    worker: Worker,
    cluster: Cluster,
    secrets: Secrets,
    provider: &'static dyn Provider,
}

impl Input {
    fn new(cloud: &Cloud, pools: usize) -> Self {
        let worker_text = to_go_json(&worker(cloud, pools));
        let cluster_text = to_go_json(&cluster(cloud));
        Self {
            provider: Providers::SHIPPED.for_worker_type(cloud.worker_type).expect("it is shipped"),
            worker: decode_lenient(&worker_text).expect("the Worker is valid"),
            cluster: decode_lenient(&cluster_text).expect("the Cluster is valid"),
            secrets: secrets(pools),
            worker_text,
            cluster_text,
        }
    }

    fn context(&self) -> WorkerContext<'_> {
        decode::context(&self.worker, &self.cluster, &self.secrets).expect("the Cluster is complete")
    }

    fn plan(&self) -> Plan {
        plan(self.provider, self.context()).expect("the Worker can be planned")
    }
}

fn worker(cloud: &Cloud, pools: usize) -> Value {
    let pools: Vec<_> = (0..pools).map(|number| pool(cloud, number)).collect();
    json!({
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": "Worker",
        "metadata": {"name": "large", "namespace": NAMESPACE, "generation": 3},
        "spec": {
            "type": cloud.worker_type,
            "region": cloud.region,
            "secretRef": {"name": "cloudprovider", "namespace": NAMESPACE},
            "sshPublicKey": "c3NoLXJzYSBBQUFBQjNOemFDMXljMkU=",
            "infrastructureProviderStatus": cloud.document("InfrastructureStatus", (cloud.infrastructure)()),
            "pools": pools,
        },
    })
}

fn pool(cloud: &Cloud, number: usize) -> Value {
    json!({
        "name": format!("pool-{number}"),
        "machineType": machine_type_name(number * 397 % MACHINE_TYPES),
        "machineImage": {"name": "gardenlinux", "version": image_version_name(number * 199 % IMAGE_VERSIONS)},
        "minimum": 4,
        "maximum": 10,
        "maxSurge": "25%",
        "maxUnavailable": 0,
        "zones": cloud.zones,
        "architecture": if number.is_multiple_of(2) { "amd64" } else { "arm64" },
        "kubernetesVersion": "1.34.2",
        "nodeAgentSecretName": format!("gardener-node-agent-pool-{number}-77ac3aaaf0a1b2c3"),
        "userDataSecretRef": {"name": format!("gardener-node-agent-{number}"), "key": "cloud_config"},
        "labels": {"node.kubernetes.io/role": "node", "worker.gardener.cloud/pool": format!("pool-{number}")},
        "annotations": {"team": "platform"},
        "taints": [{"key": "dedicated", "value": format!("{number}"), "effect": "NoSchedule"}],
        "volume": {"type": cloud.volume_type, "size": "100Gi"},
        "dataVolumes": [{"name": "data", "type": cloud.volume_type, "size": "200Gi"}],
        "nodeTemplate": {"capacity": {"cpu": "4", "gpu": "0", "memory": "16Gi"}},
        "providerConfig": cloud.document("WorkerConfig", (cloud.worker_config)()),
        "updateStrategy": "AutoRollingUpdate",
    })
}

fn machine_type_name(number: usize) -> String {
    format!("size-{number}")
}

fn image_version_name(number: usize) -> String {
    format!("{}.{}.0", 1000 + number, number % 10)
}

fn cluster(cloud: &Cloud) -> Value {
    let machine_types: Vec<_> = (0..MACHINE_TYPES)
        .map(|number| {
            let architecture = if number.is_multiple_of(2) { "amd64" } else { "arm64" };
            json!({
                "name": machine_type_name(number),
                "cpu": "4",
                "gpu": "0",
                "memory": "16Gi",
                "usable": true,
                "architecture": architecture,
                "capabilities": {"architecture": [architecture], cloud.capability: cloud.capability_values},
            })
        })
        .collect();
    let versions: Vec<_> = (0..IMAGE_VERSIONS).map(|number| image_version(cloud, number)).collect();
    json!({
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": NAMESPACE},
        "spec": {
            "cloudProfile": {
                "apiVersion": "core.gardener.cloud/v1beta1",
                "kind": "CloudProfile",
                "metadata": {"name": "large"},
                "spec": {
                    "machineCapabilities": [
                        {"name": "architecture", "values": ["amd64", "arm64"]},
                        {"name": cloud.capability, "values": cloud.capability_values},
                    ],
                    "machineTypes": machine_types,
                    "providerConfig": cloud.document(
                        "CloudProfileConfig",
                        json!({"machineImages": [{"name": "gardenlinux", "versions": versions}]}),
                    ),
                },
            },
            "shoot": {
                "metadata": {"name": "large", "namespace": "garden-core"},
                "spec": {"kubernetes": {"version": "1.34.2"}, "provider": {"type": cloud.worker_type, "workers": []}},
                "status": {"technicalID": NAMESPACE},
            },
        },
    })
}

fn image_version(cloud: &Cloud, number: usize) -> Value {
    let version = image_version_name(number);
    let mut flavors = Vec::new();
    for architecture in ["amd64", "arm64"] {
        for value in cloud.capability_values {
            let mut flavor = (cloud.image)(&format!("gardenlinux-{architecture}-{value}"), &version);
            flavor["capabilities"] = json!({"architecture": [architecture], cloud.capability: [value]});
            flavors.push(flavor);
        }
    }
    json!({"version": version, "capabilityFlavors": flavors})
}

fn secrets(pools: usize) -> Secrets {
    let content = |data: &[(&str, &str)]| {
        let data = data.iter().map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec())));
        SecretContent::from(Secret { data: Some(data.collect()), ..Secret::default() })
    };
    let mut secrets = Secrets::default();
    let credentials = [
        ("clientID", "client"),
        ("clientSecret", "secret"),
        ("subscriptionID", "subscription"),
        ("tenantID", "tenant"),
    ];
    secrets.insert(NAMESPACE, "cloudprovider", content(&credentials));
    // As long as Gardener's scripts.
    let script = "#!/bin/bash\n".repeat(400);
    for number in 0..pools {
        let name = format!("gardener-node-agent-{number}");
        secrets.insert(NAMESPACE, &name, content(&[("cloud_config", &script)]));
    }
    secrets
}

/// The machine objects after all planned changes are written.
fn live_after(input: &Input, plan: &Plan) -> MachineObjects {
    let mut live = MachineObjects::default();
    for change in changes(&input.context(), plan, &ClassImages::default(), &MachineObjects::default(), NOW) {
        let names = &change.machine.deployment;
        if let (Some(secret), Some(class), Some(deployment)) = (change.secret, change.class, change.deployment) {
            live.class_secrets.insert(names.secret_name.0.clone(), DigestedObject::secret(secret.after().clone()));
            let class = DigestedObject::class(class.after().clone()).expect("our own class can be read");
            live.classes.insert(names.class_name.0.clone(), class);
            let deployment =
                LiveDeployment::read_without_codes(deployment.after().clone()).expect("our own deployment can be read");
            live.deployments.insert(names.name.0.clone(), deployment);
        }
    }
    live
}

fn pure_core(criterion: &mut Criterion) {
    for cloud in [AZURE, AWS] {
        measure(criterion, &cloud);
        gate::measure(criterion, &cloud);
        profiles::measure(criterion, &cloud);
    }
    gate::measure_slots(criterion);
}

fn measure(criterion: &mut Criterion, cloud: &Cloud) {
    let mut group = criterion.benchmark_group(cloud.worker_type);
    for pools in [1, POOLS] {
        let input = Input::new(cloud, pools);
        let size = format!("{pools}x{ZONES}");
        group.throughput(Throughput::Elements((pools * ZONES) as u64));
        group.bench_function(BenchmarkId::new("decode", &size), |bencher| {
            bencher.iter(|| {
                let worker: Worker = decode_lenient(black_box(&input.worker_text)).expect("valid");
                let cluster: Cluster = decode_lenient(black_box(&input.cluster_text)).expect("valid");
                (worker, cluster)
            });
        });
        let planned = input.plan();
        assert_eq!(planned.machines().count(), pools * ZONES, "{:?}", planned.errors().next());
        group.bench_function(BenchmarkId::new("plan", &size), |bencher| bencher.iter(|| black_box(&input).plan()));
        let live = live_after(&input, &planned);
        let differs = |change: &MachineChanges<'_>| {
            change.secret.is_some() || change.class.is_some() || change.deployment.is_some()
        };
        assert!(
            !changes(&input.context(), &planned, &ClassImages::default(), &live, NOW).iter().any(differs),
            "a second pass writes something"
        );
        group.bench_function(BenchmarkId::new("changes_when_nothing_differs", &size), |bencher| {
            let images = ClassImages::default();
            bencher.iter(|| changes(&input.context(), black_box(&planned), &images, black_box(&live), NOW).len());
        });
    }
    group.finish();
}

criterion_group!(benches, pure_core);
criterion_main!(benches);

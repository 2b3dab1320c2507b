//! AWS: if the CloudProfile lists no architecture for a machine type, the first pool with that type determines it for
//! all of them. So two pools that look alike can have images for different machines, and different causes.

use gardener_extension_worker::api::gotext::yaml;
use gardener_extension_worker::api::secret::Secrets;
use gardener_extension_worker::preview::{Baseline, CloudProfiles, Inputs, compare};
use gardener_extension_worker::worker::machines::machine_objects::MachineObjects;
use serde_json::{Value, json};

use crate::world::secrets_of;

/// The Worker, Cluster and Secrets of the example, with a machine type that has no architecture.
struct Example {
    worker: Value,
    cluster: Value,
    secrets: Secrets,
}

impl Example {
    fn read() -> Self {
        let documents = yaml::documents(include_str!("../../example/aws.yaml")).unwrap();
        let of_kind = |kind: &str| documents.iter().filter(|document| document["kind"] == kind).cloned().collect();
        let [mut worker, mut cluster]: [Value; 2] = ["Worker", "Cluster"].map(|kind| {
            let found: Vec<Value> = of_kind(kind);
            found.into_iter().next().unwrap()
        });
        cluster["spec"]["cloudProfile"]["spec"]["machineTypes"] = json!([{"name": "either", "cpu": "4", "gpu": "0", "memory": "16Gi",
                "capabilities": {"bootMode": ["uefi-preferred"]}}]);
        for pool in worker["spec"]["pools"].as_array_mut().unwrap() {
            pool["machineType"] = json!("either");
        }
        let secrets = secrets_of(&documents);
        Self { worker, cluster, secrets }
    }

    /// The example with these architectures for its two pools.
    fn inputs(&self, architectures: [&str; 2], cluster: &Value, profiles: &CloudProfiles) -> Inputs {
        let mut worker = self.worker.clone();
        for (pool, architecture) in architectures.into_iter().enumerate() {
            worker["spec"]["pools"][pool]["architecture"] = json!(architecture);
        }
        Inputs::new(worker, Some(cluster.clone()), self.secrets.clone(), profiles).unwrap()
    }
}

#[test]
fn pools_behind_another_first_pool_have_causes_of_their_own() {
    let example = Example::read();
    let mut cluster = example.cluster.clone();
    let flavors = &mut cluster["spec"]["cloudProfile"]["spec"]["providerConfig"]["machineImages"][0]["versions"][0]["capabilityFlavors"];
    for (flavor, ami) in [(1, "ami-new-amd64"), (2, "ami-new-arm64")] {
        flavors[flavor]["regions"][0]["ami"] = json!(ami);
    }
    let profiles = CloudProfiles::default();
    // The second pools are the same. With the same `profiles`, a comparison reuses the causes of an earlier one for
    // pools with the same needs.
    let of_second_pool = |first: &str| {
        let old = example.inputs([first, "arm64"], &example.cluster, &profiles);
        let new = example.inputs([first, "arm64"], &cluster, &profiles);
        let change = compare(Some(&old), Some(&new), &MachineObjects::default(), Baseline::Rendered, &profiles);
        let placement = change.placements.iter().find(|placement| placement.pool == "search").unwrap().clone();
        assert!(placement.new_nodes_differ, "{:?}", change.findings);
        placement.causes.iter().map(|cause| cause.change.path.to_string()).collect::<Vec<_>>()
    };
    let (amd64, arm64) = (of_second_pool("amd64"), of_second_pool("arm64"));
    assert!(amd64.len() == 1 && amd64[0].contains("capabilityFlavors[1]"), "{amd64:?}");
    assert!(arm64.len() == 1 && arm64[0].contains("capabilityFlavors[2]"), "{arm64:?}");
}

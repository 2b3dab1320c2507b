//! Shoots of every cloud, and typical edits of them.

use serde_json::{Value, json};

/// Provider types.
pub const PROVIDERS: [&str; 5] = ["azure", "aws", "gcp", "openstack", "alicloud"];
const VERSIONS: [&str; 3] = ["1592.4.0", "1592.9.0", "1877.3.0"];

/// A CloudProfile of a provider.
pub fn profile(provider: &str) -> Value {
    let versions = VERSIONS.map(|version| match provider {
        "azure" => json!({"version": version, "urn": "a:b:c:d"}),
        "aws" => json!({"version": version, "regions": [{"name": "here", "ami": "ami-1"}]}),
        "gcp" => json!({"version": version, "image": "projects/p/global/images/i"}),
        "openstack" => json!({"version": version, "image": "i"}),
        _ => json!({"version": version, "regions": [{"name": "here", "id": "m-1"}]}),
    });
    let listed = VERSIONS.map(|version| json!({"version": version, "architectures": ["amd64"]}));
    let machine_type =
        |name: &str| json!({"name": name, "cpu": "4", "gpu": "0", "memory": "16Gi", "architecture": "amd64"});
    let mut config = json!({
        "apiVersion": format!("{provider}.provider.extensions.gardener.cloud/v1alpha1"), "kind": "CloudProfileConfig",
        "machineImages": [{"name": "gardenlinux", "versions": versions}],
    });
    if provider == "openstack" {
        config["keystoneURL"] = json!("https://identity.example.org");
    }
    json!({
        "kind": "CloudProfile", "metadata": {"name": provider},
        "spec": {
            "type": provider, "machineTypes": [machine_type("t4"), machine_type("t8")],
            "kubernetes": {"versions": [{"version": "1.33.5"}, {"version": "1.33.9"}, {"version": "1.34.3"}]},
            "machineImages": [{"name": "gardenlinux", "versions": listed}],
            "providerConfig": config,
        },
    })
}

/// A Shoot of a provider with two pools.
pub fn shoot(provider: &str) -> Value {
    let pool = |name: &str| {
        json!({
            "name": name, "minimum": 2, "maximum": 6, "maxSurge": 1, "maxUnavailable": 0, "zones": ["1", "2"],
            "machine": {"type": "t4", "architecture": "amd64", "image": {"name": "gardenlinux", "version": "1592.4.0"}},
            "volume": {"type": "ssd", "size": "50Gi"}, "cri": {"name": "containerd"},
        })
    };
    json!({
        "kind": "Shoot", "metadata": {"name": "s", "namespace": "garden-p", "uid": "1"},
        "spec": {
            "cloudProfile": {"kind": "CloudProfile", "name": provider}, "region": "here",
            "kubernetes": {"version": "1.33.5", "kubelet": {"failSwapOn": true, "kubeReserved": {"cpu": "80m"}}},
            "provider": {"type": provider, "infrastructureConfig": {"zoned": true}, "workers": [pool("a"), pool("b")]},
        },
        "status": {"technicalID": "shoot--p--s"},
    })
}

/// Members and the values that people write to them; null removes a member.
fn edits() -> Vec<(&'static str, Vec<Value>)> {
    let rotation = |time: &str| json!({"rotation": {"certificateAuthorities": {"lastInitiationTime": time}}});
    vec![
        ("/spec/provider/workers/POOL/machine/image/version", VERSIONS.map(Value::from).to_vec()),
        ("/spec/provider/workers/POOL/machine/type", vec![json!("t4"), json!("t8")]),
        ("/spec/provider/workers/POOL/volume/size", vec![json!("50Gi"), json!("60Gi")]),
        ("/spec/provider/workers/POOL/volume/type", vec![json!("ssd"), json!("hdd")]),
        ("/spec/provider/workers/POOL/volume/encrypted", vec![json!(true), json!(false), Value::Null]),
        (
            "/spec/provider/workers/POOL/dataVolumes",
            vec![
                Value::Null,
                json!([{"name": "d", "type": "ssd", "size": "10Gi"}]),
                json!([{"name": "e", "type": "ssd", "size": "20Gi"}, {"name": "d", "type": "ssd", "size": "10Gi"}]),
                json!([{"name": "d", "type": "ssd", "size": "10Gi"}, {"name": "e", "type": "ssd", "size": "20Gi"}]),
            ],
        ),
        ("/spec/provider/workers/POOL/minimum", vec![json!(1), json!(2)]),
        ("/spec/provider/workers/POOL/maxSurge", vec![json!("25%"), json!(2)]),
        ("/spec/provider/workers/POOL/labels", vec![json!({"a": "b"}), Value::Null]),
        ("/spec/provider/workers/POOL/annotations", vec![json!({"a": "b"}), Value::Null]),
        ("/spec/provider/workers/POOL/taints", vec![json!([{"key": "k", "effect": "NoSchedule"}]), Value::Null]),
        ("/spec/provider/workers/POOL/zones", vec![json!(["1", "2"]), json!(["2", "1"]), json!(["1"])]),
        (
            "/spec/provider/workers/POOL/kubernetes",
            vec![
                Value::Null,
                json!({"kubelet": {}}),
                json!({"version": "1.33.5"}),
                json!({"version": "1.33.9", "kubelet": {"cpuManagerPolicy": "static"}}),
                json!({"kubelet": {"maxPods": 99, "kubeReserved": {"cpu": "80m"}}}),
            ],
        ),
        ("/spec/kubernetes/version", vec![json!("1.33.5"), json!("1.33.9"), json!("1.34.3")]),
        ("/spec/kubernetes/kubelet/evictionHard", vec![Value::Null, json!({}), json!({"memoryAvailable": "100Mi"})]),
        ("/spec/kubernetes/kubelet/cpuManagerPolicy", vec![Value::Null, json!("static"), json!("none")]),
        ("/spec/kubernetes/kubelet/kubeReserved/cpu", vec![json!("80m"), json!("0.08"), json!("90m")]),
        ("/spec/kubernetes/kubelet/maxPods", vec![Value::Null, json!(50)]),
        ("/spec/kubernetes/kubeProxy", vec![Value::Null, json!({"mode": "IPVS"}), json!({"mode": "IPTables"})]),
        ("/spec/systemComponents", vec![Value::Null, json!({"nodeLocalDNS": {"enabled": true}})]),
        ("/spec/hibernation", vec![Value::Null, json!({"enabled": false})]),
        ("/status/credentials", vec![Value::Null, rotation("2026-01-01T00:00:00Z"), rotation("2026-02-01T00:00:00Z")]),
    ]
}

/// Indexes of pool, edit and value, each modulo the number of them.
pub type Edit = (usize, usize, usize);

/// Applies edits to the Shoot.
pub fn edited(shoot: &Value, chosen: &[Edit]) -> Value {
    let (mut shoot, edits) = (shoot.clone(), edits());
    for (pool, edit, value) in chosen {
        let (pointer, values) = &edits[edit % edits.len()];
        let pointer = pointer.replace("POOL", &(pool % 2).to_string());
        let (parent, member) = pointer.rsplit_once('/').expect("a pointer");
        let location = shoot.pointer_mut(parent).and_then(Value::as_object_mut).expect("an object");
        match &values[value % values.len()] {
            Value::Null => drop(location.remove(member)),
            value => drop(location.insert(member.to_owned(), value.clone())),
        }
    }
    shoot
}

//! A preview of an edited Shoot says that nodes roll exactly where the names of their classes become others. The names are made here
//! once more, from the Workers that gardenlet would write.

use std::collections::BTreeMap;
use std::sync::Arc;

use gardener_extension_worker::api::gardener::{ProfileObject, Shoot, WorkerSpec};
use gardener_extension_worker::api::gotext::json::{decode_lenient, to_go_json};
use gardener_extension_worker::pool::hash::pool_hash;
use gardener_extension_worker::preview::{Baseline, CloudProfiles, Inputs, Severity, ShootSource, compare};
use gardener_extension_worker::provider::Providers;
use gardener_extension_worker::shoot::{Garden, Reservation, Surroundings, stored_shoot, worker};
use gardener_extension_worker::worker::machine_objects::MachineObjects;
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

const PROVIDERS: [&str; 5] = ["azure", "aws", "gcp", "openstack", "alicloud"];
const VERSIONS: [&str; 3] = ["1592.4.0", "1592.9.0", "1877.3.0"];

fn profile(provider: &str) -> Value {
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

fn shoot(provider: &str) -> Value {
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

/// Members and what people write into them; null takes a member out.
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

/// Pool, edit and value; taken modulo what there is.
type Edit = (usize, usize, usize);

fn edited(shoot: &Value, chosen: &[Edit]) -> Value {
    let (mut shoot, edits) = (shoot.clone(), edits());
    for (pool, edit, value) in chosen {
        let (pointer, values) = &edits[edit % edits.len()];
        let pointer = pointer.replace("POOL", &(pool % 2).to_string());
        let (parent, member) = pointer.rsplit_once('/').unwrap();
        let place = shoot.pointer_mut(parent).and_then(Value::as_object_mut).unwrap();
        match &values[value % values.len()] {
            Value::Null => drop(place.remove(member)),
            value => drop(place.insert(member.to_owned(), value.clone())),
        }
    }
    shoot
}

fn now() -> Timestamp {
    "2026-10-01T00:00:00Z".parse().unwrap()
}

/// By pool: what distinguishes the names of its classes.
fn hashes(shoot: &Value, profile: &Value, before: Option<&Value>) -> (Value, BTreeMap<String, String>) {
    let profile: ProfileObject = decode_lenient(&profile.to_string()).unwrap();
    let garden = Garden { reservation: Reservation::Static, node_local_dns: false, now: now() };
    let stored = stored_shoot(shoot, before, &profile.spec, &garden).unwrap();
    let written = worker(&stored, &profile.spec, &Surroundings::default()).unwrap();
    let spec: WorkerSpec = decode_lenient(&to_go_json(&written["spec"])).unwrap();
    let typed: Shoot = decode_lenient(&to_go_json(&stored)).unwrap();
    let provider = Providers::SHIPPED.for_worker_type(&spec.worker_type).unwrap();
    let hash = |pool| pool_hash(pool, &typed, &provider.pool_items(pool).unwrap()).unwrap().hash.0;
    let hashes = spec.pools.iter().map(|pool| (pool.name.clone(), hash(pool))).collect();
    (stored, hashes)
}

proptest! {
    #[test]
    fn nodes_roll_exactly_where_names_of_classes_become_others(
        provider in prop::sample::select(&PROVIDERS[..]),
        before in prop::collection::vec(any::<Edit>(), 0..4),
        edit in prop::collection::vec(any::<Edit>(), 1..4),
    ) {
        let old = edited(&shoot(provider), &before);
        let new = edited(&old, &edit);
        let profile = profile(provider);
        let (stored, old_hashes) = hashes(&old, &profile, None);
        let (_, new_hashes) = hashes(&new, &profile, Some(&stored));
        let known = CloudProfiles::default();
        let source = Arc::new(ShootSource::new(now()));
        let shared = known.share(profile).unwrap();
        let [old, new] = [old, new]
            .map(|shoot| Inputs::of_shoot(shoot, Arc::clone(&shared), Arc::clone(&source), known.providers()));
        let change = compare(Some(&old), Some(&new), &MachineObjects::default(), Baseline::Rendered, &known);
        prop_assert!(change.findings.iter().all(|finding| finding.severity != Severity::Error), "{:?}", change.findings);
        for placement in change.placements.iter().filter(|one| one.old_class.is_some() && one.new_class.is_some()) {
            let differs = old_hashes[&placement.pool] != new_hashes[&placement.pool];
            prop_assert_eq!(placement.verdict.is_roll(), differs, "{}", placement.deployment);
            prop_assert_eq!(placement.old_class != placement.new_class, differs, "{}", placement.deployment);
            prop_assert!(!differs || !placement.causes.is_empty(), "nobody knows why {} rolls", placement.deployment);
        }
    }
}

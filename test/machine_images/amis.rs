//! AMIs and lookups for tests.

use gardener_extension_worker::images::catalogue::Catalogue;
use gardener_extension_worker::images::lock::Lock;
use gardener_extension_worker::images::lookup::Lookup;
use gardener_extension_worker::images::resolution::{Policy, Resolved, resolve};
use gardener_extension_worker::images::sources::read;
use jiff::Timestamp;
use serde_json::{Value, json};

pub(crate) const OURS: &str = "111111111111";

pub(crate) fn at(day: &str) -> Timestamp {
    format!("{day}T00:00:00Z").parse().unwrap()
}

/// An AMI as `aws ec2 describe-images` prints it.
pub(crate) fn ami(id: &str, name: &str, day: &str) -> Value {
    json!({"ImageId": format!("ami-{id:0>8}"), "Name": name, "OwnerId": OURS, "State": "available", "Architecture": "x86_64",
        "CreationDate": format!("{day}T09:00:00.000Z")})
}

/// The same AMI with other members.
pub(crate) fn with(mut ami: Value, members: Value) -> Value {
    for (name, value) in members.as_object().unwrap() {
        ami[name] = value.clone();
    }
    ami
}

pub(crate) fn catalogue(amis: &[Value]) -> Catalogue {
    Catalogue::new(vec![read(&json!({"Images": amis}), Some("eu-central-1")).unwrap()]).unwrap()
}

/// A lookup for names in the format of image-builder, with other members.
pub(crate) fn lookup(members: Value) -> Lookup {
    let spec = json!({"provider": "aws", "imagePrefix": "capa-ami", "lookupFormat": "-{{.OS}}-?{{.K8sVersion}}-*",
        "os": ["ubuntu-24.04"], "arch": ["amd64"], "versions": ">=1.33, <1.36", "owners": [OURS]});
    Lookup::read(&json!({"kind": "ImageLookup", "metadata": {"name": "l"}, "spec": with(spec, members)})).unwrap()
}

pub(crate) fn policy() -> Policy {
    Policy { now: at("2026-11-22"), owners: Vec::new(), filters: Vec::new() }
}

pub(crate) fn resolved<'a>(catalogue: &'a Catalogue, lookup: &Lookup) -> Vec<Resolved<'a>> {
    resolve(catalogue, std::slice::from_ref(lookup), &policy())
}

/// Each flavor with its image and the verdicts on the other ones: `ubuntu-24.04 1.34.2 (amd64): ami-…; ami-… older`.
pub(crate) fn explained(amis: &[Value], members: Value) -> Vec<String> {
    let catalogue = catalogue(amis);
    let of_flavor = |resolved: Resolved<'_>| {
        let key = &resolved.key;
        let candidates = resolved.candidates.iter().map(|candidate| {
            format!(
                "{} {}",
                candidate.image.reference.value.trim_start_matches("ami-").trim_start_matches('0'),
                candidate.verdict
            )
        });
        format!("{} {} ({}): {}", key.image, key.version, key.flavor_text(), candidates.collect::<Vec<_>>().join("; "))
    };
    resolved(&catalogue, &lookup(members)).into_iter().map(of_flavor).collect()
}

/// The lock after a resolution of these images.
pub(crate) fn locked(amis: &[Value]) -> Lock {
    let mut lock = Lock::default();
    lock.add(&resolved(&catalogue(amis), &lookup(json!({}))), at("2026-11-01"));
    lock
}

/// Versions with their locked ids.
pub(crate) fn ids(lock: &Lock) -> Vec<String> {
    let id = |id: &str| id.trim_start_matches("ami-").trim_start_matches('0').to_owned();
    lock.images.iter().map(|(key, image)| format!("{} {}", key.version, id(&image.reference.value))).collect()
}

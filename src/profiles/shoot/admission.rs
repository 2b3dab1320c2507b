//! Fields that Gardener's admission plugins set when a Shoot is written: versions, architectures, images, node-local
//! DNS, and kubelet reservations.

use serde_json::{Value, json};

use super::members::{name, object, pools, pools_mut, text};
use super::{Garden, ShootError, kube_reserved};
use crate::versions::shoot_defaults::{
    NoDefault, PoolWithoutImage, default_architecture, default_image, default_kubernetes_version,
};
use wire::api::gardener::{MachineImage, OrderedShoot, ProfileSpec};
use wire::api::gotext::json::{decode_lenient, to_go_json};
use wire::api::gotext::version::Version;

/// Sets missing fields. `before` is the stored Shoot that this one replaces; its pools keep their images.
pub(super) fn admit(
    shoot: &mut Value,
    before: Option<&Value>,
    profile: &ProfileSpec,
    garden: &Garden,
) -> Result<(), ShootError> {
    // Rejects fields of the wrong type, which would be treated as missing below.
    decode_lenient::<OrderedShoot>(&to_go_json(shoot)).map_err(ShootError::Malformed)?;
    if pools(shoot).is_empty() {
        return Ok(());
    }
    set_marks(shoot, before)?;
    if before.is_none() && garden.node_local_dns {
        let components = object(shoot, &["spec", "systemComponents"])?;
        components.entry("nodeLocalDNS").or_insert_with(|| json!({"enabled": true}));
    }
    set_version(&mut shoot["spec"]["kubernetes"], "spec.kubernetes.version", profile, garden)?;
    for pool in pools_mut(shoot) {
        let path = format!("spec.provider.workers[{}]", name(pool));
        if pool.pointer("/kubernetes/version").is_some() {
            set_version(&mut pool["kubernetes"], &format!("{path}.kubernetes.version"), profile, garden)?;
        }
        let old = before.map(pools).unwrap_or_default().iter().find(|old| name(old) == name(pool));
        set_machine(pool, old, profile, garden)
            .map_err(|source| ShootError::NoDefault { path: format!("{path}.machine.image"), source })?;
    }
    kube_reserved::set(shoot, profile, garden.reservation)
}

/// Sets fields that don't reach the Worker but would look like changes: the generation, the label of self-hosted
/// shoots, and the older name of the CloudProfile, which is removed from Kubernetes 1.33 on.
fn set_marks(shoot: &mut Value, before: Option<&Value>) -> Result<(), ShootError> {
    if let Some(generation) = before.and_then(|before| before.pointer("/metadata/generation")) {
        object(shoot, &["metadata"])?.insert("generation".to_owned(), generation.clone());
    }
    if pools(shoot).iter().any(|pool| pool.get("controlPlane").is_some()) {
        let labels = object(shoot, &["metadata", "labels"])?;
        labels.insert("shoot.gardener.cloud/self-hosted".to_owned(), "true".into());
    }
    let version = Version::parse(text(&shoot["spec"]["kubernetes"]["version"]));
    if version.is_ok_and(|version| version.at_least_including_prereleases(1, 33)) {
        object(shoot, &["spec"])?.remove("cloudProfileName");
    }
    Ok(())
}

fn set_version(kubernetes: &mut Value, path: &str, profile: &ProfileSpec, garden: &Garden) -> Result<(), ShootError> {
    let requested = text(&kubernetes["version"]);
    let found = default_kubernetes_version(&profile.kubernetes.versions, requested, garden.now);
    let found = found.map_err(|source| ShootError::NoDefault { path: path.to_owned(), source })?;
    if let Some(version) = found {
        kubernetes["version"] = version.into();
    }
    Ok(())
}

/// Sets the architecture and image of a pool.
fn set_machine(pool: &mut Value, old: Option<&Value>, profile: &ProfileSpec, garden: &Garden) -> Result<(), NoDefault> {
    let in_place = ["AutoInPlaceUpdate", "ManualInPlaceUpdate"].contains(&text(&pool["updateStrategy"]));
    let machine = &mut pool["machine"];
    let machine_type = profile.machine_types.iter().find(|known| known.name == text(&machine["type"]));
    let definitions = &profile.machine_capabilities;
    let architecture = default_architecture(machine["architecture"].as_str(), machine_type, definitions).to_owned();
    machine["architecture"] = architecture.as_str().into();
    let requested = machine.get("image").map(image);
    let stays = old.and_then(|old| old.pointer("/machine/image")).filter(|old| {
        let is_same = |requested: &MachineImage| {
            requested.name == text(&old["name"])
                && (requested.version.is_empty() || requested.version == text(&old["version"]))
        };
        requested.as_ref().is_none_or(is_same)
    });
    if let Some(old) = stays {
        let mut kept = old.clone();
        if let (Some(written), Some(kept)) = (machine.get("image"), kept.as_object_mut()) {
            kept.remove("providerConfig");
            kept.extend(written.get("providerConfig").map(|config| ("providerConfig".to_owned(), config.clone())));
        }
        machine["image"] = kept;
        return Ok(());
    }
    let pool = PoolWithoutImage { requested: requested.as_ref(), architecture: &architecture, machine_type, in_place };
    let chosen = default_image(&profile.machine_images, definitions, pool, garden.now)?;
    let location = &mut machine["image"];
    if !location.is_object() {
        *location = json!({});
    }
    location["name"] = chosen.name.into();
    location["version"] = chosen.version.into();
    Ok(())
}

fn image(image: &Value) -> MachineImage {
    MachineImage { name: text(&image["name"]).to_owned(), version: text(&image["version"]).to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shoot::Reservation;

    /// The image version of a pool that requests `wanted`, with the image version of the stored pool if there is one.
    fn version(requested: Value, before: Option<&str>) -> Result<String, String> {
        let versions =
            ["1443.7.0", "1592.4.0", "1592.9.0"].map(|version| json!({"version": version, "architectures": ["amd64"]}));
        let profile = json!({"type": "gcp", "machineTypes": [{"name": "t"}],
            "machineImages": [{"name": "linux", "versions": versions}]});
        let profile: ProfileSpec = serde_json::from_str(&profile.to_string()).unwrap();
        let garden =
            Garden { reservation: Reservation::Static, node_local_dns: false, now: jiff::Timestamp::UNIX_EPOCH };
        let pool = |image: Value| json!({"name": "a", "machine": {"type": "t", "image": image}});
        let stored = before.map(|version| pool(json!({"name": "linux", "version": version, "providerConfig": 1})));
        let mut written = pool(requested);
        set_machine(&mut written, stored.as_ref(), &profile, &garden).map_err(|error| error.to_string())?;
        assert_eq!(written["machine"]["architecture"], "amd64");
        assert!(written["machine"]["image"].get("providerConfig").is_none());
        Ok(text(&written["machine"]["image"]["version"]).to_owned())
    }

    #[test]
    fn keeps_stored_image_version() {
        for stored in ["1592.1.0-rc.1", "1592.1", "1592.1.0", "1.2.3.4", "1592.4.0"] {
            for requested in [json!({"name": "linux", "version": stored}), json!({"name": "linux"})] {
                assert_eq!(version(requested, Some(stored)).as_deref(), Ok(stored));
            }
        }
        let other = json!({"name": "linux", "version": "1443"});
        assert_eq!(version(other, Some("1592.4.0")).as_deref(), Ok("1443.7.0"));
    }

    #[test]
    fn resolves_version_prefix() {
        let chosen = |requested: &str| version(json!({"name": "linux", "version": requested}), None);
        for (requested, found) in [
            ("1443.1.0-rc.1", "1443.7.0"),
            ("1443.1.0", "1443.1.0"),
            ("1592.4", "1592.4.0"),
            ("v1592", "1592.9.0"),
            ("1443.x.1.2", "1443.7.0"),
        ] {
            assert_eq!(chosen(requested).as_deref(), Ok(found), "{requested}");
        }
        assert!(chosen("x.1.2.3").unwrap_err().contains("must be a semantic version"));
    }
}

//! Both halves of a CloudProfile: admission accepts what it writes into core's half, and damaged profiles produce
//! errors, never a panic.

use gardener_extension_worker::api::gardener::{NamespacedProfileSpec, ProfileSpec};
use gardener_extension_worker::api::gotext::json::decode_lenient;
use gardener_extension_worker::cloud_profile::architecture_fields::{apply_defaults, sync_architectures};
use gardener_extension_worker::cloud_profile::namespaced::merge;
use gardener_extension_worker::cloud_profile::validation::{FeatureGates, validate_profile};
use gardener_extension_worker::provider::Providers;
use gardener_extension_worker::provider::profile::ProfileConfig;
use k8s_openapi::jiff::Timestamp;
use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};
use serde_json::{Value, json};

const ARCHITECTURES: [&str; 2] = ["amd64", "arm64"];

/// A flavor with one architecture and some values of the other capabilities.
fn any_flavor() -> impl Strategy<Value = Value> {
    let values = |values: &[&'static str]| proptest::option::of(subsequence(values.to_vec(), 1..=2));
    (select(&ARCHITECTURES), values(&["gen2", "gen1"]), values(&["accelerated", "basic"])).prop_map(
        |(architecture, hypervisor, networking)| {
            let mut flavor = json!({"architecture": [architecture]});
            for (name, values) in [("hypervisorType", hypervisor), ("azure-networking", networking)] {
                if let Some(values) = values {
                    flavor[name] = values.into();
                }
            }
            flavor
        },
    )
}

/// An entry of Azure's half: flavors, or an image in the old format.
fn any_entry() -> impl Strategy<Value = Value> {
    let version = select(&["1.0.0", "1.1.0", "2.0.0"]);
    let flavors = proptest::collection::vec(any_flavor(), 1..4).prop_map(|flavors| {
        let with_image = flavors.into_iter().map(|flavor| json!({"capabilities": flavor, "urn": "a:b:c:d"}));
        json!({"capabilityFlavors": with_image.collect::<Vec<_>>()})
    });
    let old_format = (select(&ARCHITECTURES), any::<bool>()).prop_map(|(architecture, accelerated)| {
        json!({"architecture": architecture, "acceleratedNetworking": accelerated, "urn": "a:b:c:d"})
    });
    (version, prop_oneof![flavors, old_format]).prop_map(|(version, mut entry)| {
        entry["version"] = version.into();
        entry
    })
}

/// A profile whose core half lists every version of the provider's half, with flavors that are not validated.
fn any_profile() -> impl Strategy<Value = Value> {
    let entries = proptest::collection::vec(any_entry(), 1..6);
    (entries, proptest::collection::vec(any_flavor(), 1..3)).prop_map(|(entries, flavors)| {
        let mut versions: Vec<&Value> = entries.iter().map(|entry| &entry["version"]).collect();
        versions.sort_by_key(|version| version.to_string());
        versions.dedup();
        let core = versions.into_iter().map(|version| {
            json!({"version": version, "cri": [{"name": "containerd"}], "capabilityFlavors": flavors})
        });
        json!({
            "type": "azure", "regions": [{"name": "r"}], "kubernetes": {"versions": [{"version": "1.33.0"}]},
            "machineCapabilities": [{"name": "architecture", "values": ["amd64", "arm64"]},
                {"name": "hypervisorType", "values": ["gen2", "gen1"]}, {"name": "azure-networking", "values": ["accelerated", "basic"]}],
            "machineTypes": [{"name": "t", "capabilities": {"architecture": ["amd64"]}}],
            "machineImages": [{"name": "os", "updateStrategy": "major", "versions": core.collect::<Vec<_>>()}],
            "providerConfig": {
                "apiVersion": "azure.provider.extensions.gardener.cloud/v1alpha1", "kind": "CloudProfileConfig",
                "countFaultDomains": [{"region": "r", "count": 1}], "countUpdateDomains": [{"region": "r", "count": 1}],
                "machineImages": [{"name": "os", "versions": entries}],
            },
        })
    })
}

fn read(document: &Value) -> Option<(ProfileSpec, Box<dyn ProfileConfig>)> {
    let spec: ProfileSpec = decode_lenient(&document.to_string()).ok()?;
    let format = Providers::SHIPPED.profile_format(&spec.provider_type)?;
    let config = format.open(spec.provider_config.as_deref()).ok()?;
    Some((spec, config))
}

fn with_flavors(spec: &mut ProfileSpec, config: &dyn ProfileConfig) {
    for listed in config.core_flavors(&spec.machine_images) {
        spec.machine_images[listed.image].versions[listed.version].capability_flavors =
            listed.flavors.into_iter().map(std::borrow::Cow::into_owned).collect();
    }
}

/// Replaces the value at one location of a document.
fn damage(document: &mut Value, location: &Index, with: &Value) {
    fn locations(value: &Value, path: &mut Vec<String>, found: &mut Vec<String>) {
        found.push(path.iter().map(|step| format!("/{step}")).collect());
        let children: Vec<(String, &Value)> = match value {
            Value::Object(members) => members.iter().map(|(name, member)| (name.clone(), member)).collect(),
            Value::Array(items) => items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect(),
            _ => Vec::new(),
        };
        for (step, child) in children {
            path.push(step);
            locations(child, path, found);
            path.pop();
        }
    }
    let mut found = Vec::new();
    locations(document, &mut Vec::new(), &mut found);
    let location = &found[location.index(found.len())];
    if let Some(target) = document.pointer_mut(location) {
        *target = with.clone();
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!([])),
        Just(json!({})),
        Just(json!([null])),
        Just(json!(-1)),
        Just(json!("")),
        Just(json!("ppc")),
        Just(json!([""])),
        Just(json!({"architecture": []})),
        Just(json!([{"architecture": ["amd64", "arm64"]}])),
        Just(json!("\u{0}∩/:::")),
    ]
}

proptest! {
    #[test]
    fn what_is_written_into_core_is_accepted_there_and_written_once(document in any_profile()) {
        let (mut spec, config) = read(&document).unwrap();
        with_flavors(&mut spec, &*config);
        let once = spec.machine_images.clone();
        with_flavors(&mut spec, &*config);
        prop_assert_eq!(&once, &spec.machine_images, "the second time changes something");
        let errors = config.validate(&spec);
        prop_assert!(errors.is_empty(), "{:?}", errors);
        let errors = validate_profile(&spec, FeatureGates::default(), Timestamp::UNIX_EPOCH);
        prop_assert!(errors.is_empty(), "{:?}", errors);
    }

    #[test]
    fn the_order_of_old_entries_does_not_matter(document in any_profile(), seed in any::<Index>()) {
        let (spec, config) = read(&document).unwrap();
        let mut shuffled = document.clone();
        let entries = shuffled["providerConfig"]["machineImages"][0]["versions"].as_array_mut().unwrap();
        if entries.iter().any(|entry| entry.get("capabilityFlavors").is_some()) {
            return Ok(());
        }
        let by = seed.index(entries.len());
        entries.rotate_left(by);
        let (_, other) = read(&shuffled).unwrap();
        prop_assert_eq!(config.core_flavors(&spec.machine_images), other.core_flavors(&spec.machine_images));
    }

    #[test]
    fn damaged_profiles_give_errors_and_never_a_panic(
        mut document in any_profile(), parent in any_profile(),
        damages in proptest::collection::vec((any::<Index>(), any_value()), 1..4),
    ) {
        for (location, with) in &damages {
            damage(&mut document, location, with);
        }
        let Some((spec, config)) = read(&document) else { return Ok(()) };
        let _ = config.validate(&spec);
        let _ = config.repeated_flavors(&spec.machine_capabilities);
        let _ = config.core_flavors(&spec.machine_images);
        let _ = validate_profile(&spec, FeatureGates { capabilities: true, lifecycle: true }, Timestamp::UNIX_EPOCH);
        let (parent, parent_config) = read(&parent).unwrap();
        let namespaced: NamespacedProfileSpec = decode_lenient(&document.to_string()).unwrap();
        let _ = config.validate_namespaced(&namespaced, &parent);
        let _ = parent_config.validate_namespaced(&namespaced, &spec);
        let mut merged = merge(parent, namespaced);
        apply_defaults(&mut merged);
        sync_architectures(&mut merged, false);
    }
}

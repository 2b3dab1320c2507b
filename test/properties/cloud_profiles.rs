//! Profiles that are converted, converted back and shortened: the machines of every pool stay the same.
//!
//! The check does not use the comparison that the commands print. It uses the controller's own path from a Worker to
//! machine classes: one pool for every machine type and image version, before and after.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

use gardener_extension_worker::api::gotext::yaml;
use gardener_extension_worker::cli::input::workers_of_documents;
use gardener_extension_worker::cli::render::render;
use gardener_extension_worker::provider::Providers;
use gardener_extension_worker::resolved_profile::convert::{ConvertError, Format, Knowledge, convert};
use gardener_extension_worker::resolved_profile::minimize::minimize;
use proptest::prelude::*;
use serde_json::{Value, json};

static AZURE: LazyLock<Vec<Value>> = LazyLock::new(|| documents(include_str!("../../example/azure.yaml")));
static AWS: LazyLock<Vec<Value>> = LazyLock::new(|| documents(include_str!("../../example/aws.yaml")));

const VERSIONS: [&str; 6] = ["1.0.0", "1.0.0-gen2", "1.1.0", "1.1.0-arm64", "2.0.0-gen2", "2.0.0-fips"];
const ARCHITECTURES: [&str; 2] = ["amd64", "arm64"];

fn documents(text: &str) -> Vec<Value> {
    yaml::documents(text).unwrap()
}

/// The machine class of a pool for every machine type and version, or `None`.
fn machines(profile: &Value, surroundings: &[Value]) -> BTreeMap<(String, String), Option<Value>> {
    let spec = &profile["spec"];
    let types: Vec<(&str, &str)> = items(&spec["machineTypes"])
        .map(|machine_type| (machine_type["name"].as_str().unwrap(), architecture(machine_type, spec)))
        .collect();
    let versions: Vec<&str> =
        items(&spec["machineImages"][0]["versions"]).map(|version| version["version"].as_str().unwrap()).collect();
    let mut requested = BTreeMap::new();
    let mut documents = surroundings.to_vec();
    for document in &mut documents {
        match document["kind"].as_str() {
            Some("Cluster") => document["spec"]["cloudProfile"] = profile.clone(),
            Some("Worker") => {
                document.as_object_mut().unwrap().remove("status");
                let mut template = document["spec"]["pools"][0].take();
                template.as_object_mut().unwrap().remove("providerConfig");
                let zone = template["zones"][0].take();
                template["zones"] = json!([zone]);
                let mut pools = Vec::new();
                for (number, (machine_type, architecture)) in types.iter().enumerate() {
                    for (position, version) in versions.iter().enumerate() {
                        let name = format!("p{number}-{position}");
                        let mut pool = template.clone();
                        pool["name"] = json!(name);
                        pool["machineType"] = json!(machine_type);
                        pool["architecture"] = json!(architecture);
                        pool["machineImage"] = json!({"name": "linux", "version": version});
                        pools.push(pool);
                        requested.insert(name, ((*machine_type).to_owned(), (*version).to_owned()));
                    }
                }
                document["spec"]["pools"] = pools.into();
            }
            _ => {}
        }
    }
    let mut workers = workers_of_documents(Path::new("input"), documents).unwrap();
    let rendered = render(workers.remove(0), Providers::SHIPPED);
    assert!(rendered.errors.iter().all(|error| error.pool.is_some()), "{:?}", rendered.errors);
    let class_of = |pool: &str| {
        let expected = rendered.machine_deployments.iter().find(|expected| expected.pool_name == pool)?;
        rendered.machine_classes.iter().find(|class| class["metadata"]["name"] == *expected.class_name.0).cloned()
    };
    requested
        .into_iter()
        .map(|(pool, title)| (title, class_of(&pool)))
        .map(|(title, class)| (title, class.map(machine)))
        .collect()
}

/// The parts of a class that determine a machine, without the name of the pool.
fn machine(class: Value) -> Value {
    json!([
        class["providerSpec"]["properties"]["storageProfile"]["imageReference"],
        class["providerSpec"]["properties"]["networkProfile"]["acceleratedNetworking"],
        class["providerSpec"]["ami"],
        class["nodeTemplate"]["architecture"]
    ])
}

/// Keeps only the images of machines.
fn images(machines: &BTreeMap<(String, String), Option<Value>>) -> BTreeMap<(String, String), Option<Value>> {
    let image = |machine: &Value| json!([machine[0], machine[2], machine[3]]);
    machines.iter().map(|(title, machine)| (title.clone(), machine.as_ref().map(image))).collect()
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// The architecture that Gardener fills in for a pool.
fn architecture<'a>(machine_type: &'a Value, spec: &'a Value) -> &'a str {
    let capability = &machine_type["capabilities"]["architecture"][0];
    let only = &spec["machineCapabilities"][0]["values"];
    let field = machine_type["architecture"].as_str();
    capability.as_str().or(if only[1].is_null() { only[0].as_str() } else { None }).or(field).unwrap_or("amd64")
}

/// Every pool that had a machine has the same one. A pool without a machine may have gained one.
fn assert_kept(
    before: &BTreeMap<(String, String), Option<Value>>,
    after: &BTreeMap<(String, String), Option<Value>>,
) -> Result<(), TestCaseError> {
    for (title, machine) in before.iter().filter(|(_, machine)| machine.is_some()) {
        prop_assert_eq!(Some(machine), after.get(title), "{:?}", title);
    }
    Ok(())
}

/// Every image that a machine type had with some version is still available to it.
fn assert_reachable(
    before: &BTreeMap<(String, String), Option<Value>>,
    after: &BTreeMap<(String, String), Option<Value>>,
) -> Result<(), TestCaseError> {
    let has = |machine_type: &str, machine: &Value| {
        after.iter().any(|((known, _), got)| known == machine_type && got.as_ref() == Some(machine))
    };
    for ((machine_type, version), machine) in before {
        if let Some(machine) = machine {
            prop_assert!(has(machine_type, machine), "{machine_type} can't have {machine} of {version} any more");
        }
    }
    Ok(())
}

fn profile(provider: &str, types: Vec<Value>, core: Vec<Value>, config: Value, definitions: Value) -> Value {
    let regions = if provider == "aws" { ["eu-west-1", "eu-central-1"] } else { ["northeurope", "westeurope"] };
    let mut profile = json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "CloudProfile", "metadata": {"name": "generated"},
        "spec": {
            "type": provider,
            "regions": regions.map(|region| json!({"name": region})),
            "machineTypes": types,
            "machineImages": [{"name": "linux", "versions": core}],
            "providerConfig": config,
        },
    });
    if !definitions.is_null() {
        profile["spec"]["machineCapabilities"] = definitions;
    }
    profile
}

/// A profile for Azure in the old format. Every image has its own reference.
fn old_azure() -> impl Strategy<Value = Value> {
    let version = (any::<bool>(), any::<bool>(), any::<(bool, bool)>(), any::<bool>());
    let versions = prop::collection::btree_map(prop::sample::select(&VERSIONS[..]), version, 1..6);
    let types = prop::collection::vec((any::<bool>(), any::<bool>()), 1..4);
    (versions, types).prop_map(|(versions, types)| {
        let (mut core, mut listed) = (Vec::new(), Vec::new());
        for (version, (amd64, arm64, accelerated, skip)) in versions {
            let mut architectures = Vec::new();
            for (architecture, is_there, accelerated) in
                [("amd64", amd64 || !arm64, accelerated.0), ("arm64", arm64, accelerated.1)]
            {
                if !is_there {
                    continue;
                }
                architectures.push(architecture);
                let mut entry = json!({"version": version, "architecture": architecture,
                                       "urn": format!("a:b:{architecture}:{version}")});
                if accelerated {
                    entry["acceleratedNetworking"] = json!(true);
                }
                if skip {
                    entry["skipMarketplaceAgreement"] = json!(true);
                }
                listed.push(entry);
            }
            core.push(json!({"version": version, "architectures": architectures}));
        }
        let names = types.iter().enumerate();
        let flags = names.clone().filter(|(_, (_, accelerated))| *accelerated);
        let flags: Vec<Value> =
            flags.map(|(number, _)| json!({"name": format!("t{number}"), "acceleratedNetworking": true})).collect();
        let types = names.map(|(number, (arm64, _))| {
            json!({"name": format!("t{number}"), "architecture": ARCHITECTURES[usize::from(*arm64)]})
        });
        let config = json!({
            "apiVersion": "azure.provider.extensions.gardener.cloud/v1alpha1", "kind": "CloudProfileConfig",
            "machineTypes": flags, "machineImages": [{"name": "linux", "versions": listed}],
        });
        profile("azure", types.collect(), core, config, Value::Null)
    })
}

/// A profile for AWS in the old format: images for some regions.
fn old_aws() -> impl Strategy<Value = Value> {
    let mapping = (prop::sample::select(&["eu-west-1", "eu-central-1", "us-east-1"][..]), any::<bool>());
    let versions =
        prop::collection::btree_map(prop::sample::select(&VERSIONS[..]), prop::collection::vec(mapping, 1..5), 1..5);
    let types = prop::collection::vec(any::<bool>(), 1..4);
    (versions, types).prop_map(|(versions, types)| {
        let (mut core, mut listed) = (Vec::new(), Vec::new());
        for (version, mappings) in versions {
            let mappings = mappings.into_iter().enumerate().map(|(number, (region, arm64))| {
                json!({"name": region, "ami": format!("ami-{version}-{number}"),
                       "architecture": ARCHITECTURES[usize::from(arm64)]})
            });
            let mappings: Vec<Value> = mappings.collect();
            let architectures: std::collections::BTreeSet<&str> =
                mappings.iter().filter_map(|mapping| mapping["architecture"].as_str()).collect();
            core.push(json!({"version": version, "architectures": architectures}));
            listed.push(json!({"version": version, "regions": mappings}));
        }
        let types = types.iter().enumerate().map(
            |(number, arm64)| json!({"name": format!("t{number}"), "architecture": ARCHITECTURES[usize::from(*arm64)]}),
        );
        let config = json!({
            "apiVersion": "aws.provider.extensions.gardener.cloud/v1alpha1", "kind": "CloudProfileConfig",
            "machineImages": [{"name": "linux", "versions": listed}],
        });
        profile("aws", types.collect(), core, config, Value::Null)
    })
}

/// Values of capabilities besides the architecture. An absent capability means all values.
fn values() -> impl Strategy<Value = Value> {
    let subset = |values: [&'static str; 2]| prop::option::of(prop::sample::subsequence(values.to_vec(), 1..=2));
    (subset(["gen2", "gen1"]), subset(["accelerated", "basic"])).prop_map(|(hypervisor, networking)| {
        let mut capabilities = json!({});
        if let Some(values) = hypervisor {
            capabilities["hypervisorType"] = json!(values);
        }
        if let Some(values) = networking {
            capabilities["azure-networking"] = json!(values);
        }
        capabilities
    })
}

/// A profile with capabilities. Some flavors tie, some are never selected, and some share an image.
fn new_azure() -> impl Strategy<Value = Value> {
    let flavor = (any::<bool>(), values(), 0..3_u8);
    let versions =
        prop::collection::btree_map(prop::sample::select(&VERSIONS[..3]), prop::collection::vec(flavor, 1..5), 1..4);
    let types = prop::collection::vec((any::<bool>(), values()), 1..4);
    (versions, types).prop_map(|(versions, types)| {
        let with_architecture = |arm64: bool, mut capabilities: Value| {
            capabilities["architecture"] = json!([ARCHITECTURES[usize::from(arm64)]]);
            capabilities
        };
        let (mut core, mut listed) = (Vec::new(), Vec::new());
        for (version, flavors) in versions {
            let flavors: Vec<Value> = flavors
                .into_iter()
                .map(|(arm64, values, image)| {
                    json!({"capabilities": with_architecture(arm64, values), "urn": format!("a:b:{image}:{version}")})
                })
                .collect();
            let capabilities: Vec<&Value> = flavors.iter().map(|flavor| &flavor["capabilities"]).collect();
            core.push(json!({"version": version, "capabilityFlavors": capabilities, "cri": [{"name": "containerd"}]}));
            listed.push(json!({"version": version, "capabilityFlavors": flavors}));
        }
        let types = types.into_iter().enumerate().map(|(number, (arm64, values))| {
            json!({"name": format!("t{number}"), "usable": true, "capabilities": with_architecture(arm64, values)})
        });
        let config = json!({
            "apiVersion": "azure.provider.extensions.gardener.cloud/v1alpha1", "kind": "CloudProfileConfig",
            "machineImages": [{"name": "linux", "versions": listed}],
        });
        let definitions = json!([
            {"name": "architecture", "values": ["amd64", "arm64"]},
            {"name": "hypervisorType", "values": ["gen2", "gen1"]},
            {"name": "azure-networking", "values": ["accelerated", "basic"]},
        ]);
        profile("azure", types.collect(), core, config, definitions)
    })
}

/// A profile for AWS with capabilities: flavors have images in some regions, and may share them.
fn new_aws() -> impl Strategy<Value = Value> {
    let boot = prop::option::of(prop::sample::subsequence(vec!["uefi", "legacy-bios"], 1..=2));
    let regions = prop::sample::subsequence(vec!["eu-west-1", "eu-central-1"], 0..=2);
    let flavor = (any::<bool>(), boot.clone(), regions, 0..3_u8);
    let versions =
        prop::collection::btree_map(prop::sample::select(&VERSIONS[..3]), prop::collection::vec(flavor, 1..5), 1..4);
    let types = prop::collection::vec((any::<bool>(), boot), 1..4);
    (versions, types).prop_map(|(versions, types)| {
        let capabilities = |arm64: bool, boot: Option<Vec<&str>>| {
            let mut capabilities = json!({"architecture": [ARCHITECTURES[usize::from(arm64)]]});
            if let Some(boot) = boot {
                capabilities["bootMode"] = json!(boot);
            }
            capabilities
        };
        let (mut core, mut listed) = (Vec::new(), Vec::new());
        for (version, flavors) in versions {
            let flavors: Vec<Value> = flavors
                .into_iter()
                .map(|(arm64, boot, regions, image)| {
                    let regions = regions
                        .iter()
                        .map(|region| json!({"name": region, "ami": format!("ami-{region}-{version}-{image}")}));
                    json!({"capabilities": capabilities(arm64, boot), "regions": regions.collect::<Vec<_>>()})
                })
                .collect();
            let capabilities: Vec<&Value> = flavors.iter().map(|flavor| &flavor["capabilities"]).collect();
            core.push(json!({"version": version, "capabilityFlavors": capabilities}));
            listed.push(json!({"version": version, "capabilityFlavors": flavors}));
        }
        let types = types.into_iter().enumerate().map(
            |(number, (arm64, boot))| json!({"name": format!("t{number}"), "capabilities": capabilities(arm64, boot)}),
        );
        let config = json!({
            "apiVersion": "aws.provider.extensions.gardener.cloud/v1alpha1", "kind": "CloudProfileConfig",
            "machineImages": [{"name": "linux", "versions": listed}],
        });
        let definitions = json!([
            {"name": "architecture", "values": ["amd64", "arm64"]},
            {"name": "bootMode", "values": ["uefi", "legacy-bios"]},
        ]);
        profile("aws", types.collect(), core, config, definitions)
    })
}

/// Profiles whose core half may omit versions.
fn with_unlisted(profiles: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    (profiles, prop::collection::vec(prop::bool::weighted(0.2), 6)).prop_map(|(mut profile, is_unlisted)| {
        let versions = profile["spec"]["machineImages"][0]["versions"].as_array_mut().unwrap();
        let mut listed =
            is_unlisted.into_iter().enumerate().map(|(position, is_unlisted)| position == 0 || !is_unlisted);
        versions.retain(|_| listed.next().unwrap());
        profile
    })
}

/// The versions that have an image in the provider's half.
fn with_images(profile: &Value) -> BTreeSet<&str> {
    let versions = items(&profile["spec"]["providerConfig"]["machineImages"][0]["versions"]);
    let has_image = |members: &Value| items(&members["regions"]).next().is_some() || members["urn"].is_string();
    let with_images =
        versions.filter(|version| has_image(version) || items(&version["capabilityFlavors"]).any(has_image));
    with_images.map(|version| version["version"].as_str().unwrap()).collect()
}

fn to_capabilities(profile: &Value, knowledge: &Knowledge) -> Result<Value, TestCaseError> {
    let converted = convert(profile, Format::Capabilities, knowledge, Providers::SHIPPED);
    converted.map(|new| new.profile).map_err(|error| TestCaseError::fail(format!("{error}: {error:?}")))
}

/// A converted profile does not change when it is converted again.
fn check_again(new: &Value) -> Result<(), TestCaseError> {
    prop_assert_eq!(&to_capabilities(new, &Knowledge::default())?, new, "nothing is left to do");
    Ok(())
}

/// Settings that decide a conversion also work for the converted profile.
fn check_decided_later(old: &Value, new: &Value) -> Result<(), TestCaseError> {
    let decided = Knowledge { machine_types: vec!["*=hypervisorType:gen2".parse().unwrap()], ..Knowledge::default() };
    if to_capabilities(old, &decided).is_ok() {
        to_capabilities(new, &decided)?;
    }
    Ok(())
}

/// Shortens the profile and converts it to the old format: the machines stay the same.
fn check_new(profile: &Value, surroundings: &[Value]) -> Result<(), TestCaseError> {
    let before = machines(profile, surroundings);
    let shorter = minimize(profile, Providers::SHIPPED).unwrap();
    prop_assert_eq!(&machines(&shorter.profile, surroundings), &before);
    prop_assert!(shorter.bytes.after <= shorter.bytes.before && shorter.proof.is_equal() && shorter.every_machine);
    let again = minimize(&shorter.profile, Providers::SHIPPED).unwrap();
    prop_assert_eq!(&again.profile, &shorter.profile, "nothing is left to do");
    if let Ok(new) = convert(profile, Format::Capabilities, &Knowledge::default(), Providers::SHIPPED) {
        check_again(&new.profile)?;
    }
    match convert(profile, Format::Old, &Knowledge::default(), Providers::SHIPPED) {
        Ok(old) => {
            prop_assert!(with_images(profile).is_subset(&with_images(&old.profile)), "{}", old.profile);
            let after = machines(&old.profile, surroundings);
            assert_reachable(&images(&before), &images(&after))?;
            // The same image may support more or less than before if the conversion reports it.
            let is_reported = |machine_type: &String, version: &String| {
                let mut differences = old.intended.iter();
                differences
                    .any(|reported| reported.version == *version && reported.machine_types.contains(machine_type))
            };
            let untold = before.into_iter().filter(|((machine_type, version), _)| !is_reported(machine_type, version));
            assert_reachable(&untold.collect(), &after)?;
        }
        Err(ConvertError::NotEquivalent(proof)) => prop_assert!(!proof.lost.is_empty()),
        Err(error) => return Err(TestCaseError::fail(error.to_string())),
    }
    Ok(())
}

/// Converts to capabilities, back, and shortens. The machines stay the same each time.
fn check_old(old: &Value, surroundings: &[Value]) -> Result<(), TestCaseError> {
    let knowledge = Knowledge::default();
    let before = machines(old, surroundings);
    let new = convert(old, Format::Capabilities, &knowledge, Providers::SHIPPED)
        .map_err(|error| TestCaseError::fail(format!("{error}: {error:?}")))?;
    prop_assert!(new.given_up.is_empty());
    let converted = machines(&new.profile, surroundings);
    assert_kept(&before, &converted)?;
    check_again(&new.profile)?;
    check_decided_later(old, &new.profile)?;
    let back = convert(&new.profile, Format::Old, &knowledge, Providers::SHIPPED)
        .map_err(|error| TestCaseError::fail(format!("{error}: {error:?}")))?;
    assert_reachable(&converted, &machines(&back.profile, surroundings))?;
    prop_assert!(with_images(old).is_subset(&with_images(&new.profile)), "{}", new.profile);
    prop_assert!(with_images(old).is_subset(&with_images(&back.profile)), "{}", back.profile);
    for profile in [old, &new.profile] {
        let shorter = minimize(profile, Providers::SHIPPED).unwrap();
        prop_assert!(shorter.bytes.after <= shorter.bytes.before);
        prop_assert_eq!(machines(&shorter.profile, surroundings), machines(profile, surroundings));
        let again = to_capabilities(&shorter.profile, &knowledge)?;
        check_again(&again)?;
        check_decided_later(old, &again)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, ..ProptestConfig::default() })]

    #[test]
    fn old_profiles_of_azure_keep_their_machines(old in with_unlisted(old_azure())) {
        check_old(&old, &AZURE)?;
    }

    #[test]
    fn old_profiles_of_aws_keep_their_machines(old in with_unlisted(old_aws())) {
        check_old(&old, &AWS)?;
    }

    #[test]
    fn profiles_of_azure_can_be_shorter_and_old(profile in with_unlisted(new_azure())) {
        check_new(&profile, &AZURE)?;
    }

    #[test]
    fn profiles_of_aws_can_be_shorter_and_old(profile in with_unlisted(new_aws())) {
        check_new(&profile, &AWS)?;
    }
}

#[test]
fn the_witness_sees_machines() {
    let example = include_str!("../../example/cloudprofiles/azure.yaml").replace("name: gardenlinux", "name: linux");
    let profile = documents(&example).remove(0);
    let seen = machines(&profile, &AZURE);
    let there = seen.values().flatten().count();
    assert_eq!((there, seen.len()), (16, 18), "6 machine types, 3 versions, one of them not for the two of arm64");
    let one = ("Standard_A4_v2".to_owned(), "1592.9.0".to_owned());
    assert_eq!(seen[&one], Some(json!([{"urn": "example:gardenlinux:gen1:1592.9.0"}, null, null, "amd64"])));
}

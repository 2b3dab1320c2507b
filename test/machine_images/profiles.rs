//! CloudProfiles that are filled from releases and checked.

use std::path::Path;

use gardener_extension_worker::api::gotext::yaml;
use gardener_extension_worker::capabilities::Classification;
use gardener_extension_worker::images::catalogue::Catalogue;
use gardener_extension_worker::images::check::check;
use gardener_extension_worker::images::fill::{FillError, FillSettings, Filled, fill};
use gardener_extension_worker::images::lock::Lock;
use gardener_extension_worker::images::resolution::{Policy, resolve};
use gardener_extension_worker::images::sources::read;
use gardener_extension_worker::images::supersede::Supersede;
use gardener_extension_worker::provider::Providers;
use gardener_extension_worker::resolved_profile::convert::{Format, Knowledge, convert};
use gardener_extension_worker::resolved_profile::profile::Profile;
use serde_json::{Value, json};

use crate::amis::{at, policy};

pub(crate) fn document(path: &str) -> Value {
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("example/images").join(path)).unwrap();
    yaml::documents(&text).unwrap().remove(0)
}

/// The usual builds of a release.
pub(crate) fn release(version: &str) -> Catalogue {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("example/images/release-{version}"));
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let usual = files.filter(|name| !name.contains("usi"));
    let listings = usual.map(|name| read(&document(&format!("release-{version}/{name}")), None).unwrap());
    Catalogue::new(listings.collect()).unwrap()
}

pub(crate) fn lock(catalogue: &Catalogue) -> Lock {
    let mut lock = Lock::default();
    lock.add(&resolve(catalogue, &[], &policy()), at("2026-11-22"));
    lock
}

fn filled(profile: &Value, lock: &Lock, replace: bool) -> Result<Filled, FillError> {
    let settings = FillSettings {
        now: at("2026-11-22"),
        classification: Classification::Supported,
        versions: Vec::new(),
        replace,
        supersede: Supersede::No,
    };
    fill(profile, lock, &settings, Providers::SHIPPED)
}

pub(crate) const PROFILES: [&str; 6] = ["alicloud", "aws", "azure", "azure-china", "gcp", "openstack"];

#[test]
fn one_release_fills_the_profiles_of_every_cloud() {
    let lock = lock(&release("2002.1"));
    for name in PROFILES {
        let before = document(&format!("profiles/{name}.yaml"));
        let filled = filled(&before, &lock, false).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(
            !filled.diff.is_hazardous() && filled.missing.is_empty() && filled.left_out.is_empty(),
            "{name}: {filled:?}"
        );
        assert!(!filled.diff.combinations.is_empty(), "{name}: nothing was filled");
        assert_eq!(filled.profile["spec"]["machineImages"][0]["versions"][0]["version"], "2002.1.0", "{name}");
        let text = filled.profile.to_string();
        assert_eq!(text.contains("gardenlinux-china-example"), name == "azure-china");
        assert_eq!(text.contains("gardenlinux-public-example"), name == "azure");
        let again = self::filled(&filled.profile, &lock, false).unwrap();
        assert_eq!(
            (again.profile, again.diff.is_empty()),
            (filled.profile, true),
            "{name}: to fill twice is to fill once"
        );
    }
}

/// The lock without the images of other architectures.
fn only(lock: &Lock, architecture: &str) -> Lock {
    let mut lock = lock.clone();
    lock.images.retain(|key, _| key.flavor.values("architecture") == Some(&[architecture.to_owned()][..]));
    lock
}

/// Sets or removes a list of the first version in core's half (`architectures` or `capabilityFlavors`).
fn with_list(profile: &Value, member: &str, list: Option<Value>) -> Value {
    let mut profile = profile.clone();
    let version = profile["spec"]["machineImages"][0]["versions"][0].as_object_mut().unwrap();
    match list {
        Some(list) => drop(version.insert(member.to_owned(), list)),
        None => drop(version.remove(member)),
    }
    profile
}

#[test]
fn what_a_profile_leaves_out_is_kept_where_a_lock_has_less() {
    let lock = lock(&release("2001.2"));
    let profile = |filled: Result<Filled, FillError>| filled.unwrap_or_else(|error| panic!("{error}")).profile;
    for name in PROFILES {
        let whole = document(&format!("profiles/{name}.yaml"));
        let is_old = whole["spec"]["machineCapabilities"].is_null();
        let open = with_list(&whole, if is_old { "architectures" } else { "capabilityFlavors" }, None);
        for architecture in ["amd64", "arm64"] {
            let lock = only(&lock, architecture);
            if lock.images.keys().any(|key| key.provider == whole["spec"]["type"]) {
                assert_eq!(profile(filled(&open, &lock, false)), whole, "{name} {architecture}");
            }
        }
    }
}

#[test]
fn a_version_of_the_old_format_that_names_no_architecture_stays_for_amd64() {
    let lock = only(&lock(&release("2001.2")), "arm64");
    for name in ["aws", "gcp"] {
        let profile = document(&format!("profiles/{name}.yaml"));
        let old = convert(&profile, Format::Old, &Knowledge::default(), Providers::SHIPPED).unwrap().profile;
        let filled = |list| filled(&with_list(&old, "architectures", list), &lock, false).unwrap().profile;
        let open = filled(None);
        assert_eq!(open, filled(Some(json!(["amd64"]))), "{name}");
        let listed = &open["spec"]["machineImages"][0]["versions"][0]["architectures"];
        assert_eq!(*listed, json!(["amd64", "arm64"]), "{name}");
    }
}

#[test]
fn images_of_a_version_that_only_the_provider_lists_stay() {
    let mut profile = document("profiles/alicloud.yaml");
    profile["spec"]["machineImages"][0]["versions"] = json!([]);
    let region = profile["spec"]["regions"][0]["name"].as_str().unwrap().to_owned();
    let mut lock = lock(&release("2001.2"));
    lock.images.retain(|key, _| key.region.as_ref() == Some(&region));
    let filled = filled(&profile, &lock, false).unwrap().profile;
    assert_eq!(filled["spec"]["providerConfig"], profile["spec"]["providerConfig"]);
    assert_eq!(filled["spec"]["machineImages"][0]["versions"][0]["version"], "2001.2.0");
}

#[test]
fn what_is_filled_passes_the_check() {
    let (first, second) = (release("2001.2"), release("2002.1"));
    let both = lock(&second);
    for name in PROFILES {
        let profile = filled(&document(&format!("profiles/{name}.yaml")), &both, false).unwrap().profile;
        let profile = Profile::read(profile, Providers::SHIPPED).unwrap();
        let rules = |catalogue: &Catalogue, policy: &Policy| {
            let check = check(&profile, catalogue, Some(&both), policy);
            check.findings.iter().map(|finding| finding.rule.id()).collect::<Vec<_>>()
        };
        assert!(
            rules(&second, &policy()).iter().all(|rule| *rule == "missing"),
            "{name}: the older version is not in the source"
        );
        assert!(rules(&first, &policy()).contains(&"missing"), "{name}");
    }
}

/// The findings of `check` in the AWS profile, after one change to an image of the release.
fn found(change: impl Fn(&mut Value)) -> Vec<String> {
    let profile = Profile::read(document("profiles/aws.yaml"), Providers::SHIPPED).unwrap();
    let mut images = json!({"kind": "ImageList", "images": []});
    for record in release("2001.2").images().iter().filter(|image| image.provider == "aws") {
        images["images"]
            .as_array_mut()
            .unwrap()
            .push(json!({"provider": "aws", "region": record.region, "owner": "example",
            "reference": {"ami": record.reference.value}, "facts": record.facts}));
    }
    change(&mut images["images"][0]);
    let catalogue = Catalogue::new(vec![read(&images, None).unwrap()]).unwrap();
    let policy = Policy { owners: vec!["example".to_owned()], ..policy() };
    let check = check(&profile, &catalogue, Some(&lock(&release("2001.2"))), &policy);
    assert_eq!(check.checked, 4);
    check
        .findings
        .into_iter()
        .map(|finding| format!("{} {}: {}", finding.rule.id(), finding.subject, finding.reason))
        .collect()
}

#[test]
fn what_is_wrong_with_an_image_is_found() {
    assert_eq!(found(|_| {}), Vec::<String>::new());
    let at = "gardenlinux 2001.2.0 in eu-central-1";
    for (member, value, explained) in [
        ("state", json!("pending"), format!("unavailable {at}: it is pending")),
        ("deprecated", json!("2026-11-01T00:00:00Z"), format!("deprecated {at}: deprecated since 2026-11-01")),
        ("owner", json!("somebody"), format!("owner {at}: its owner \"somebody\" is not allowed")),
        (
            "facts",
            json!({"architecture": ["arm64"], "bootMode": ["uefi", "legacy-bios"]}),
            format!("capability {at}: the flavor claims architecture=amd64; the image has arm64"),
        ),
        ("region", json!("us-east-1"), format!("missing {at}: no source has it")),
    ] {
        assert_eq!(found(|image| image[member] = value.clone()), [explained]);
    }
}

#[test]
fn a_region_without_an_image_and_an_image_that_is_not_locked_are_found() {
    let catalogue = release("2001.2");
    let mut document = document("profiles/aws.yaml");
    let regions =
        &mut document["spec"]["providerConfig"]["machineImages"][0]["versions"][0]["capabilityFlavors"][0]["regions"];
    regions[0]["ami"] = "ami-00000000".into();
    regions.as_array_mut().unwrap().remove(1);
    let profile = Profile::read(document, Providers::SHIPPED).unwrap();
    let check = check(&profile, &catalogue, Some(&lock(&catalogue)), &policy());
    let rules: Vec<&str> = check.findings.iter().map(|finding| finding.rule.id()).collect();
    assert_eq!(rules, ["region", "missing", "lock"], "{:?}", check.findings);
}

#[test]
fn a_region_to_which_an_azure_image_is_not_replicated_is_found() {
    let mut document = document("profiles/azure.yaml");
    document["spec"]["regions"].as_array_mut().unwrap().push(json!({"name": "northeurope"}));
    let names = document["spec"]["regions"].as_array().unwrap().iter().map(|region| region["name"].as_str().unwrap());
    let regions: Vec<&str> = names.collect();
    let profile = Profile::read(document.clone(), Providers::SHIPPED).unwrap();
    let found = |replicated: &[&str]| {
        let mut images = json!({"kind": "ImageList", "images": []});
        for record in release("2001.2").images().iter().filter(|image| image.provider == "azure") {
            let reference = json!({record.reference.member: record.reference.value});
            let image =
                json!({"provider": "azure", "realm": record.realm, "regions": replicated, "reference": reference});
            images["images"].as_array_mut().unwrap().push(image);
        }
        let catalogue = Catalogue::new(vec![read(&images, None).unwrap()]).unwrap();
        let check = check(&profile, &catalogue, None, &policy());
        let found = check.findings.into_iter();
        let mut found: Vec<String> =
            found.map(|finding| format!("{} {}: {}", finding.rule.id(), finding.subject, finding.reason)).collect();
        found.dedup();
        found
    };
    assert!(found(&[]).is_empty() && found(&regions).is_empty());
    let without = "no source lists it in this region";
    let last = regions[regions.len() - 1];
    let expected = [format!("region gardenlinux 2001.2.0 in {last}: {without}")];
    assert_eq!(found(&regions[..regions.len() - 1]), expected);
}

#[test]
fn a_locked_image_changes_only_on_request() {
    let lock = lock(&release("2001.2"));
    for name in PROFILES {
        // Other images for the version that the release fills: the last character of each locked reference is changed.
        let before = document(&format!("profiles/{name}.yaml"));
        let mut other = lock.clone();
        for image in other.images.values_mut() {
            let value = &mut image.reference.value;
            let end = value.len() - 1;
            let last = if value.ends_with('1') { "2" } else { "1" };
            value.replace_range(end.., last);
        }
        let refused = filled(&before, &other, false);
        assert!(matches!(refused, Err(FillError::AnotherImage(_))), "{name}");
        let explained = filled(&before, &other, true).unwrap();
        assert!(explained.diff.is_hazardous(), "{name}");
        assert!(filled(&before, &lock, false).unwrap().diff.is_empty(), "{name}: the same images change nothing");
    }
}

#[test]
fn two_builds_for_the_same_machines_need_a_word() {
    let mut lock = lock(&release("2002.1"));
    let twice: Vec<_> = lock.images.clone().into_iter().collect();
    for (mut key, image) in twice {
        std::sync::Arc::make_mut(&mut key.flavor).0.insert("variant".to_owned(), vec!["other".to_owned()]);
        lock.images.insert(key, image);
    }
    for name in PROFILES {
        let error = filled(&document(&format!("profiles/{name}.yaml")), &lock, false).unwrap_err().to_string();
        assert!(error.contains("are the same to this profile") && error.contains("--where"), "{name}: {error}");
    }
}

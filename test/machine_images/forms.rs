//! The findings of `check` do not depend on the form of a profile: its format, the order of values, or the case of
//! Azure's paths.

use gardener_extension_worker::capabilities::Classification;
use gardener_extension_worker::images::catalogue::Catalogue;
use gardener_extension_worker::images::check::{ImageCheck, check};
use gardener_extension_worker::images::fill::{FillSettings, fill};
use gardener_extension_worker::images::lock::Lock;
use gardener_extension_worker::images::reference::ImageReference;
use gardener_extension_worker::images::sources::read;
use gardener_extension_worker::images::supersede::Supersede;
use gardener_extension_worker::provider::Providers;
use gardener_extension_worker::resolved_profile::convert::{Format, Knowledge, convert};
use gardener_extension_worker::resolved_profile::minimize::minimize;
use gardener_extension_worker::resolved_profile::profile::Profile;
use serde_json::{Value, json};

use crate::amis::{at, policy};
use crate::profiles::{PROFILES, document, lock, release};

/// The image references in a document, found by their members. They can be changed.
fn images_of<'a>(value: &'a mut Value, all: &mut Vec<&'a mut String>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| images_of(item, all)),
        Value::Object(members) => {
            for (name, value) in members {
                let is_reference = ["ami", "id", "image", "communityGalleryImageID"].contains(&name.as_str());
                if !is_reference {
                    images_of(value, all);
                } else if let Value::String(text) = value {
                    all.push(text);
                }
            }
        }
        _ => {}
    }
}

fn with_images(mut document: Value, change: impl Fn(&mut String)) -> Value {
    let mut images = Vec::new();
    images_of(&mut document["spec"]["providerConfig"]["machineImages"], &mut images);
    assert!(!images.is_empty());
    images.into_iter().for_each(change);
    document
}

/// Reverses every list of values in flavors.
fn reversed(value: &mut Value) {
    match value {
        Value::Array(items) if items.iter().all(Value::is_string) => items.reverse(),
        Value::Array(items) => items.iter_mut().for_each(reversed),
        Value::Object(members) => members.values_mut().for_each(reversed),
        _ => {}
    }
}

/// A profile in each of its possible forms, with a name.
fn forms(name: &str) -> Vec<(String, Value)> {
    let profile = document(&format!("profiles/{name}.yaml"));
    let mut other_order = profile.clone();
    reversed(&mut other_order["spec"]["machineImages"]);
    reversed(&mut other_order["spec"]["providerConfig"]["machineImages"]);
    let minimized = minimize(&profile, Providers::SHIPPED).unwrap().profile;
    let old = convert(&profile, Format::Old, &Knowledge::default(), Providers::SHIPPED).unwrap().profile;
    let forms = [
        ("as it is", profile),
        ("minimized", minimized),
        ("in another order", other_order),
        ("in the old format", old),
    ];
    forms.into_iter().map(|(form, profile)| (format!("{name} {form}"), profile)).collect()
}

fn checked(document: Value, catalogue: &Catalogue, lock: &Lock) -> ImageCheck {
    check(&Profile::read(document, Providers::SHIPPED).unwrap(), catalogue, Some(lock), &policy())
}

fn count(check: &ImageCheck, rule: &str) -> usize {
    check.findings.iter().filter(|finding| finding.rule.id() == rule).count()
}

#[test]
fn another_image_than_the_locked_one_is_found_in_every_form_of_a_profile() {
    let catalogue = release("2001.2");
    let lock = lock(&catalogue);
    for (name, document) in PROFILES.iter().flat_map(|name| forms(name)) {
        let same = checked(document.clone(), &catalogue, &lock);
        assert!(same.checked > 0 && same.findings.is_empty(), "{name}: {same:?}");
        let other = with_images(document, |image| {
            let last = if image.ends_with('1') { "2" } else { "1" };
            image.replace_range(image.len() - 1.., last);
        });
        let other = checked(other, &catalogue, &lock);
        // In the old format, Azure's generations are separate versions, and the lock contains only one of them.
        let unlocked = other.findings.iter().filter(|finding| finding.subject.ends_with("-gen1")).count();
        assert_eq!(count(&other, "missing"), other.checked, "{name}: {other:?}");
        assert_eq!(count(&other, "lock"), other.checked - unlocked, "{name}: {other:?}");
        assert!(
            unlocked <= usize::from(name.starts_with("azure") && name.ends_with("old format")),
            "{name}: {other:?}"
        );
    }
}

#[test]
fn a_capability_that_a_flavor_does_not_name_is_claimed_with_all_its_values() {
    let sources = release("2001.2");
    let mut images = json!({"kind": "ImageList", "images": []});
    for record in sources.images().iter().filter(|image| image.provider == "aws") {
        let mut facts = json!(record.facts);
        facts["bootMode"] = json!(["uefi"]);
        images["images"].as_array_mut().unwrap().push(json!({"provider": "aws", "region": record.region,
            "reference": {"ami": record.reference.value}, "facts": facts}));
    }
    let catalogue = Catalogue::new(vec![read(&images, None).unwrap()]).unwrap();
    for (name, document) in forms("aws") {
        let found = checked(document, &catalogue, &lock(&sources));
        let is_old = name.ends_with("old format");
        let found: Vec<String> =
            found.findings.into_iter().map(|finding| format!("{}: {}", finding.rule.id(), finding.reason)).collect();
        let expected = "capability: the flavor claims bootMode=legacy-bios; the image has uefi";
        assert_eq!(found, vec![expected; if is_old { 0 } else { 2 }], "{name}");
    }
}

/// The path of an Azure image in the upper and lower case that other tools write.
fn in_other_letters(path: &mut String) {
    *path = path
        .replace("CommunityGalleries", "communityGalleries")
        .replace("Images", "images")
        .replace("Versions", "versions");
}

#[test]
fn paths_of_azure_are_the_same_in_capital_and_small_letters() {
    let sources = release("2001.2");
    let lock = lock(&sources);
    for name in ["azure", "azure-china"] {
        let document = with_images(document(&format!("profiles/{name}.yaml")), in_other_letters);
        let check = checked(document.clone(), &sources, &lock);
        assert!(check.checked > 0 && check.findings.is_empty(), "{name}: {check:?}");
        let settings = FillSettings {
            now: at("2026-11-22"),
            classification: Classification::Supported,
            versions: Vec::new(),
            replace: false,
            supersede: Supersede::No,
        };
        let filled = fill(&document, &lock, &settings, Providers::SHIPPED).unwrap();
        assert!(filled.diff.is_empty(), "{name}: {:?}", filled.diff);
        assert_eq!(filled.profile, document, "{name}: what is there stays as it was written");
    }
}

#[test]
fn a_listing_in_other_letters_has_no_other_images() {
    let sources = release("2001.2");
    let mut lock = lock(&sources);
    let count = lock.images.len();
    for image in lock.images.values_mut().filter(|image| image.reference.member == "communityGalleryImageID") {
        in_other_letters(&mut image.reference.value);
    }
    assert_eq!(lock.gone(&sources).count(), 0);
    let resolved = gardener_extension_worker::images::resolution::resolve(&sources, &[], &policy());
    assert_eq!((resolved.len(), lock.available(&resolved, &sources, at("2026-11-22"))), (count, Vec::new()));
    let version = |path: &str| json!([{"name": "1.0.0", "location": "westeurope", "uniqueId": path}]);
    let listings = ["/CommunityGalleries/g/Images/i/Versions/1.0.0", "/communityGalleries/g/images/i/versions/1.0.0"];
    let catalogue = Catalogue::new(listings.map(|path| read(&version(path), None).unwrap()).into()).unwrap();
    assert_eq!(catalogue.images().len(), 1);
    let reference = ImageReference::new("azure", "communityGalleryImageID", listings[1]).unwrap();
    let found = catalogue.find("azure", "public", None, &reference).unwrap();
    assert_eq!(found.reference.to_string(), listings[0], "it is kept as it was listed first");
}

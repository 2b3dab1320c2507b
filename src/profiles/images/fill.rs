//! Fills both parts of a CloudProfile from a lock, and compares the images of every machine type before and after.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::lock::Lock;
use super::record::{capabilities, fact};
use super::reference::{ImageReference, is_same_name};
use super::resolution::FlavorKey;
use super::supersede::{Supersede, Superseded, supersede};
use crate::cloud_profile::validation::FeatureGates;
use crate::resolved_profile::diff::{ProfileDiff, diff};
use crate::resolved_profile::lint::Settings;
use crate::resolved_profile::profile::{Profile, ProfileError};
use decisions::provider::Providers;
use decisions::provider::profile::Members;
use decisions::provider::profile::old_format::{capabilities_of, set_capabilities};
use wire::api::gardener::{Capabilities, CapabilityDefinition};
use wire::capabilities::{Classification, DEFAULT_ARCHITECTURE, are_equal, with_defaults};

/// Settings for filling a profile.
#[derive(Clone, Debug)]
pub struct FillSettings {
    /// The current time.
    pub now: Timestamp,
    /// Classification of new versions.
    pub classification: Classification,
    /// Only these versions; empty means all.
    pub versions: Vec<String>,
    /// Whether machine types may get another image than before.
    pub replace: bool,
    /// What happens to the versions that new versions replace.
    pub supersede: Supersede,
}

/// A filled profile.
#[derive(Debug)]
pub struct Filled {
    /// The profile.
    pub profile: Value,
    /// Comparison with the profile before.
    pub diff: ProfileDiff,
    /// Flavors that lack an image in regions of the profile, with these regions.
    pub missing: Vec<(String, Vec<String>)>,
    /// Flavors that no machine of the profile could use, with the reason.
    pub left_out: Vec<(String, String)>,
    /// Versions that new versions replace.
    pub superseded: Vec<Superseded>,
}

/// Errors of filling a profile.
#[derive(Debug, thiserror::Error)]
pub enum FillError {
    /// The profile can't be decoded.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// Two images match the same machines.
    #[error(
        "{image} {version}: {first} and {second} are the same to this profile ({location}); choose with --where, or define a capability that distinguishes them"
    )]
    SameFlavor {
        /// Name of the image.
        image: String,
        /// The version.
        version: String,
        /// The first flavor.
        first: String,
        /// The second flavor.
        second: String,
        /// Where both have an image.
        location: String,
    },
    /// Machine types would get another image, or none, which was not allowed.
    #[error("machine types would get another image than before, or none; nothing is printed. --replace allows it")]
    AnotherImage(Box<ProfileDiff>),
    /// Gardener or the provider would reject the result.
    #[error("the result would be refused; nothing is printed: {0}")]
    Refused(String),
}

/// Images of a flavor by region.
struct Flavor {
    capabilities: Capabilities,
    architecture: String,
    title: String,
    images: BTreeMap<Option<String>, ImageReference>,
}

/// Writes the locked images of a profile's cloud into both of its parts.
///
/// # Errors
/// If the profile can't be decoded, two images match the same machines, or the result would be rejected. Also if
/// machine types would get another image without permission.
pub fn fill(document: &Value, lock: &Lock, settings: &FillSettings, providers: Providers) -> Result<Filled, FillError> {
    // Missing fields have a meaning, so the profile is completed as the API server would store it.
    let profile = Profile::read_completed(document.clone(), providers)?;
    let resolved_profile = profile.resolved_profile(Timestamp::UNIX_EPOCH);
    let realm = profile.format.realm(&profile.spec.regions);
    let mut filled = document.clone();
    if let Some(members) = filled.as_object_mut() {
        members.remove("status");
    }
    let before = filled.clone();
    let mut missing = Vec::new();
    let mut left_out = Vec::new();
    let mut superseded = Vec::new();
    let is_meant = |key: &FlavorKey| {
        key.provider == profile.spec.provider_type
            && key.realm == realm
            && (settings.versions.is_empty() || settings.versions.contains(&key.version))
    };
    let keys = lock.images.keys().filter(|key| is_meant(key));
    // Newest last, because each new version is inserted before the existing ones.
    let mut versions: Vec<(&str, &str)> = keys.clone().map(|key| (key.image.as_str(), key.version.as_str())).collect();
    versions.dedup();
    versions.sort_by_cached_key(|(image, version)| {
        let number = wire::api::gotext::version::Version::parse(version).ok();
        ((*image).to_owned(), number, (*version).to_owned())
    });
    for (image, version) in versions {
        let of_version = |key: &FlavorKey| is_meant(key) && key.image == image && key.version == version;
        let flavors = flavors(lock, of_version, &profile, &mut left_out)?;
        for flavor in &flavors {
            let lacks = |region: &&String| {
                !flavor.images.contains_key(&None) && !flavor.images.contains_key(&Some((*region).clone()))
            };
            let regions = profile.spec.regions.iter().map(|region| &region.name);
            let regions: Vec<String> = regions.filter(lacks).cloned().collect();
            if !regions.is_empty() {
                missing.push((flavor.title.clone(), regions));
            }
        }
        if !flavors.is_empty() {
            let admitted = resolved_profile.architectures_of(image, version);
            let listed = write_provider(&mut filled, &profile, (image, version), &flavors, &admitted);
            write_core(&mut filled, &profile, (image, version), &flavors, &listed, settings.classification);
            if !lists(&profile, image, version) {
                superseded.extend(supersede_in(&mut filled, (image, version), settings));
            }
        }
    }
    let diff = compared(&before, &filled, settings, providers)?;
    Ok(Filled { profile: filled, diff, missing, left_out, superseded })
}

/// Whether a profile has a version of an image.
fn lists(profile: &Profile, image: &str, version: &str) -> bool {
    let images = profile.spec.machine_images.iter().filter(|known| known.name == image);
    images.flat_map(|known| &known.versions).any(|known| known.version == version)
}

/// Supersedes the predecessors of a version that is new to the profile.
fn supersede_in(document: &mut Value, (image, version): (&str, &str), settings: &FillSettings) -> Vec<Superseded> {
    let Some(images) = document["spec"]["machineImages"].as_array_mut() else { return Vec::new() };
    let Some(entry) = images.iter_mut().find(|entry| entry["name"] == image) else { return Vec::new() };
    supersede(&mut entry["versions"], (image, version), settings.supersede, settings.now)
}

/// Verifies that machine types still get the same images.
fn compared(
    before: &Value,
    filled: &Value,
    settings: &FillSettings,
    providers: Providers,
) -> Result<ProfileDiff, FillError> {
    let lint = Settings { now: settings.now, soon: SignedDuration::ZERO, gates: FeatureGates::default() };
    let diff = diff(before, filled, lint, providers)?;
    if let Some(refused) = diff.refused.first() {
        return Err(FillError::Refused(format!("{} {}: {}", refused.path, refused.rule, refused.reason)));
    }
    let changes = diff.combinations.iter().any(|change| change.effect.takes_something());
    if changes && !settings.replace { Err(FillError::AnotherImage(Box::new(diff))) } else { Ok(diff) }
}

/// The flavors of a version, distinguished by the capabilities of the profile.
fn flavors(
    lock: &Lock,
    is_meant: impl Fn(&FlavorKey) -> bool,
    profile: &Profile,
    left_out: &mut Vec<(String, String)>,
) -> Result<Vec<Flavor>, FillError> {
    let definitions = &profile.spec.machine_capabilities;
    let regions: BTreeSet<&str> = profile.spec.regions.iter().map(|region| region.name.as_str()).collect();
    let mut flavors: Vec<Flavor> = Vec::new();
    for (key, locked) in lock.images.iter().filter(|(key, _)| is_meant(key)) {
        if key.region.as_deref().is_some_and(|region| !regions.contains(region)) {
            continue;
        }
        let title = format!("{} {} ({})", key.image, key.version, key.flavor_text());
        let architecture = key.flavor.values(fact::ARCHITECTURE).and_then(<[_]>::first).cloned();
        let capabilities = match capabilities(&key.flavor, definitions) {
            Ok(capabilities) => capabilities,
            Err(name) => {
                let reason = format!("the profile defines no such value of {name}");
                if !left_out.iter().any(|(known, _)| *known == title) {
                    left_out.push((title, reason));
                }
                continue;
            }
        };
        let architecture = architecture.unwrap_or_else(|| DEFAULT_ARCHITECTURE.to_owned());
        let same = |known: &&mut Flavor| {
            is_same(&known.capabilities, &capabilities, definitions) && known.architecture == architecture
        };
        let flavor = match flavors.iter_mut().find(same) {
            Some(known) if known.title != title => {
                return Err(FillError::SameFlavor {
                    image: key.image.clone(),
                    version: key.version.clone(),
                    first: known.title.clone(),
                    second: title,
                    location: key.location().to_owned(),
                });
            }
            Some(known) => known,
            None => {
                flavors.push(Flavor { capabilities, architecture, title, images: BTreeMap::new() });
                let Some(last) = flavors.last_mut() else { continue };
                last
            }
        };
        flavor.images.insert(key.region.clone(), locked.reference.clone());
    }
    Ok(flavors)
}

fn is_same(a: &Capabilities, b: &Capabilities, definitions: &[CapabilityDefinition]) -> bool {
    are_equal(&with_defaults(a, definitions), &with_defaults(b, definitions))
}

impl Flavor {
    /// Converts the flavor to an entry of `capabilityFlavors`.
    fn members(&self) -> Members {
        let mut members = Map::new();
        set_capabilities(&mut members, &self.capabilities);
        let mut regions = Vec::new();
        for (region, reference) in &self.images {
            match region {
                Some(region) => regions.push(json!({"name": region, reference.member: reference.value})),
                None => drop(members.insert(reference.member.to_owned(), reference.value.as_str().into())),
            }
        }
        if !regions.is_empty() {
            members.insert("regions".to_owned(), regions.into());
        }
        members
    }
}

/// The entry of a list whose `key` has that value. Inserts it at the front if it is missing.
fn entry<'a>(list: &'a mut Value, key: &str, value: &str, new: impl FnOnce() -> Value) -> Option<&'a mut Value> {
    if !list.is_array() {
        *list = json!([]);
    }
    let items = list.as_array_mut()?;
    let position = match items.iter().position(|item| item[key] == *value) {
        Some(position) => position,
        None => {
            items.insert(0, new());
            0
        }
    };
    items.get_mut(position)
}

/// Writes the provider part of a version. Returns the capabilities of all its flavors.
fn write_provider(
    document: &mut Value,
    profile: &Profile,
    (image, version): (&str, &str),
    flavors: &[Flavor],
    admitted: &[String],
) -> Vec<Capabilities> {
    let images = &mut document["spec"]["providerConfig"]["machineImages"];
    let new = || json!({"name": image, "versions": []});
    let Some(entry) = entry(images, "name", image, new) else { return Vec::new() };
    let versions = entry["versions"].take();
    let versions: Vec<Value> = versions.as_array().cloned().unwrap_or_default();
    let position = versions.iter().position(|known| known["version"] == version);
    let (listed, mut others): (Vec<Value>, Vec<Value>) =
        versions.into_iter().partition(|known| known["version"] == version);
    let mut known: Vec<Members> = Vec::new();
    for listed in listed.iter().filter_map(Value::as_object) {
        match listed.get("capabilityFlavors").and_then(Value::as_array) {
            Some(flavors) => known.extend(flavors.iter().filter_map(Value::as_object).cloned()),
            None => known.extend(profile.format.flavors_of_old_format(listed, admitted)),
        }
    }
    let definitions = &profile.spec.machine_capabilities;
    for flavor in flavors {
        let is_meant = |known: &&mut Members| {
            let listed = capabilities_of(known);
            if definitions.is_empty() {
                architecture(&listed) == flavor.architecture
            } else {
                is_same(&listed, &flavor.capabilities, definitions)
            }
        };
        match known.iter_mut().find(is_meant) {
            Some(known) => merge(known, flavor.members()),
            None => known.push(flavor.members()),
        }
    }
    let capabilities = known.iter().map(capabilities_of).collect();
    let written = if definitions.is_empty() {
        let with_architecture = |members: Members| (architecture_of(&members, flavors), members);
        let by_architecture: Vec<(String, Members)> = known.into_iter().map(with_architecture).collect();
        profile.format.old_format_of_flavors(version, &by_architecture)
    } else {
        let mut members = Map::new();
        members.insert("version".to_owned(), version.into());
        members.insert("capabilityFlavors".to_owned(), known.into());
        vec![members]
    };
    let position = position.unwrap_or_default().min(others.len());
    others.splice(position..position, written.into_iter().map(Value::Object));
    entry["versions"] = others.into();
    capabilities
}

fn architecture(capabilities: &Capabilities) -> String {
    let named = capabilities.values(fact::ARCHITECTURE).and_then(<[_]>::first);
    named.cloned().unwrap_or_else(|| DEFAULT_ARCHITECTURE.to_owned())
}

/// Architecture of a flavor in a profile without capabilities. For a new flavor, the document does not contain it.
fn architecture_of(members: &Members, new: &[Flavor]) -> String {
    match new.iter().find(|flavor| flavor.members() == *members) {
        Some(flavor) => flavor.architecture.clone(),
        None => architecture(&capabilities_of(members)),
    }
}

/// Sets the images of a flavor. Images of other regions stay, as does an equal name in another spelling.
fn merge(known: &mut Members, new: Members) {
    for (member, value) in new {
        let before = known.get(&member).and_then(Value::as_str);
        let is_same = before.zip(value.as_str()).is_some_and(|(before, new)| is_same_name(before, new));
        match (known.get_mut(&member).and_then(Value::as_array_mut), value) {
            (_, _) if member == "capabilities" || is_same => {}
            (Some(regions), Value::Array(new)) => {
                for region in new {
                    match regions.iter_mut().find(|known| known["name"] == region["name"]) {
                        Some(known) => *known = region,
                        None => regions.push(region),
                    }
                }
            }
            (_, value) => drop(known.insert(member, value)),
        }
    }
}

/// Writes the core part of a version; `of_provider` has the flavors of the provider part. A missing list is first
/// filled with its meaning: the default architecture, or the flavors that the provider's webhook would write.
fn write_core(
    document: &mut Value,
    profile: &Profile,
    (image, version): (&str, &str),
    flavors: &[Flavor],
    of_provider: &[Capabilities],
    classification: Classification,
) {
    let images = &mut document["spec"]["machineImages"];
    let new = || json!({"name": image, "updateStrategy": "major", "versions": []});
    let Some(entry_of_image) = entry(images, "name", image, new) else { return };
    let runtimes = entry_of_image["versions"][0]["cri"].clone();
    let runtimes = if runtimes.is_array() { runtimes } else { json!([{"name": "containerd"}]) };
    let new = || json!({"version": version, "cri": runtimes, "classification": classification.word()});
    let Some(listed) = entry(&mut entry_of_image["versions"], "version", version, new) else { return };
    let definitions = &profile.spec.machine_capabilities;
    if definitions.is_empty() {
        let mut architectures: BTreeSet<String> = flavors.iter().map(|flavor| flavor.architecture.clone()).collect();
        let known = profile.spec.machine_images.iter().filter(|known| known.name == image);
        let known = known.flat_map(|known| &known.versions).filter(|known| known.version == version);
        architectures.extend(known.flat_map(|known| known.architectures.iter().cloned()));
        listed["architectures"] = json!(architectures);
        return;
    }
    let known = listed["capabilityFlavors"].as_array().filter(|known| !known.is_empty()).cloned();
    let known = known.unwrap_or_else(|| of_provider.iter().map(|flavor| json!(flavor)).collect());
    let of_known: Vec<Capabilities> = known
        .iter()
        .filter_map(Value::as_object)
        .map(|flavor| capabilities_of(&Map::from_iter([("capabilities".to_owned(), Value::Object(flavor.clone()))])))
        .collect();
    let is_new = |flavor: &&Flavor| !of_known.iter().any(|known| is_same(known, &flavor.capabilities, definitions));
    let more = flavors.iter().filter(is_new).map(|flavor| json!(flavor.capabilities));
    listed["capabilityFlavors"] = known.into_iter().chain(more).collect::<Vec<_>>().into();
}

//! Whether profile, lock and sources agree: every image exists, can be used, is what its flavor claims, and is everywhere.

use std::collections::HashMap;

use serde::Serialize;

use super::catalogue::Catalogue;
use super::lock::{Lock, LockedImage};
use super::record::{ImageRecord, ImageState, capabilities};
use super::reference::ImageReference;
use super::resolution::{FlavorKey, Policy};
use crate::api::gardener::{Capabilities, CapabilityDefinition};
use crate::offer::profile::Profile;
use crate::provider::explanation::ImageName;

/// What is wrong with an image of a profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImageFinding {
    /// Which rule it breaks.
    pub rule: ImageRule,
    /// Image, version and region.
    pub subject: String,
    /// The field of the profile.
    pub path: String,
    /// The image, as the cloud calls it.
    pub id: String,
    /// What is the case.
    pub reason: String,
}

/// What images of a profile have to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImageRule {
    /// The cloud has no such names.
    NotAnId,
    /// No source has it.
    Missing,
    /// Machines can't start from it.
    Unavailable,
    /// Its owner advises against it.
    Deprecated,
    /// Its owner is not allowed.
    Owner,
    /// It can't run what its flavor claims.
    Capability,
    /// A region of the profile has no image.
    Region,
    /// The lock has another image.
    Lock,
}

impl ImageRule {
    /// Its name.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::NotAnId => "not-an-id",
            Self::Missing => "missing",
            Self::Unavailable => "unavailable",
            Self::Deprecated => "deprecated",
            Self::Owner => "owner",
            Self::Capability => "capability",
            Self::Region => "region",
            Self::Lock => "lock",
        }
    }
}

/// What was checked, and what is wrong.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ImageCheck {
    /// Images of flavors, in each region by itself.
    pub checked: usize,
    /// What is wrong, in the order of the profile.
    pub findings: Vec<ImageFinding>,
}

/// Where an image stands in a profile, and what the profile claims of it.
struct Listed<'a> {
    image: &'a str,
    version: &'a str,
    region: Option<&'a str>,
    path: &'a str,
    claims: &'a Capabilities,
}

/// Checks the images of a profile against the sources, and against a lock if there is one.
#[must_use]
pub fn check(profile: &Profile, catalogue: &Catalogue, lock: Option<&Lock>, policy: &Policy) -> ImageCheck {
    let offer = profile.offer(policy.now);
    let (realm, definitions) = (profile.format.realm(&profile.spec.regions), &profile.spec.machine_capabilities);
    let mut locked: HashMap<LockedPlace<'_>, Vec<(Capabilities, &LockedImage)>> = HashMap::new();
    let of_cloud =
        |(key, _): &(&FlavorKey, &LockedImage)| key.provider == profile.format.provider_type() && key.realm == realm;
    for (key, image) in lock.into_iter().flat_map(|lock| &lock.images).filter(of_cloud) {
        if let Ok(flavor) = capabilities(&Capabilities(key.flavor.clone()), definitions) {
            locked.entry((&key.image, &key.version, key.region.as_deref())).or_default().push((flavor, image));
        }
    }
    let mut checker = Checker { profile, catalogue, locked, policy, realm, definitions, check: ImageCheck::default() };
    for version in offer.images.iter().filter(|version| !version.is_expired()) {
        for flavor in &version.flavors {
            let at = |region| Listed {
                image: &version.image,
                version: &version.version,
                region,
                path: &flavor.path,
                claims: &flavor.capabilities,
            };
            if let Some(name) = &flavor.anywhere {
                checker.image(&at(None), name);
            }
            if flavor.anywhere.is_none() {
                for region in offer.regions.iter().filter(|region| !flavor.by_region.contains_key(*region)) {
                    checker.find(
                        ImageRule::Region,
                        &at(Some(region)),
                        "",
                        "the flavor has no image in this region".to_owned(),
                    );
                }
            }
            for (region, name) in &flavor.by_region {
                checker.image(&at(Some(region)), name);
            }
        }
    }
    checker.check
}

/// Image, version and region.
type LockedPlace<'a> = (&'a str, &'a str, Option<&'a str>);

struct Checker<'a> {
    profile: &'a Profile,
    catalogue: &'a Catalogue,
    /// What the lock has for the profile's cloud, by the flavor that it becomes there.
    locked: HashMap<LockedPlace<'a>, Vec<(Capabilities, &'a LockedImage)>>,
    policy: &'a Policy,
    realm: &'static str,
    definitions: &'a [CapabilityDefinition],
    check: ImageCheck,
}

impl Checker<'_> {
    fn find(&mut self, rule: ImageRule, listed: &Listed<'_>, id: &str, reason: String) {
        let region = listed.region.map(|region| format!(" in {region}")).unwrap_or_default();
        self.check.findings.push(ImageFinding {
            rule,
            subject: format!("{} {}{region}", listed.image, listed.version),
            path: listed.path.to_owned(),
            id: id.to_owned(),
            reason,
        });
    }

    fn image(&mut self, listed: &Listed<'_>, name: &ImageName) {
        self.check.checked += 1;
        let provider = self.profile.format.provider_type();
        let reference = match ImageReference::new(provider, &name.member, &name.value) {
            Ok(reference) => reference,
            Err(problem) => return self.find(ImageRule::NotAnId, listed, &name.value, problem.to_string()),
        };
        match self.catalogue.find(provider, self.realm, listed.region, &reference) {
            None => self.find(ImageRule::Missing, listed, &name.value, "no source has it".to_owned()),
            Some(record) => self.record(listed, record),
        }
        self.lock(listed, &reference);
    }

    fn record(&mut self, listed: &Listed<'_>, record: &ImageRecord) {
        let id = &record.reference.value;
        if let ImageState::Unavailable(word) = &record.state {
            self.find(ImageRule::Unavailable, listed, id, format!("it is {word}"));
        }
        if let Some(since) = record.deprecated.filter(|_| record.is_deprecated(self.policy.now)) {
            self.find(ImageRule::Deprecated, listed, id, format!("deprecated since {}", since.strftime("%F")));
        }
        if !self.policy.owners.is_empty() && !self.policy.owners.contains(&record.owner) {
            self.find(ImageRule::Owner, listed, id, format!("its owner {:?} is not allowed", record.owner));
        }
        // Without definitions only the architecture is claimed.
        let architecture = [crate::capabilities::architecture_definition()];
        let definitions = if self.definitions.is_empty() { &architecture } else { self.definitions };
        for definition in definitions {
            let Some(claimed) = listed.claims.values(&definition.name) else { continue };
            let known = match capabilities(&record.facts, std::slice::from_ref(definition)) {
                Ok(known) if known.is_empty() => continue,
                Ok(known) => known.values(&definition.name).unwrap_or_default().to_vec(),
                Err(_) => Vec::new(),
            };
            if let Some(value) = claimed.iter().find(|value| !known.contains(value)) {
                let has = if known.is_empty() { "none of its values".to_owned() } else { known.join(", ") };
                let reason = format!("the flavor claims {}={value}; the image has {has}", definition.name);
                self.find(ImageRule::Capability, listed, id, reason);
            }
        }
    }

    /// The lock has another image for a flavor if it has one for what becomes the same flavor in this profile.
    fn lock(&mut self, listed: &Listed<'_>, reference: &ImageReference) {
        let known = self.locked.get(&(listed.image, listed.version, listed.region));
        let mut known =
            known.into_iter().flatten().filter(|(flavor, _)| flavor == listed.claims).map(|(_, locked)| locked);
        let other = known.clone().next().map(|locked| locked.reference.value.clone());
        if let Some(other) = other.filter(|_| !known.any(|locked| locked.reference == *reference)) {
            self.find(ImageRule::Lock, listed, &reference.value, format!("the lock has {other}"));
        }
    }
}

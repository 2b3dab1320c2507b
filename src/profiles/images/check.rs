//! Checks a profile against lock and sources: whether every image exists, is usable, has the capabilities of its
//! flavor, and exists in all regions.

use std::collections::HashMap;

use serde::Serialize;

use super::catalogue::Catalogue;
use super::lock::{Lock, LockedImage};
use super::record::{ImageRecord, ImageState, capabilities};
use super::reference::ImageReference;
use super::resolution::{FlavorKey, Policy};
use crate::resolved_profile::lint::Severity;
use crate::resolved_profile::profile::Profile;
use crate::resolved_profile::selectable::{SelectableFlavor, SelectableVersion};
use decisions::provider::explanation::{ImageName, capabilities_text};
use wire::api::gardener::{Capabilities, CapabilityDefinition};
use wire::capabilities::{
    ARCHITECTURE, DEFAULT_ARCHITECTURE, architecture_definition, are_compatible, are_equal, intersection, with_defaults,
};

/// A problem with an image of a profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImageFinding {
    /// Its severity.
    pub severity: Severity,
    /// The violated rule.
    pub rule: ImageRule,
    /// Image, version and region.
    pub subject: String,
    /// Path of the field in the profile.
    pub path: String,
    /// ID of the image at the cloud.
    pub id: String,
    /// Description of the problem.
    pub reason: String,
}

/// Rules for the images of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImageRule {
    /// The name is not a valid image name at this cloud.
    NotAnId,
    /// No source has the image.
    Missing,
    /// Machines can't start from the image.
    Unavailable,
    /// The owner has deprecated the image.
    Deprecated,
    /// The owner of the image is not allowed.
    Owner,
    /// The image lacks a capability of its flavor.
    Capability,
    /// A flavor has no image in a region of the profile.
    Region,
    /// The lock has another image.
    Lock,
    /// Two flavors match the same machines.
    Overlap,
}

impl ImageRule {
    /// All rules, in order.
    pub const ALL: [Self; 9] = [
        Self::NotAnId,
        Self::Missing,
        Self::Unavailable,
        Self::Deprecated,
        Self::Owner,
        Self::Capability,
        Self::Region,
        Self::Lock,
        Self::Overlap,
    ];

    /// Severity of a violation. Overlapping flavors may be intended.
    #[must_use]
    pub fn severity(self) -> Severity {
        if self == Self::Overlap { Severity::Warning } else { Severity::Error }
    }

    /// Short description.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::NotAnId => "The cloud has no such names",
            Self::Missing => "No source has the image",
            Self::Unavailable => "Machines can't start from the image",
            Self::Deprecated => "The owner of the image advises against it",
            Self::Owner => "The owner of the image is not allowed",
            Self::Capability => "The image can't run what its flavor claims",
            Self::Region => "A region has no image of a flavor",
            Self::Lock => "The lock has another image",
            Self::Overlap => "Two flavors of a version are for the same machines",
        }
    }

    /// Name of the rule.
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
            Self::Overlap => "overlap",
        }
    }
}

/// Result of a check.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ImageCheck {
    /// Number of checked images, counting each region.
    pub checked: usize,
    /// Problems in the order of the profile.
    pub findings: Vec<ImageFinding>,
}

/// An image in a profile, with the capabilities of its flavor.
#[derive(Clone, Copy)]
struct Listed<'a> {
    image: &'a str,
    version: &'a str,
    region: Option<&'a str>,
    path: &'a str,
    /// With defaults: a capability that the flavor does not set has every value.
    claims: &'a Capabilities,
}

/// Checks the images of a profile against the sources, and against a lock if there is one.
#[must_use]
pub fn check(profile: &Profile, catalogue: &Catalogue, lock: Option<&Lock>, policy: &Policy) -> ImageCheck {
    let resolved_profile = profile.resolved_profile(policy.now);
    let realm = profile.format.realm(&profile.spec.regions);
    // Without definitions, a flavor only has an architecture.
    let architecture = [architecture_definition()];
    let definitions = match &profile.spec.machine_capabilities[..] {
        [] => &architecture[..],
        definitions => definitions,
    };
    let mut locked: HashMap<LockedLocation<'_>, Vec<(Capabilities, &LockedImage)>> = HashMap::new();
    let of_cloud =
        |(key, _): &(&FlavorKey, &LockedImage)| key.provider == profile.format.provider_type() && key.realm == realm;
    for (key, image) in lock.into_iter().flat_map(|lock| &lock.images).filter(of_cloud) {
        if let Ok(flavor) = capabilities(&key.flavor, definitions) {
            let flavor = with_defaults(&flavor, definitions);
            locked.entry((&key.image, &key.version, key.region.as_deref())).or_default().push((flavor, image));
        }
    }
    let mut checker = Checker { profile, catalogue, locked, policy, realm, definitions, check: ImageCheck::default() };
    for version in resolved_profile.images.iter().filter(|version| !version.is_expired()) {
        checker.overlaps(version);
        for flavor in &version.flavors {
            let claims = checker.claims(version, flavor);
            let image = &version.image;
            let of_image = &version.version;
            let path = &flavor.path;
            let at = |region| Listed { image, version: of_image, region, path, claims: &claims };
            if let Some(name) = &flavor.anywhere {
                checker.image(&at(None), name);
            }
            if flavor.anywhere.is_none() {
                for region in resolved_profile.regions.iter().filter(|region| !flavor.by_region.contains_key(*region)) {
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
type LockedLocation<'a> = (&'a str, &'a str, Option<&'a str>);

struct Checker<'a> {
    profile: &'a Profile,
    catalogue: &'a Catalogue,
    /// Locked images for the profile's cloud, with the flavors that they have in this profile.
    locked: HashMap<LockedLocation<'a>, Vec<(Capabilities, &'a LockedImage)>>,
    policy: &'a Policy,
    realm: &'static str,
    /// Capabilities that flavors can have.
    definitions: &'a [CapabilityDefinition],
    check: ImageCheck,
}

impl Checker<'_> {
    fn is_old_format(&self) -> bool {
        self.profile.spec.machine_capabilities.is_empty()
    }

    /// Capabilities of a flavor. In the old format without an architecture, those that Gardener allows.
    fn claims(&self, version: &SelectableVersion, flavor: &SelectableFlavor) -> Capabilities {
        let mut claims = flavor.capabilities.clone();
        if self.is_old_format() && claims.values(ARCHITECTURE).is_none() {
            let admitted = match &version.architectures[..] {
                [] => vec![DEFAULT_ARCHITECTURE.to_owned()],
                admitted => admitted.to_vec(),
            };
            claims.0.insert(ARCHITECTURE.to_owned(), admitted);
        }
        with_defaults(&claims, self.definitions)
    }

    fn find(&mut self, rule: ImageRule, listed: &Listed<'_>, id: &str, reason: String) {
        let region = listed.region.map(|region| format!(" in {region}")).unwrap_or_default();
        self.check.findings.push(ImageFinding {
            severity: rule.severity(),
            rule,
            subject: format!("{} {}{region}", listed.image, listed.version),
            path: listed.path.to_owned(),
            id: id.to_owned(),
            reason,
        });
    }

    /// Reports flavors that match the same machines, because then the order of capabilities decides which image they
    /// get.
    fn overlaps(&mut self, version: &SelectableVersion) {
        let definitions = self.definitions;
        // In the old format, a version has one image per architecture.
        if self.is_old_format() {
            return;
        }
        for (position, flavor) in version.flavors.iter().enumerate() {
            let overlaps = |(_, other): &(usize, &SelectableFlavor)| {
                meet(flavor, other) && are_compatible(&flavor.capabilities, &other.capabilities, definitions)
            };
            let Some((first, other)) = version.flavors.iter().take(position).enumerate().find(overlaps) else {
                continue;
            };
            let [ours, theirs] = [flavor, other].map(|flavor| with_defaults(&flavor.capabilities, definitions));
            let shared = capabilities_text(&intersection(&ours, &theirs));
            let reason =
                format!("machines with {shared} fit flavor {first} as well; the order of capabilities decides");
            let image = version.image.as_str();
            let version = version.version.as_str();
            let listed = Listed { image, version, region: None, path: &flavor.path, claims: &flavor.capabilities };
            self.find(ImageRule::Overlap, &listed, "", reason);
        }
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
        if let Some(since) = record.deprecated
            && record.is_deprecated(self.policy.now)
        {
            self.find(ImageRule::Deprecated, listed, id, format!("deprecated since {}", since.strftime("%F")));
        }
        if !self.policy.owners.is_empty() && !self.policy.owners.contains(&record.owner) {
            self.find(ImageRule::Owner, listed, id, format!("its owner {:?} is not allowed", record.owner));
        }
        if listed.region.is_none() {
            let lacks = |region: &&str| !record.is_in(region);
            let regions: Vec<&str> =
                self.profile.spec.regions.iter().map(|region| region.name.as_str()).filter(lacks).collect();
            for region in regions {
                let there = Listed { region: Some(region), ..*listed };
                self.find(ImageRule::Region, &there, id, "no source lists it in this region".to_owned());
            }
        }
        for definition in self.definitions {
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

    /// Reports an image that differs from the locked image of the same flavor.
    fn lock(&mut self, listed: &Listed<'_>, reference: &ImageReference) {
        let known = self.locked.get(&(listed.image, listed.version, listed.region));
        let mut known = known
            .into_iter()
            .flatten()
            .filter(|(flavor, _)| are_equal(flavor, listed.claims))
            .map(|(_, locked)| locked);
        let other = known.clone().next().map(|locked| locked.reference.value.clone());
        if let Some(other) = other
            && !known.any(|locked| locked.reference == *reference)
        {
            self.find(ImageRule::Lock, listed, &reference.value, format!("the lock has {other}"));
        }
    }
}

/// Whether both flavors have an image in the same region.
fn meet(a: &SelectableFlavor, b: &SelectableFlavor) -> bool {
    let anywhere = a.anywhere.is_some() || b.anywhere.is_some();
    anywhere || a.by_region.keys().any(|region| b.by_region.contains_key(region))
}

//! An image at a cloud and its data.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::attributes::Attributes;
use super::reference::ImageReference;
use super::sources::ec2_attributes::attribute_name;
use wire::api::bounded_text::beginning;
use wire::api::gardener::{Capabilities, CapabilityDefinition};
use wire::api::image_objects::ImageFilter;

/// Maximum length of a text from a source.
const LONGEST: usize = 256;

/// Names of facts about images. Locks use these names; profiles may have other ones.
pub mod fact {
    /// `amd64`, `arm64`.
    pub const ARCHITECTURE: &str = "architecture";
    /// `uefi`, `legacy-bios`.
    pub const BOOT_MODE: &str = "bootMode";
    /// `gen1`, `gen2`.
    pub const GENERATION: &str = "generation";
    /// `true`, `false`.
    pub const SECURE_BOOT: &str = "secureBoot";
    /// Build variant of a release, such as `gardener_prod`.
    pub const VARIANT: &str = "variant";
    /// `gvnic`, `virtio`.
    pub const NETWORK: &str = "network";
    /// Operating system, if the name of the image does not contain it.
    pub const OPERATING_SYSTEM: &str = "os";
    /// `baremetal`, `virtualized`, where a release has images for both.
    pub const HYPERVISOR: &str = "hypervisor";
    /// Image for physical machines.
    pub const BARE_METAL: &str = "baremetal";
    /// Image for virtual machines.
    pub const VIRTUALIZED: &str = "virtualized";

    /// All facts that sources can have.
    pub const ALL: [&str; 8] =
        [ARCHITECTURE, BOOT_MODE, GENERATION, SECURE_BOOT, VARIANT, NETWORK, OPERATING_SYSTEM, HYPERVISOR];
}

/// An image in one or all regions. Values that many images have in common can be [shared](super::shared).
#[derive(Clone, Debug, PartialEq)]
pub struct ImageRecord {
    /// `spec.type` of the CloudProfiles that can have it.
    pub provider: &'static str,
    /// The provider's cloud: `public`, `china`.
    pub realm: String,
    /// The region; `None` if the image has the same name in all regions.
    pub region: Option<String>,
    /// Regions in which it is available under its one name, as far as a source lists them; `None` means all.
    pub replicated_to: Option<Arc<BTreeSet<String>>>,
    /// The reference for machines.
    pub reference: ImageReference,
    /// Its name, escaped and bounded.
    pub name: String,
    /// Account, project or gallery; empty if unknown.
    pub owner: String,
    /// Creation time.
    pub created: Option<Timestamp>,
    /// From when on it is deprecated by its owner.
    pub deprecated: Option<Timestamp>,
    /// Whether machines can start from it.
    pub state: ImageState,
    /// Whether reading it needs a key of its account.
    pub encrypted: bool,
    /// Architecture, boot mode and others, with names from [`fact`].
    pub facts: Arc<Capabilities>,
    /// Other attributes. They don't distinguish flavors.
    pub attributes: Attributes,
    /// Tags or labels.
    pub tags: Arc<BTreeMap<String, String>>,
    /// Image and version, if the source has them.
    pub release: Option<Arc<Release>>,
}

/// Image and version according to a source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Release {
    /// Name of the image in CloudProfiles.
    pub image: String,
    /// The version.
    pub version: String,
}

/// Whether machines can start from an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageState {
    /// Machines can start from it.
    Available,
    /// Machines can't start from it; has the cloud's name for the state.
    Unavailable(String),
}

impl ImageState {
    /// Converts the cloud's name for a state; `available` is its name for an available image.
    #[must_use]
    pub fn of(word: &str, available: &str) -> Self {
        if word.eq_ignore_ascii_case(available) { Self::Available } else { Self::Unavailable(text(word)) }
    }
}

impl ImageRecord {
    /// An image without further data.
    #[must_use]
    pub fn new(provider: &'static str, reference: ImageReference, name: &str) -> Self {
        Self {
            provider,
            realm: PUBLIC.to_owned(),
            region: None,
            replicated_to: None,
            reference,
            name: text(name),
            owner: String::new(),
            created: None,
            deprecated: None,
            state: ImageState::Available,
            encrypted: false,
            facts: Arc::default(),
            attributes: Attributes::default(),
            tags: Arc::default(),
            release: None,
        }
    }

    /// Whether the image passes a filter: a tag, a fact or an attribute has one of the filter's values.
    #[must_use]
    pub fn matches(&self, filter: &ImageFilter) -> bool {
        let accepts = |value: &str| filter.values.iter().any(|accepted| accepted == value);
        if let Some(tag) = filter.name.strip_prefix("tag:") {
            return self.tags.get(tag).is_some_and(|value| accepts(value));
        }
        let name = attribute_name(&filter.name);
        let has = |values: Option<&[String]>| values.is_some_and(|values| values.iter().any(|value| accepts(value)));
        has(self.facts.values(&name)) || has(self.attributes.values(&name)) || self.own_values(&name).any(accepts)
    }

    /// The values of a fact, or of an attribute.
    #[must_use]
    pub fn values(&self, name: &str) -> Option<&[String]> {
        self.facts.values(name).or_else(|| self.attributes.values(name))
    }

    /// The values of attributes that are fields of the record.
    fn own_values(&self, name: &str) -> impl Iterator<Item = &str> {
        let single = match name {
            "imageId" => Some(self.reference.value.as_str()),
            "name" => Some(self.name.as_str()),
            "ownerId" => Some(self.owner.as_str()),
            "state" => Some(match &self.state {
                ImageState::Available => "available",
                ImageState::Unavailable(word) => word.as_str(),
            }),
            _ => None,
        };
        let tags = if name == "tagKey" { Some(self.tags.keys().map(String::as_str)) } else { None };
        single.into_iter().chain(tags.into_iter().flatten())
    }

    /// Adds a fact without its empty values.
    #[must_use]
    pub fn with_fact(mut self, name: &str, values: &[&str]) -> Self {
        let values: Vec<String> = values.iter().filter(|value| !value.is_empty()).map(|value| spelled(value)).collect();
        if !values.is_empty() {
            Arc::make_mut(&mut self.facts).0.insert(name.to_owned(), values);
        }
        self
    }

    /// Whether its owner has deprecated it at that time.
    #[must_use]
    pub fn is_deprecated(&self, now: Timestamp) -> bool {
        self.deprecated.is_some_and(|deprecated| deprecated <= now)
    }

    /// Restricts an image with one name to these regions, unless the list is empty.
    #[must_use]
    pub fn with_regions(mut self, regions: impl IntoIterator<Item = String>) -> Self {
        let regions: BTreeSet<String> = regions.into_iter().filter(|region| !region.is_empty()).collect();
        self.replicated_to = (!regions.is_empty()).then(|| Arc::new(regions));
        self
    }

    /// Whether machines in a region can start from it.
    #[must_use]
    pub fn is_in(&self, region: &str) -> bool {
        self.region.as_deref().is_none_or(|own| own == region)
            && self.replicated_to.as_ref().is_none_or(|regions| regions.contains(region))
    }

    /// The region, for people.
    #[must_use]
    pub fn location(&self) -> &str {
        self.region.as_deref().unwrap_or("every region")
    }
}

/// The default realm.
pub const PUBLIC: &str = "public";

/// Text from a source, escaped and bounded.
#[must_use]
pub fn text(text: &str) -> String {
    beginning(text, LONGEST)
}

/// Normalizes values of clouds: `x86_64` and `x64` become `amd64`, `V2` becomes `gen2`. Others stay unchanged.
#[must_use]
pub fn spelled(value: &str) -> String {
    const SPELLINGS: [(&str, &[&str]); 6] = [
        ("amd64", &["x86_64", "x86-64", "x64"]),
        ("arm64", &["aarch64"]),
        ("gen1", &["v1"]),
        ("gen2", &["v2"]),
        ("legacy-bios", &["bios", "legacy"]),
        ("uefi", &["efi"]),
    ];
    let lower = value.to_ascii_lowercase();
    match SPELLINGS.iter().find(|(_, others)| others.contains(&lower.as_str())) {
        Some((ours, _)) => (*ours).to_owned(),
        None if SPELLINGS.iter().any(|(ours, _)| *ours == lower) => lower,
        None => text(value),
    }
}

/// The fact behind a capability of a profile, because operators choose the names of capabilities.
fn fact_of(capability: &str) -> String {
    let bare: String = capability.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    match bare.as_str() {
        "bootmode" | "firmware" | "firmwaretype" | "boot" => fact::BOOT_MODE.to_owned(),
        "generation" | "hypervisortype" | "hypervgeneration" | "vmgeneration" | "hypervisor" => {
            fact::GENERATION.to_owned()
        }
        "secureboot" => fact::SECURE_BOOT.to_owned(),
        _ => capability.to_owned(),
    }
}

/// Converts facts to the capabilities of a profile. Unknown facts are omitted, which means every value.
///
/// # Errors
/// The error is the capability for which the profile defines none of the image's values, so that no machine could use
/// it.
pub fn capabilities(facts: &Capabilities, definitions: &[CapabilityDefinition]) -> Result<Capabilities, String> {
    let mut found = Capabilities::default();
    for definition in definitions {
        let fact = fact_of(&definition.name);
        // Operators call both facts a hypervisor type.
        let hypervisor = if fact == fact::GENERATION { facts.values(fact::HYPERVISOR) } else { None };
        let Some(known) = facts.values(&definition.name).or_else(|| facts.values(&fact)).or(hypervisor) else {
            continue;
        };
        let has = |value: &&String| known.iter().any(|known| has_value(known, value));
        let values: Vec<String> = definition.values.iter().filter(has).cloned().collect();
        if values.is_empty() {
            return Err(definition.name.clone());
        }
        found.0.insert(definition.name.clone(), values);
    }
    Ok(found)
}

/// Whether the value of a fact is that of a capability. Profiles name several kinds of virtual machines.
fn has_value(known: &str, capability: &str) -> bool {
    let is_bare_metal = ["baremetal", "bare-metal", "metal"].contains(&capability.to_ascii_lowercase().as_str());
    match known {
        fact::BARE_METAL if is_bare_metal => true,
        fact::VIRTUALIZED => !is_bare_metal,
        _ => known == capability || known == spelled(capability),
    }
}

/// Parses a time of a source: RFC 3339, or without a zone, which means UTC.
///
/// # Errors
/// If the text is not a time.
pub fn time(text: &str) -> Result<Timestamp, String> {
    let without_zone =
        || text.parse::<DateTime>().and_then(|time| time.to_zoned(TimeZone::UTC)).map(|zoned| zoned.timestamp());
    text.parse::<Timestamp>().or_else(|_| without_zone()).map_err(|_| format!("{:?} is no time", beginning(text, 40)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_become_the_capabilities_that_a_profile_defines() {
        let definition = |name: &str, values: &[&str]| CapabilityDefinition {
            name: name.to_owned(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        let facts =
            Capabilities::from_iter([("architecture", vec!["arm64"]), ("bootMode", vec!["uefi", "legacy-bios"])]);
        let definitions = [definition("architecture", &["amd64", "arm64"]), definition("firmware", &["uefi", "bios"])];
        let expected = Capabilities::from_iter([("architecture", vec!["arm64"]), ("firmware", vec!["uefi", "bios"])]);
        assert_eq!(capabilities(&facts, &definitions), Ok(expected));
        assert_eq!(capabilities(&facts, &[definition("architecture", &["amd64"])]), Err("architecture".to_owned()));
        assert_eq!(capabilities(&facts, &[definition("disk", &["nvme"])]), Ok(Capabilities::default()));
        for (name, values) in [("hypervisor", ["bare-metal", "kvm"]), ("hypervisorType", ["baremetal", "vm"])] {
            let of = |value: &str| {
                capabilities(&Capabilities::from_iter([("hypervisor", vec![value])]), &[definition(name, &values)])
            };
            let expected = |value: &str| Ok(Capabilities::from_iter([(name, vec![value])]));
            assert_eq!((of("baremetal"), of("virtualized")), (expected(values[0]), expected(values[1])));
        }
    }

    #[test]
    fn times_have_a_zone_or_are_utc() {
        assert_eq!(time("2026-01-02T15:04:05.000Z").unwrap(), time("2026-01-02T15:04:05").unwrap());
        assert_eq!(time("2026-13-02T15:04:05Z"), Err("\"2026-13-02T15:04:05Z\" is no time".to_owned()));
    }
}

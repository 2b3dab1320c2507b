//! What depends on a capability of a CloudProfile or on one of its values, and what breaks without it.
//!
//! The profile without it is computed: the definition, the lists of machine types and those of flavors lose it. A machine type
//! or flavor that has no other value is removed, and so is a version without flavors. The comparison of both profiles is the
//! answer.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value};

use super::diff::{CombinationChange, Effect, ProfileDiff, diff};
use super::document::{CORE_IMAGES, PROVIDER_IMAGES, objects_mut};
use super::lint::Settings;
use super::offered::Offer;
use super::profile::{Profile, ProfileError};
use super::resolution::Resolution;
use decisions::provider::Providers;
use wire::api::gardener::Capabilities;

/// A capability, or one of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedCapability<'c> {
    /// Its name.
    pub name: &'c str,
    /// The value; `None` for the whole capability.
    pub value: Option<&'c str>,
}

/// A version with flavors that list the capability.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListingVersion {
    /// Name of the image.
    pub image: String,
    /// The version.
    pub version: String,
    /// Number of its flavors that list it.
    pub listing: usize,
    /// Number of all flavors.
    pub flavors: usize,
}

/// The removal of a capability from a profile.
#[derive(Debug)]
pub struct CapabilityRemoval<'c> {
    capability: NamedCapability<'c>,
    offer: Offer,
    /// Machine types that list it.
    pub machine_types: Vec<String>,
    /// Versions with flavors that list it.
    pub versions: Vec<ListingVersion>,
    /// How the profile without it differs.
    pub diff: ProfileDiff,
}

/// The machines of a pool.
#[derive(Clone, Copy, Debug)]
pub struct PoolMachines<'p> {
    /// Region of the Shoot.
    pub region: &'p str,
    /// Machine type.
    pub machine_type: &'p str,
    /// Name of the image.
    pub image: &'p str,
    /// Version of the image.
    pub version: &'p str,
}

/// How a pool depends on a capability.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolDependence {
    /// Whether its machine type lists the capability.
    pub by_machine_type: bool,
    /// Whether the flavor that it uses lists the capability.
    pub by_flavor: bool,
    /// What happens to the pool without it.
    pub loss: Option<PoolLoss>,
}

/// What happens to a pool without a capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolLoss {
    /// Its machine type has no other value.
    MachineType,
    /// Its version has no other flavor.
    Version,
    /// Its new machines get another image, or none.
    Image(Effect),
}

impl PoolLoss {
    /// Text for tables.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::MachineType => "its machine type has to go",
            Self::Version => "its image version has to go",
            Self::Image(Effect::Vanishes) => "no image",
            Self::Image(Effect::AnotherImage) => "new nodes get another image",
            Self::Image(Effect::OtherMachine) => "new machines differ",
            Self::Image(Effect::Appears | Effect::AppearsForExisting) => "an image",
        }
    }
}

impl NamedCapability<'_> {
    fn is_listed(&self, capabilities: &Capabilities) -> bool {
        let values = capabilities.values(self.name);
        values.is_some_and(|values| self.value.is_none_or(|value| values.iter().any(|listed| listed == value)))
    }

    /// The profile, or NamespacedCloudProfile, without it.
    #[must_use]
    pub fn removed_from(&self, document: &Value) -> Value {
        let mut document = document.clone();
        self.remove_definition(&mut document);
        if let Some(types) = document.pointer_mut("/spec/machineTypes").and_then(Value::as_array_mut) {
            types.retain_mut(|machine_type| match machine_type.get_mut("capabilities") {
                Some(Value::Object(capabilities)) => self.remove_from(capabilities),
                _ => true,
            });
        }
        self.remove_from_versions(&mut document, CORE_IMAGES, |flavor| Some(flavor));
        self.remove_from_versions(&mut document, PROVIDER_IMAGES, |flavor| flavor.get_mut("capabilities"));
        document
    }

    fn remove_definition(&self, document: &mut Value) {
        let definitions = document.pointer_mut("/spec/machineCapabilities").and_then(Value::as_array_mut);
        let Some(definitions) = definitions else { return };
        definitions.retain_mut(|definition| {
            if definition["name"] != self.name {
                return true;
            }
            match (self.value, definition.get_mut("values").and_then(Value::as_array_mut)) {
                (Some(value), Some(values)) => {
                    values.retain(|known| *known != value);
                    !values.is_empty()
                }
                _ => false,
            }
        });
    }

    /// Removes it from the lists of a machine type or flavor. Returns whether another value is left.
    fn remove_from(&self, capabilities: &mut Map<String, Value>) -> bool {
        let Some(value) = self.value else {
            capabilities.remove(self.name);
            return true;
        };
        let Some(values) = capabilities.get_mut(self.name).and_then(Value::as_array_mut) else { return true };
        let is_listed = values.iter().any(|known| *known == value);
        values.retain(|known| *known != value);
        !(is_listed && values.is_empty())
    }

    fn remove_from_versions(
        &self,
        document: &mut Value,
        images: &str,
        capabilities_of: fn(&mut Value) -> Option<&mut Value>,
    ) {
        for image in objects_mut(document, images) {
            let Some(versions) = image.get_mut("versions").and_then(Value::as_array_mut) else { continue };
            versions.retain_mut(|version| {
                let Some(flavors) = version.get_mut("capabilityFlavors").and_then(Value::as_array_mut) else {
                    return true;
                };
                let before = flavors.len();
                flavors.retain_mut(|flavor| match capabilities_of(flavor) {
                    Some(Value::Object(capabilities)) => self.remove_from(capabilities),
                    _ => true,
                });
                before == 0 || !flavors.is_empty()
            });
        }
    }
}

impl<'c> CapabilityRemoval<'c> {
    /// Removes a capability from a CloudProfile.
    ///
    /// # Errors
    /// If the profile can't be read.
    pub fn of(
        profile: &Value,
        capability: NamedCapability<'c>,
        settings: Settings,
        providers: Providers,
    ) -> Result<Self, ProfileError> {
        Self::between(profile, &capability.removed_from(profile), capability, settings, providers)
    }

    /// Compares a profile with the same without the capability.
    ///
    /// # Errors
    /// If one of them can't be read.
    pub fn between(
        profile: &Value,
        without: &Value,
        capability: NamedCapability<'c>,
        settings: Settings,
        providers: Providers,
    ) -> Result<Self, ProfileError> {
        let diff = diff(profile, without, settings, providers)?;
        let profile = Profile::read_completed(profile.clone(), providers)?;
        let types = profile.spec.machine_types.iter().filter(|known| capability.is_listed(&known.capabilities));
        let machine_types = types.map(|machine_type| machine_type.name.clone()).collect();
        let offer = profile.offer(settings.now);
        let versions = listing_versions(&offer, capability);
        Ok(Self { capability, offer, machine_types, versions, diff })
    }

    /// How pools depend on the capability.
    #[must_use]
    pub fn pools(&self, pools: &[PoolMachines<'_>]) -> Vec<PoolDependence> {
        let resolution = Resolution::of(&self.offer);
        pools.iter().map(|pool| self.pool(&resolution, *pool)).collect()
    }

    fn pool(&self, resolution: &Resolution<'_>, pool: PoolMachines<'_>) -> PoolDependence {
        PoolDependence {
            by_machine_type: self.machine_types.iter().any(|name| name == pool.machine_type),
            by_flavor: self.uses_listing_flavor(resolution, pool),
            loss: self.loss(pool),
        }
    }

    fn uses_listing_flavor(&self, resolution: &Resolution<'_>, pool: PoolMachines<'_>) -> bool {
        let group = resolution.types().find(|(known, _)| known.name == pool.machine_type).map(|(_, group)| group);
        let Some(group) = group else { return false };
        let mut versions = resolution.versions().iter();
        let version = versions.find(|known| known.offered.image == pool.image && known.offered.version == pool.version);
        let Some(version) = version else { return false };
        let is_there = |regions: &[&str]| regions.is_empty() || regions.contains(&pool.region);
        let available = version.availability.iter().find(|available| is_there(&available.regions));
        let chosen = available.and_then(|available| resolution.chosen(group, available));
        let flavor = chosen.and_then(|chosen| version.offered.flavors.get(chosen));
        flavor.is_some_and(|flavor| self.capability.is_listed(&flavor.capabilities))
    }

    fn loss(&self, pool: PoolMachines<'_>) -> Option<PoolLoss> {
        if self.diff.machine_types.removed.iter().any(|name| name == pool.machine_type) {
            return Some(PoolLoss::MachineType);
        }
        let mut versions = self.diff.versions.iter();
        if versions.any(|known| known.after.is_none() && known.image == pool.image && known.version == pool.version) {
            return Some(PoolLoss::Version);
        }
        let is_meant = |change: &&CombinationChange| {
            change.image == pool.image
                && change.version == pool.version
                && change.machine_types.iter().any(|name| name == pool.machine_type)
                && (change.regions.is_empty() || change.regions.iter().any(|region| region == pool.region))
        };
        let change = self.diff.combinations.iter().find(is_meant)?;
        change.effect.takes_something().then_some(PoolLoss::Image(change.effect))
    }
}

fn listing_versions(offer: &Offer, capability: NamedCapability<'_>) -> Vec<ListingVersion> {
    let listing = |version: &super::offered::OfferedVersion| {
        let flavors: BTreeSet<&Capabilities> = version.flavors.iter().map(|flavor| &flavor.capabilities).collect();
        let flavors = if flavors.is_empty() { version.admitted.iter().collect() } else { flavors };
        let listing = flavors.iter().filter(|flavor| capability.is_listed(flavor)).count();
        (listing > 0).then(|| ListingVersion {
            image: version.image.clone(),
            version: version.version.clone(),
            listing,
            flavors: flavors.len(),
        })
    };
    offer.images.iter().filter_map(listing).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn removes_values_and_what_has_no_other() {
        let profile = json!({"spec": {
            "machineCapabilities": [{"name": "a", "values": ["x", "y"]}, {"name": "b", "values": ["z"]}],
            "machineTypes": [
                {"name": "m", "capabilities": {"a": ["x", "y"]}}, {"name": "n", "capabilities": {"a": ["x"]}},
                {"name": "none", "capabilities": {"a": []}}, {"name": "all"},
            ],
            "machineImages": [{"name": "os", "versions": [
                {"version": "1", "capabilityFlavors": [{"a": ["x"]}]},
                {"version": "2", "capabilityFlavors": [{"a": ["x"]}, {"a": ["y"], "b": ["z"]}]},
                {"version": "3"},
            ]}],
            "providerConfig": {"machineImages": [{"name": "os", "versions": [
                {"version": "2", "capabilityFlavors": [{"capabilities": {"a": ["x"]}, "urn": "u"}, {"capabilities": {"a": ["x", "y"]}}]},
            ]}]},
        }});
        let value = NamedCapability { name: "a", value: Some("x") }.removed_from(&profile);
        assert_eq!(value["spec"]["machineCapabilities"][0]["values"], json!(["y"]));
        let names: Vec<&Value> =
            value["spec"]["machineTypes"].as_array().unwrap().iter().map(|known| &known["name"]).collect();
        assert_eq!(names, ["m", "none", "all"]);
        let versions = &value["spec"]["machineImages"][0]["versions"];
        assert_eq!(
            *versions,
            json!([{"version": "2", "capabilityFlavors": [{"a": ["y"], "b": ["z"]}]}, {"version": "3"}])
        );
        let flavors = &value["spec"]["providerConfig"]["machineImages"][0]["versions"][0]["capabilityFlavors"];
        assert_eq!(*flavors, json!([{"capabilities": {"a": ["y"]}}]));
        let whole = NamedCapability { name: "a", value: None }.removed_from(&profile);
        assert_eq!(whole["spec"]["machineCapabilities"], json!([{"name": "b", "values": ["z"]}]));
        assert_eq!(whole["spec"]["machineTypes"].as_array().unwrap().len(), 4);
        let last = NamedCapability { name: "b", value: Some("z") }.removed_from(&profile);
        assert_eq!(last["spec"]["machineCapabilities"].as_array().unwrap().len(), 1, "a capability needs a value");
    }
}

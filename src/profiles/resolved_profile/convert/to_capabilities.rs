//! Converts the old format to capabilities.
//!
//! No version is removed, because Shoots use it. A version with a suffix keeps its name, and its flavors get the
//! capability that the suffix denotes. The version without the suffix also gets these flavors, after its own, so
//! that machine types that can't run its own image have one there, too.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::type_decision::TypeDecision;
use super::{Before, Conversion, ConvertError, Knowledge, Undecided};
use crate::resolved_profile::document::{
    CORE_IMAGES, PROVIDER_IMAGES, append_regions, each_version_mut, flavors, objects, objects_mut, region_names,
    regions, text, versions, without_capabilities,
};
use crate::resolved_profile::equivalence::{Difference, EquivalenceCheck, Lost};
use crate::resolved_profile::lint::some_of;
use crate::resolved_profile::suffix::{SuffixMeaning, meaning_of, suffix_of};
use decisions::provider::Providers;
use decisions::provider::profile::Members;
use decisions::provider::profile::old_format::{capabilities_of, set_capabilities};
use wire::api::gardener::{Capabilities, CapabilityDefinition};
use wire::capabilities::{ARCHITECTURE, ARCHITECTURES, DEFAULT_ARCHITECTURE, are_equal, mean_the_same};

/// The flavors by version, for one image entry of the provider's half.
type FlavorsOfVersion = Vec<(String, Vec<Members>)>;

/// The state of a conversion.
struct ToCapabilities<'a> {
    before: &'a Before,
    knowledge: &'a Knowledge,
    /// Images whose versions with and without a suffix are kept separate.
    apart: &'a BTreeSet<String>,
    /// Capabilities that suffixes denote, with their values in order of preference.
    of_suffixes: Vec<CapabilityDefinition>,
    /// The architectures of flavors in versions with a suffix.
    suffixed: BTreeSet<String>,
    undecided: Vec<Undecided>,
}

pub(super) fn convert(
    before: &Before,
    knowledge: &Knowledge,
    providers: Providers,
) -> Result<Conversion, ConvertError> {
    let mut apart = BTreeSet::new();
    loop {
        let mut conversion = ToCapabilities {
            before,
            knowledge,
            apart: &apart,
            of_suffixes: Vec::new(),
            suffixed: BTreeSet::new(),
            undecided: Vec::new(),
        };
        let document = conversion.document();
        let undecided = std::mem::take(&mut conversion.undecided);
        check_decisions(&document, &knowledge.machine_types)?;
        let check = before.check(&document, providers)?;
        let sorted = SortedDifferences::of(check, &knowledge.machine_types);
        if sorted.unexpected.is_equal() {
            let SortedDifferences { intended, given_up, unexpected } = sorted;
            before.check_refusals(&document, providers)?;
            return Ok(Conversion { profile: document, undecided, intended, given_up, proof: unexpected });
        }
        // If a version and its variant can't be merged, they are kept separate.
        let known = apart.len();
        apart.extend(sorted.unexpected.differences.iter().map(|difference| difference.image.clone()));
        if apart.len() == known {
            return Err(ConvertError::NotEquivalent(Box::new(sorted.unexpected)));
        }
    }
}

fn check_decisions(document: &Value, decisions: &[TypeDecision]) -> Result<(), ConvertError> {
    let defined: Vec<&str> =
        objects(document, "/spec/machineCapabilities").map(|definition| text(definition, "name")).collect();
    match decisions.iter().find(|decision| !defined.contains(&decision.capability.as_str())) {
        Some(decision) => Err(ConvertError::UnknownCapability(decision.capability.clone())),
        None => Ok(()),
    }
}

impl ToCapabilities<'_> {
    fn document(&mut self) -> Value {
        let mut document = self.before.profile.document.clone();
        let listed: Vec<(String, FlavorsOfVersion)> = objects(&document, PROVIDER_IMAGES)
            .map(|image| (text(image, "name").to_owned(), self.flavors_of_image(image)))
            .collect();
        let mut with_suffixes = |(image, versions): (String, _)| (image.clone(), self.with_suffixes(&image, versions));
        let listed: Vec<(String, FlavorsOfVersion)> = listed.into_iter().map(&mut with_suffixes).collect();
        let definitions = self.definitions(&listed);
        self.write_machine_types(&mut document);
        self.write_core_images(&mut document, &listed);
        for (image, (_, versions)) in objects_mut(&mut document, PROVIDER_IMAGES).zip(listed) {
            let versions = versions.into_iter().map(|(version, flavors)| {
                let flavors: Vec<Value> = flavors.into_iter().map(Value::from).collect();
                json!({"version": version, "capabilityFlavors": flavors})
            });
            image.insert("versions".to_owned(), versions.collect());
        }
        let format = self.before.profile.format;
        if let Some(config) = document.pointer_mut("/spec/providerConfig").and_then(Value::as_object_mut) {
            format.set_machine_types_of_old_format(config, &[]);
        }
        if let Some(spec) = document.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert("machineCapabilities".to_owned(), json!(definitions));
        }
        document
    }

    /// The flavors of every version of an image entry. Several entries of a version are merged.
    fn flavors_of_image(&self, image: &Members) -> FlavorsOfVersion {
        let mut of_versions: FlavorsOfVersion = Vec::new();
        for version in versions(image) {
            let name = text(version, "version");
            let listed = flavors(version);
            let format = self.before.profile.format;
            let flavors = if listed.is_empty() {
                format.flavors_of_old_format(
                    version,
                    &self.before.resolved_profile.architectures_of(text(image, "name"), name),
                )
            } else {
                listed
            };
            match of_versions.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) if format.first_entry_counts() => add_regions(known, flavors),
                Some((_, known)) => known.extend(flavors),
                None => of_versions.push((name.to_owned(), flavors)),
            }
        }
        of_versions
    }

    /// The versions of an image with the capabilities that their suffixes denote.
    fn with_suffixes(&mut self, image: &str, mut listed: FlavorsOfVersion) -> FlavorsOfVersion {
        let names: Vec<String> = listed.iter().map(|(version, _)| version.clone()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut unknown: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (position, name) in names.iter().enumerate() {
            let Some((base, suffix)) = suffix_of(name, &names) else { continue };
            let Some(meaning) = self.usable_meaning(suffix) else {
                unknown.entry(suffix).or_default().push(name);
                continue;
            };
            self.define(&meaning);
            let Some((_, variants)) = listed.get_mut(position) else { continue };
            variants.iter_mut().for_each(|flavor| name_value(flavor, &meaning.capability, &meaning.value));
            let mut variants = variants.clone();
            self.suffixed.extend(variants.iter().flat_map(architectures));
            let base = names.iter().position(|known| *known == base).and_then(|base| listed.get_mut(base));
            let Some((_, own)) = base else { continue };
            // Flavors without an image in any region would only make machine types admissible for the version without
            // the suffix.
            variants.retain(|flavor| self.is_somewhere(flavor));
            let declared = &self.before.profile.spec.machine_capabilities;
            if self.apart.contains(image) || !join(own, &variants, &meaning, declared) {
                self.undecided.push(Undecided {
                    subject: format!("{image} {name}"),
                    open: "It stays a version of its own: together with the version without its suffix, machine types would \
                           get another image."
                        .to_owned(),
                    advice: "Decide what machine types can do (--decide), or make the two agree by hand.".to_owned(),
                });
            }
        }
        for (suffix, versions) in unknown {
            self.undecided.push(Undecided {
                subject: format!("{image}: {}", some_of(versions)),
                open: format!("No rule explains what the suffix -{suffix} means; the versions stay as they are."),
                advice: format!("Decide it: --suffix {suffix}=CAPABILITY:VALUE/VALUE_WITHOUT."),
            });
        }
        listed
    }

    /// Whether a flavor has an image in a region of the profile.
    fn is_somewhere(&self, flavor: &Members) -> bool {
        let known = &self.before.profile.spec.regions;
        !flavor.contains_key("regions")
            || region_names(flavor).iter().any(|region| known.iter().any(|known| region == known.name.as_str()))
    }

    /// The meaning of a suffix, if the profile can express it: a profile with capabilities must define this one.
    fn usable_meaning(&self, suffix: &str) -> Option<SuffixMeaning> {
        let meaning = meaning_of(suffix, &self.knowledge.suffixes)?;
        let declared = &self.before.profile.spec.machine_capabilities;
        let has = |value: &String| {
            declared.iter().any(|known| known.name == meaning.capability && known.values.contains(value))
        };
        (declared.is_empty() || (has(&meaning.value) && has(&meaning.without))).then_some(meaning)
    }

    /// The value of the version without the suffix is preferred, so that nothing changes for machine types without a
    /// decision.
    fn define(&mut self, meaning: &SuffixMeaning) {
        if meaning.capability == ARCHITECTURE {
            return;
        }
        let known = self.of_suffixes.iter().position(|known| known.name == meaning.capability);
        let position = known.unwrap_or_else(|| {
            self.of_suffixes.push(CapabilityDefinition { name: meaning.capability.clone(), values: Vec::new() });
            self.of_suffixes.len() - 1
        });
        let Some(definition) = self.of_suffixes.get_mut(position) else { return };
        for value in [&meaning.without, &meaning.value] {
            if !definition.values.contains(value) {
                definition.values.push(value.clone());
            }
        }
    }

    /// Architectures in use, capabilities of suffixes, other capabilities of the old format, and values from decisions.
    fn definitions(&self, listed: &[(String, FlavorsOfVersion)]) -> Vec<CapabilityDefinition> {
        let declared = &self.before.profile.spec.machine_capabilities;
        if !declared.is_empty() {
            return declared.clone();
        }
        let of_flavors = listed.iter().flat_map(|(_, versions)| versions).flat_map(|(_, flavors)| flavors);
        let of_flavors = of_flavors.map(capabilities_of);
        let of_types = self.before.profile.spec.machine_types.iter();
        let used: BTreeSet<String> = of_flavors
            .flat_map(|capabilities| capabilities.values(ARCHITECTURE).unwrap_or_default().to_vec())
            .chain(of_types.map(|known| known.architecture.clone().unwrap_or_else(|| DEFAULT_ARCHITECTURE.to_owned())))
            .collect();
        let architectures =
            ARCHITECTURES.iter().filter(|known| used.contains(**known)).map(|known| (*known).to_owned());
        let mut definitions =
            vec![CapabilityDefinition { name: ARCHITECTURE.to_owned(), values: architectures.collect() }];
        definitions.extend(self.of_suffixes.clone());
        let of_provider = self.before.profile.format.old_format_definitions();
        definitions.extend(of_provider.into_iter().filter(|known| known.name != ARCHITECTURE));
        for decision in &self.knowledge.machine_types {
            if let Some(known) = definitions.iter_mut().find(|known| known.name == decision.capability) {
                let new = decision.values.iter().filter(|value| !known.values.contains(value)).cloned();
                let new: Vec<String> = new.collect();
                known.values.extend(new);
            }
        }
        definitions
    }

    fn write_machine_types(&mut self, document: &mut Value) {
        let profile = &self.before.profile;
        let config = profile.document.pointer("/spec/providerConfig").unwrap_or(&Value::Null);
        let was_old = profile.spec.machine_capabilities.is_empty();
        let mut open: Vec<String> = Vec::new();
        for machine_type in objects_mut(document, "/spec/machineTypes") {
            let name = text(machine_type, "name").to_owned();
            let field = machine_type.remove(ARCHITECTURE).and_then(|field| field.as_str().map(str::to_owned));
            let mut capabilities: Capabilities = capabilities_of(machine_type);
            if was_old {
                let architecture = field.unwrap_or_else(|| DEFAULT_ARCHITECTURE.to_owned());
                capabilities.0.entry(ARCHITECTURE.to_owned()).or_insert_with(|| vec![architecture]);
                capabilities.0.extend(profile.format.machine_type_of_old_format(config, &name).0);
            }
            let decided = self.knowledge.machine_types.iter().filter(|decision| decision.is_about(&name));
            for decision in decided {
                capabilities.0.insert(decision.capability.clone(), decision.values.clone());
            }
            let architecture = capabilities.values(ARCHITECTURE).unwrap_or_default();
            let is_open = self.of_suffixes.iter().any(|definition| capabilities.values(&definition.name).is_none());
            if is_open && architecture.iter().any(|architecture| self.suffixed.contains(architecture)) {
                open.push(name);
            }
            set_capabilities(machine_type, &capabilities);
        }
        for definition in &self.of_suffixes {
            if let (Some(first), false) = (definition.values.first(), open.is_empty()) {
                self.undecided.push(Undecided {
                    subject: some_of(open.iter().map(String::as_str)),
                    open: format!(
                        "The profile does not define which {} they have; assumed: every value; where several images fit, those for {first}.",
                        definition.name
                    ),
                    advice: format!("Decide it: --decide 'TYPES={}:{}'.", definition.name, definition.values.join(",")),
                });
            }
        }
    }

    fn write_core_images(&mut self, document: &mut Value, listed: &[(String, FlavorsOfVersion)]) {
        let mut missing = Vec::new();
        each_version_mut(document, CORE_IMAGES, |name, version| {
            let title = text(version, "version");
            let of_image = listed.iter().filter(|(image, _)| image == name).flat_map(|(_, versions)| versions);
            let Some((_, flavors)) = of_image.into_iter().find(|(version, _)| version == title) else {
                missing.push(format!("{name} {title}"));
                return;
            };
            let flavors: Vec<Capabilities> = flavors.iter().map(capabilities_of).collect();
            version.remove("architectures");
            version.insert("capabilityFlavors".to_owned(), json!(flavors));
        });
        if !missing.is_empty() {
            self.undecided.push(Undecided {
                subject: some_of(missing.iter().map(String::as_str)),
                open: "spec.providerConfig has no image for it, so no pool can have it, before and after.".to_owned(),
                advice: "Add the image, or remove the version.".to_owned(),
            });
        }
    }
}

/// Adds the flavors of a later entry, but only for regions without an image in earlier entries.
fn add_regions(known: &mut Vec<Members>, later: Vec<Members>) {
    let taken: Vec<Value> = known.iter().flat_map(region_names).collect();
    for mut flavor in later {
        if let Some(regions) = flavor.get_mut("regions").and_then(Value::as_array_mut) {
            regions.retain(|region| !taken.contains(&region["name"]));
        }
        if region_names(&flavor).is_empty() {
            continue;
        }
        match known.iter_mut().find(|known| capabilities_of(known) == capabilities_of(&flavor)) {
            Some(known) => append_regions(known, &mut flavor),
            None => known.push(flavor),
        }
    }
}

/// Appends the variants to a version's own flavors. If both have a flavor for an architecture, the own one gets the
/// value that the missing suffix denotes. A variant for another architecture is added only if the suffix denotes
/// the architecture. Returns whether the version then has all images.
fn join(
    own: &mut Vec<Members>,
    variants: &[Members],
    meaning: &SuffixMeaning,
    declared: &[CapabilityDefinition],
) -> bool {
    let by_architecture = meaning.capability == ARCHITECTURE;
    let mut joined = Vec::new();
    for variant in variants {
        let meets = |flavor: &&mut Members| architectures(flavor) == architectures(variant);
        let mut met = false;
        for flavor in own.iter_mut().filter(meets) {
            met = true;
            if !by_architecture && capabilities_of(flavor).values(&meaning.capability).is_none() {
                name_value(flavor, &meaning.capability, &meaning.without);
            }
        }
        if met != by_architecture {
            joined.push(variant.clone());
        }
    }
    let mut has_all = true;
    for variant in joined {
        has_all &= add_variant(own, variant, declared);
    }
    has_all
}

/// Adds a variant to the flavors of a version. If a flavor for the same machines exists, nothing could decide between
/// the two, so the variant only adds regions without an image. Returns whether the version then has all images of the
/// variant.
fn add_variant(own: &mut Vec<Members>, mut variant: Members, declared: &[CapabilityDefinition]) -> bool {
    let capabilities = capabilities_of(&variant);
    let is_same = |known: &Members| {
        let known = capabilities_of(known);
        if declared.is_empty() {
            are_equal(&known, &capabilities)
        } else {
            mean_the_same(&known, &capabilities, declared)
        }
    };
    let same: Vec<&Members> = own.iter().filter(|known| is_same(known)).collect();
    if same.is_empty() {
        own.push(variant);
        return true;
    }
    if same.iter().any(|known| without_capabilities(known) == without_capabilities(&variant)) {
        return true;
    }
    if !same.iter().all(|known| is_only_regional(known)) || !is_only_regional(&variant) {
        return false;
    }
    let known: Vec<Value> = same.iter().flat_map(|known| regions(known)).collect();
    let mut has_all = true;
    if let Some(Value::Array(regions)) = variant.get_mut("regions") {
        regions.retain(|region| !known.contains(region));
        let more = regions.len();
        regions.retain(|region| known.iter().all(|known| known["name"] != region["name"]));
        has_all = regions.len() == more;
    }
    if let Some(known) = own.iter_mut().find(|known| is_same(known)) {
        append_regions(known, &mut variant);
    }
    has_all
}

/// Whether a flavor has only images for regions.
fn is_only_regional(flavor: &Members) -> bool {
    flavor.contains_key("regions") && flavor.keys().all(|member| member == "capabilities" || member == "regions")
}

fn architectures(flavor: &Members) -> Vec<String> {
    capabilities_of(flavor).0.remove(ARCHITECTURE).unwrap_or_default()
}

/// Sets the value of a capability in a flavor that does not set it.
fn name_value(flavor: &mut Members, capability: &str, value: &str) {
    let mut capabilities = capabilities_of(flavor);
    capabilities.0.entry(capability.to_owned()).or_insert_with(|| vec![value.to_owned()]);
    set_capabilities(flavor, &capabilities);
}

/// The result of a comparison, split into intended and unexpected differences.
struct SortedDifferences {
    intended: Vec<Difference>,
    given_up: Vec<Lost>,
    /// The remaining comparison, which should be equal.
    unexpected: EquivalenceCheck,
}

impl SortedDifferences {
    fn of(mut check: EquivalenceCheck, decisions: &[TypeDecision]) -> Self {
        let decided =
            |names: &[String]| names.iter().all(|name| decisions.iter().any(|decision| decision.is_about(name)));
        let differences = std::mem::take(&mut check.differences);
        let (intended, differences) = differences.into_iter().partition(|difference: &Difference| {
            // A combination that did not exist before is a gain.
            let had = difference.before.image.is_some() && difference.before.admitted;
            !had || decided(&difference.machine_types)
        });
        let lost = std::mem::take(&mut check.lost);
        let (given_up, lost) = lost.into_iter().partition(|lost: &Lost| decided(&lost.machine_types));
        Self { intended, given_up, unexpected: EquivalenceCheck { differences, lost, ..check } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Joins a version with one flavor and a variant. Returns its flavors, and whether it has all images of the
    /// variant.
    fn with_variant(own: &Value, variant: &Value) -> (Value, bool) {
        let definition = |name: &str, values: [&str; 2]| CapabilityDefinition {
            name: name.to_owned(),
            values: values.map(str::to_owned).to_vec(),
        };
        let declared = [definition(ARCHITECTURE, ["amd64", "arm64"]), definition("boot", ["uefi", "bios"])];
        let members = |flavor: &Value| flavor.as_object().cloned().unwrap();
        let mut flavors = vec![members(own)];
        let has_all = add_variant(&mut flavors, members(variant), &declared);
        (json!(flavors), has_all)
    }

    #[test]
    fn a_flavor_for_the_same_machines_is_not_added_again() {
        let one = json!({"capabilities": {"architecture": ["amd64"], "boot": ["bios", "uefi"]}, "urn": "a"});
        let mut short = json!({"capabilities": {"architecture": ["amd64"]}, "urn": "a"});
        assert_eq!(with_variant(&one, &short), (json!([one]), true), "absent means every value");
        short["urn"] = "b".into();
        assert_eq!(with_variant(&one, &short), (json!([one]), false), "nothing would decide between the two");
        short["capabilities"]["boot"] = json!(["uefi"]);
        assert_eq!(with_variant(&one, &short), (json!([one, short]), true));
    }

    #[test]
    fn regions_that_a_flavor_for_the_same_machines_lacks_are_added_to_it() {
        let flavor = |regions: &[(&str, &str)]| {
            let regions: Vec<Value> = regions.iter().map(|(name, ami)| json!({"name": name, "ami": ami})).collect();
            json!({"capabilities": {"architecture": ["amd64"]}, "regions": regions})
        };
        let own = flavor(&[("north", "a"), ("south", "b")]);
        for (variant, regions, has_all) in [
            (flavor(&[("south", "b")]), vec![("north", "a"), ("south", "b")], true),
            (flavor(&[("south", "b"), ("west", "c")]), vec![("north", "a"), ("south", "b"), ("west", "c")], true),
            (flavor(&[("south", "x"), ("west", "c")]), vec![("north", "a"), ("south", "b"), ("west", "c")], false),
        ] {
            assert_eq!(with_variant(&own, &variant), (json!([flavor(&regions)]), has_all), "{variant}");
        }
    }
}

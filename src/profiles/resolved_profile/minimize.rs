//! Writes the same profile in fewer bytes: removes values that are defaults and merges flavors with the same image.
//!
//! Every step is tried, and kept only if every machine type gets the same as before. The same must be true for every
//! machine that the profile's capabilities can describe, unless there are too many.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::document::{
    CORE_IMAGES, PROVIDER_IMAGES, each_version_mut, flavors, objects, objects_mut, text, title, versions,
    without_capabilities, without_status,
};
use super::equivalence::{EquivalenceCheck, compare};
use super::lint::stored_bytes;
use super::profile::{Profile, ProfileError, spec_of};
use super::resolution::Resolution;
use super::selectable::{ResolvedProfile, SelectableType};
use crate::cloud_profile::architecture_fields::{apply_defaults, sync_architectures};
use decisions::provider::Providers;
use decisions::provider::profile::old_format::{capabilities_of, set_capabilities};
use decisions::provider::profile::{Members, ProfileFormat};
use wire::api::gardener::{Capabilities, CapabilityDefinition};
use wire::capabilities::{ARCHITECTURE, DEFAULT_ARCHITECTURE, best_flavor, with_defaults};

/// Maximum number of describable machines to compare.
const MAX_MACHINES: usize = 512;

/// A minimized profile.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Minimized {
    /// The minimized profile.
    pub profile: Value,
    /// The applied steps, with the bytes that each one saves in the file.
    pub steps: Vec<Saved>,
    /// Size of the file's object, before and after.
    pub bytes: Bytes,
    /// Size of the stored object, in which the API server sets defaults again.
    pub stored: Bytes,
    /// Whether all machines that the capabilities can describe were compared, and not only the machine types of the
    /// profile.
    pub every_machine: bool,
    /// The comparison that proves that both are equal.
    pub proof: EquivalenceCheck,
}

/// A step that saved bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Saved {
    /// Description of the step.
    pub step: &'static str,
    /// Number of saved bytes.
    pub bytes: usize,
}

/// Sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bytes {
    /// Size before.
    pub before: usize,
    /// Size after.
    pub after: usize,
}

/// A way to save bytes, which can be tried on any profile.
type Step = fn(&mut Value, &Baseline);

/// All steps, in the order in which they are tried.
const STEPS: [(&str, Step); 6] = [
    ("left out members that are empty or null", leave_out_empty),
    ("left out what the API server fills in", leave_out_defaults),
    ("left out capabilities with every value", leave_out_every_value),
    ("folded flavors of one image", fold_flavors),
    ("left out what the provider takes for granted", leave_out_provider_defaults),
    ("left out regions that are listed twice", leave_out_repeated_regions),
];

/// Minimizes a profile.
///
/// # Errors
/// If the profile can't be read.
pub fn minimize(document: &Value, providers: Providers) -> Result<Minimized, ProfileError> {
    let document = without_status(document);
    let before = Baseline::of(&document, providers)?;
    let mut shorter = document.clone();
    let mut steps = Vec::new();
    for (step, apply) in STEPS {
        let mut tried = shorter.clone();
        apply(&mut tried, &before);
        let bytes = stored_bytes(&shorter).saturating_sub(stored_bytes(&tried));
        if bytes > 0 && before.is_same(&tried, providers) {
            shorter = tried;
            steps.push(Saved { step, bytes });
        }
    }
    let proof = before.check(&shorter, providers)?;
    Ok(Minimized {
        bytes: Bytes { before: stored_bytes(&document), after: stored_bytes(&shorter) },
        stored: Bytes { before: as_stored(&document)?, after: as_stored(&shorter)? },
        every_machine: before.every_machine,
        proof,
        profile: shorter,
        steps,
    })
}

/// The offer of the original profile to every compared machine.
struct Baseline {
    format: &'static dyn ProfileFormat,
    resolved_profile: ResolvedProfile,
    definitions: Vec<CapabilityDefinition>,
    machines: Vec<SelectableType>,
    every_machine: bool,
}

impl Baseline {
    fn of(document: &Value, providers: Providers) -> Result<Self, ProfileError> {
        let profile = Profile::read_completed(document.clone(), providers)?;
        let definitions = profile.spec.machine_capabilities.clone();
        let machines = every_machine(&definitions);
        let every_machine = machines.is_some();
        let machines = machines.unwrap_or_default();
        let mut resolved_profile = profile.resolved_profile(Timestamp::UNIX_EPOCH);
        resolved_profile.machine_types.extend(machines.clone());
        Ok(Self { format: profile.format, resolved_profile, definitions, machines, every_machine })
    }

    fn check(&self, document: &Value, providers: Providers) -> Result<EquivalenceCheck, ProfileError> {
        let mut after = Profile::read_completed(document.clone(), providers)?.resolved_profile(Timestamp::UNIX_EPOCH);
        after.machine_types.extend(self.machines.clone());
        let mut check = compare(&Resolution::of(&self.resolved_profile), &Resolution::of(&after));
        check.machine_types -= self.machines.len();
        Ok(check)
    }

    /// Whether every machine gets the same image from both lists of flavors, in every region that they list.
    fn is_same_choice(&self, before: &[Members], after: &[Members]) -> bool {
        let regions: BTreeSet<Option<&str>> = before.iter().flat_map(regions_of).collect();
        let machines = self.resolved_profile.machine_types.iter().map(|machine_type| &machine_type.capabilities);
        let distinct: BTreeSet<&BTreeMap<String, Vec<String>>> = machines.map(|capabilities| &capabilities.0).collect();
        let lists = regions.into_iter().map(|region| [before, after].map(|flavors| choosable(flavors, region)));
        let lists: Vec<_> = lists.collect();
        distinct.into_iter().all(|machine| {
            let machine = Capabilities(machine.clone());
            lists.iter().all(|[before, after]| {
                chosen(&machine, &self.definitions, before) == chosen(&machine, &self.definitions, after)
            })
        })
    }

    /// Whether the shorter document is readable and every machine gets the same images from it.
    fn is_same(&self, document: &Value, providers: Providers) -> bool {
        self.check(document, providers).is_ok_and(|check| check.is_equal())
    }
}

/// The regions that a flavor has images for; `None` if its image is the same in every region.
fn regions_of(flavor: &Members) -> Vec<Option<&str>> {
    match flavor.get("regions").and_then(Value::as_array) {
        Some(regions) => regions.iter().map(|region| region["name"].as_str()).collect(),
        None => vec![None],
    }
}

/// The flavors with an image in a region, split into capabilities and everything else.
fn choosable(flavors: &[Members], region: Option<&str>) -> Vec<(Capabilities, Members)> {
    let there = |flavor: &&Members| {
        let regions = regions_of(flavor);
        regions.contains(&None) || regions.contains(&region)
    };
    flavors.iter().filter(there).map(|flavor| (capabilities_of(flavor), without_capabilities(flavor))).collect()
}

fn chosen<'a>(
    machine: &Capabilities,
    definitions: &[CapabilityDefinition],
    flavors: &'a [(Capabilities, Members)],
) -> Option<&'a Members> {
    let chosen = best_flavor(machine, definitions, flavors, |(capabilities, _)| capabilities).ok()?;
    flavors.get(chosen).map(|(_, image)| image)
}

/// Every machine that the capabilities can describe; `None` if there are too many, or no capabilities are defined.
fn every_machine(definitions: &[CapabilityDefinition]) -> Option<Vec<SelectableType>> {
    if definitions.is_empty() {
        return None;
    }
    let mut machines = vec![Capabilities::default()];
    for definition in definitions {
        let subsets = 1_usize.checked_shl(u32::try_from(definition.values.len()).ok()?)?.checked_sub(1)?;
        if subsets.checked_mul(machines.len())? > MAX_MACHINES {
            return None;
        }
        let with = |machine: &Capabilities, subset: usize| {
            let values = definition.values.iter().enumerate().filter(|(position, _)| subset >> position & 1 == 1);
            let mut machine = machine.clone();
            machine.0.insert(definition.name.clone(), values.map(|(_, value)| value.clone()).collect());
            machine
        };
        machines = machines.iter().flat_map(|machine| (1..=subsets).map(move |subset| with(machine, subset))).collect();
    }
    let machine = |(number, capabilities): (usize, Capabilities)| SelectableType {
        // A name that no machine type in a profile can have.
        name: format!("any machine {number}"),
        architecture: capabilities.values(ARCHITECTURE).and_then(<[String]>::first).cloned().unwrap_or_default(),
        capabilities,
        ..SelectableType::default()
    };
    Some(machines.into_iter().enumerate().map(machine).collect())
}

/// Size of the stored profile: core's half with defaults, the provider's half unchanged.
fn as_stored(document: &Value) -> Result<usize, ProfileError> {
    let mut spec = spec_of(document)?;
    apply_defaults(&mut spec);
    let has_definitions = !spec.machine_capabilities.is_empty();
    sync_architectures(&mut spec, has_definitions);
    let mut stored = document.clone();
    stored["spec"] = json!(spec);
    if let Some(config) = document.pointer("/spec/providerConfig") {
        stored["spec"]["providerConfig"] = config.clone();
    }
    Ok(stored_bytes(&stored))
}

fn leave_out_empty(document: &mut Value, _: &Baseline) {
    const LISTS: [&str; 8] = [
        "architectures",
        "capabilityFlavors",
        "capabilities",
        "lifecycle",
        "regions",
        "unavailableMachineTypes",
        "unavailableVolumeTypes",
        "containerRuntimes",
    ];
    let is_empty = |name: &str, value: &Value| match value {
        Value::Null => true,
        Value::Array(items) => LISTS.contains(&name) && items.is_empty(),
        Value::Object(members) => LISTS.contains(&name) && members.is_empty(),
        _ => false,
    };
    each_object(document, &mut |members| members.retain(|name, value| !is_empty(name, value)));
}

fn leave_out_defaults(document: &mut Value, baseline: &Baseline) {
    let is_declared = !baseline.definitions.is_empty();
    remove_where(objects_mut(document, "/spec/volumeTypes"), "usable", |value| *value == true);
    remove_where(objects_mut(document, "/spec/machineTypes"), "usable", |value| *value == true);
    // With capabilities, these fields are set from them. Without, the default is amd64.
    let default = |value: &Value| is_declared || *value == DEFAULT_ARCHITECTURE;
    remove_where(objects_mut(document, "/spec/machineTypes"), ARCHITECTURE, default);
    remove_where(objects_mut(document, CORE_IMAGES), "updateStrategy", |value| *value == "major");
    each_version_mut(document, CORE_IMAGES, |_, version| {
        remove_where([&mut *version], "cri", |value| *value == json!([{"name": "containerd"}]));
        let default = |value: &Value| is_declared || *value == json!([DEFAULT_ARCHITECTURE]);
        remove_where([version], "architectures", default);
    });
}

fn leave_out_every_value(document: &mut Value, baseline: &Baseline) {
    let definitions = &baseline.definitions;
    if definitions.is_empty() {
        return;
    }
    let needs_architecture = baseline.format.needs_architecture();
    let shorten = |capabilities: &mut Capabilities, of_flavor: bool| {
        capabilities.0.retain(|name, values| {
            let mut seen = BTreeSet::new();
            values.retain(|value| seen.insert(value.clone()));
            let definition = definitions.iter().rfind(|definition| definition.name == *name);
            let is_every = |definition: &CapabilityDefinition| {
                definition.values.iter().all(|value| values.contains(value))
                    && values.iter().all(|value| definition.values.contains(value))
            };
            let is_needed = of_flavor && needs_architecture && name == ARCHITECTURE;
            is_needed || !definition.is_some_and(is_every)
        });
    };
    for machine_type in objects_mut(document, "/spec/machineTypes") {
        let mut capabilities = capabilities_of(machine_type);
        shorten(&mut capabilities, false);
        set_capabilities(machine_type, &capabilities);
    }
    each_flavor(document, &mut |flavors| {
        for flavor in flavors.iter_mut() {
            let mut capabilities = capabilities_of(flavor);
            shorten(&mut capabilities, true);
            set_capabilities(flavor, &capabilities);
        }
    });
}

/// Merges flavors of one image that differ in one capability into a flavor with the values of both.
fn fold_flavors(document: &mut Value, baseline: &Baseline) {
    if !baseline.definitions.is_empty() {
        each_flavor(document, &mut |flavors| while fold_two(flavors, baseline) {});
    }
}

/// Merges the first two flavors for which no machine's image changes. Returns whether it found any.
fn fold_two(flavors: &mut Vec<Members>, baseline: &Baseline) -> bool {
    for later in 1..flavors.len() {
        for earlier in 0..later {
            let (Some(a), Some(b)) = (flavors.get(earlier), flavors.get(later)) else { continue };
            if without_capabilities(a) != without_capabilities(b) {
                continue;
            }
            let Some(both) = folded(&capabilities_of(a), &capabilities_of(b), &baseline.definitions) else { continue };
            let mut tried = flavors.clone();
            if let Some(flavor) = tried.get_mut(earlier) {
                set_capabilities(flavor, &both);
            }
            tried.remove(later);
            if baseline.is_same_choice(flavors, &tried) {
                *flavors = tried;
                return true;
            }
        }
    }
    false
}

/// The combined capabilities of two flavors that differ in at most one. Flavors of different architectures are not
/// merged.
fn folded(a: &Capabilities, b: &Capabilities, definitions: &[CapabilityDefinition]) -> Option<Capabilities> {
    let [of_a, of_b] = [a, b].map(|side| with_defaults(side, definitions));
    let mut differing = of_a.0.iter().filter(|(name, values)| {
        let others = of_b.values(name).unwrap_or_default();
        !(values.iter().all(|value| others.contains(value)) && others.iter().all(|value| values.contains(value)))
    });
    let mut both = a.clone();
    let Some((name, _)) = differing.next() else { return Some(both) };
    if differing.next().is_some() || name == ARCHITECTURE {
        return None;
    }
    let definition = definitions.iter().rfind(|definition| definition.name == *name)?;
    let [of_a, of_b] = [&of_a, &of_b].map(|side| side.values(name).unwrap_or_default());
    let values: Vec<String> =
        definition.values.iter().filter(|value| of_a.contains(value) || of_b.contains(value)).cloned().collect();
    if values.len() == definition.values.len() {
        both.0.remove(name);
    } else {
        both.0.insert(name.clone(), values);
    }
    Some(both)
}

fn leave_out_provider_defaults(document: &mut Value, baseline: &Baseline) {
    let Some(config) = document.pointer_mut("/spec/providerConfig") else { return };
    each_object(config, &mut |members| members.retain(|name, value| !baseline.format.is_silent(name, value)));
}

/// If a region is listed twice, the last entry is used.
fn leave_out_repeated_regions(document: &mut Value, _: &Baseline) {
    let Some(images) = document.pointer_mut(PROVIDER_IMAGES) else { return };
    each_object(images, &mut |members| {
        let Some(regions) = members.get_mut("regions").and_then(Value::as_array_mut) else { return };
        let last: BTreeMap<(String, String), usize> =
            regions.iter().enumerate().map(|(position, region)| (location(region), position)).collect();
        let mut position = 0;
        regions.retain(|region| {
            position += 1;
            last.get(&location(region)) == Some(&(position - 1))
        });
    });
}

/// Region and architecture of an entry.
fn location(region: &Value) -> (String, String) {
    let text = |name: &str| region[name].as_str().unwrap_or_default().to_owned();
    (text("name"), text(ARCHITECTURE))
}

fn remove_where<'a>(
    objects: impl IntoIterator<Item = &'a mut Members>,
    name: &str,
    is_default: impl Fn(&Value) -> bool,
) {
    for object in objects {
        if object.get(name).is_some_and(&is_default) {
            object.remove(name);
        }
    }
}

/// Changes the flavors of every version for which both halves list the same flavors, and copies the result to core's
/// half, as the webhook does. Other versions stay as they are.
fn each_flavor(document: &mut Value, change: &mut impl FnMut(&mut Vec<Members>)) {
    let titles = |pointer| {
        let images = objects(document, pointer);
        images.flat_map(|image| versions(image).map(|version| (title(text(image, "name"), version), version)))
    };
    // Flavors that can't be decoded are left unchanged.
    let listed = |version: &Members| match version.get("capabilityFlavors") {
        Some(listed) => Vec::<Capabilities>::deserialize(listed).ok().map(Some),
        None => Some(None),
    };
    let of_core: BTreeMap<(String, String), Option<Vec<Capabilities>>> =
        titles(CORE_IMAGES).filter_map(|(title, version)| Some((title, listed(version)?))).collect();
    let mut entries: BTreeMap<(String, String), usize> = BTreeMap::new();
    titles(PROVIDER_IMAGES).for_each(|(title, _)| *entries.entry(title).or_default() += 1);
    let mut changed: BTreeMap<(String, String), Vec<Capabilities>> = BTreeMap::new();
    each_version_mut(document, PROVIDER_IMAGES, |image, version| {
        let title = title(image, version);
        let mut flavors = flavors(version);
        let capabilities: Vec<Capabilities> = flavors.iter().map(capabilities_of).collect();
        let is_listed_so =
            of_core.get(&title).is_some_and(|listed| listed.as_ref().is_none_or(|listed| same(listed, &capabilities)));
        if !flavors.is_empty() && is_listed_so && entries.get(&title) == Some(&1) {
            change(&mut flavors);
            changed.insert(title, flavors.iter().map(capabilities_of).collect());
            version.insert("capabilityFlavors".to_owned(), flavors.into_iter().map(Value::from).collect());
        }
    });
    each_version_mut(document, CORE_IMAGES, |image, version| {
        if let (Some(capabilities), Some(listed)) =
            (changed.get(&title(image, version)), version.get_mut("capabilityFlavors"))
        {
            *listed = json!(capabilities);
        }
    });
}

/// Whether two lists have the same flavors, in any order.
fn same(a: &[Capabilities], b: &[Capabilities]) -> bool {
    a.iter().all(|flavor| b.contains(flavor)) && b.iter().all(|flavor| a.contains(flavor))
}

/// Changes every object of a document, inner objects first.
fn each_object(value: &mut Value, change: &mut impl FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| each_object(item, change)),
        Value::Object(members) => {
            members.values_mut().for_each(|member| each_object(member, change));
            change(members);
        }
        _ => {}
    }
}

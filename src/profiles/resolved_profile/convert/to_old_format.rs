//! Converts capabilities back to the old format, for providers without support for capabilities.
//!
//! The old format has one image per version and architecture. If machine types get several images, the version keeps
//! the one that most of them get, and the others become versions with a suffix.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Before, Conversion, ConvertError, Undecided};
use crate::resolved_profile::Resolution;
use crate::resolved_profile::document::{
    CORE_IMAGES, PROVIDER_IMAGES, append_new_regions, append_regions, at_path, flavors, objects, objects_mut, regions,
    text, title, versions, without_capabilities,
};
use crate::resolved_profile::lint::some_of;
use crate::resolved_profile::resolution::{ResolvedVersion, TypeGroup};
use crate::resolved_profile::selectable::SelectableVersion;
use decisions::provider::Providers;
use decisions::provider::explanation::capabilities_text;
use decisions::provider::profile::Members;
use decisions::provider::profile::old_format::{capabilities_of, set_capabilities};
use wire::api::gardener::Capabilities;
use wire::capabilities::{ARCHITECTURE, DEFAULT_ARCHITECTURE, with_defaults};

/// Classification that only one version per minor may have.
const SUPPORTED: &str = "supported";

/// The image that some machine types of an architecture get for a version: one flavor, or one for each region.
struct Variant {
    architecture: String,
    flavor: Members,
    /// Number of machine types that get it.
    types: usize,
}

/// A version that is written.
struct Written {
    version: String,
    entries: Vec<(String, Members)>,
}

pub(super) fn convert(before: &Before, providers: Providers) -> Result<Conversion, ConvertError> {
    let of_core = before.resolved_profile.images.iter().map(|version| (version.image.clone(), version.version.clone()));
    let of_core = of_core.collect();
    // Versions that only the provider's half lists are treated as if they were offered, because machines may still use
    // them.
    let mut resolved_profile = before.resolved_profile.clone();
    resolved_profile.images.extend(before.profile.unlisted(&before.resolved_profile));
    let resolution = Resolution::of(&resolved_profile);
    let versions = resolution.versions().iter().map(|version| version.selectable);
    let taken = versions.map(|version| (version.image.clone(), version.version.clone())).collect();
    let mut conversion = ToOldFormat { before, resolution: &resolution, of_core, taken, undecided: Vec::new() };
    let profile = conversion.document();
    let undecided = conversion.undecided;
    let mut check = before.check(&profile, providers)?;
    if !check.lost.is_empty() {
        return Err(ConvertError::NotEquivalent(Box::new(check)));
    }
    before.check_refusals(&profile, providers)?;
    let intended = std::mem::take(&mut check.differences);
    Ok(Conversion { profile, undecided, intended, given_up: Vec::new(), proof: check })
}

/// The versions that each version is converted to, by image and version.
type Versions = BTreeMap<(String, String), Vec<Written>>;

struct ToOldFormat<'a> {
    before: &'a Before,
    resolution: &'a Resolution<'a>,
    /// The versions that core's half lists, by image and version.
    of_core: BTreeSet<(String, String)>,
    /// Versions that the profile has or gets, by image and version.
    taken: BTreeSet<(String, String)>,
    undecided: Vec<Undecided>,
}

impl ToOldFormat<'_> {
    fn document(&mut self) -> Value {
        let mut document = self.before.profile.document.clone();
        let mut written = Versions::new();
        for version in self.resolution.versions() {
            let SelectableVersion { image, version: name, .. } = version.selectable;
            let becomes = self.versions(version);
            self.report_unwritable(image, &becomes);
            written.insert((image.clone(), name.clone()), becomes);
        }
        self.write_core(&mut document, &written);
        self.write_provider(&mut document, &written);
        self.write_machine_types(&mut document);
        if let Some(spec) = document.get_mut("spec").and_then(Value::as_object_mut) {
            spec.remove("machineCapabilities");
        }
        self.report_lost_capabilities();
        document
    }

    /// The versions that a version is converted to: itself, and one with a suffix for each additional image of an
    /// architecture.
    fn versions(&mut self, resolved: &ResolvedVersion<'_>) -> Vec<Written> {
        let version = resolved.selectable;
        let variants = self.variants(resolved);
        let mut own: Vec<(String, Members)> = Vec::new();
        let mut further: BTreeMap<String, Vec<(String, Members)>> = BTreeMap::new();
        let architectures: BTreeSet<String> = variants.iter().map(|variant| variant.architecture.clone()).collect();
        for architecture in architectures {
            let mut of_architecture: Vec<&Variant> =
                variants.iter().filter(|variant| variant.architecture == architecture).collect();
            // An image that another version also has may be omitted here. Among the rest, the image of most machine
            // types comes first.
            of_architecture
                .sort_by_key(|variant| (self.is_elsewhere(version, &variant.flavor), std::cmp::Reverse(variant.types)));
            let Some((kept, others)) = of_architecture.split_first() else { continue };
            let entry = (architecture.clone(), kept.flavor.clone());
            // In formats with one image per version, another architecture's image needs its own version.
            let shares = self.before.profile.format.distinguishes_architectures()
                || own.iter().all(|(_, known)| without_capabilities(known) == without_capabilities(&kept.flavor));
            let prefix = if shares { String::new() } else { format!("{architecture}-") };
            if shares {
                own.push(entry);
            } else if !self.is_elsewhere(version, &kept.flavor) {
                further.entry(architecture.clone()).or_default().push(entry);
            }
            for other in others.iter().filter(|other| !self.is_elsewhere(version, &other.flavor)) {
                let suffix = format!("{prefix}{}", self.suffix(&kept.flavor, &other.flavor));
                further.entry(suffix).or_default().push((architecture.clone(), other.flavor.clone()));
            }
        }
        self.report_left_out(version, &variants);
        let mut written = vec![Written { version: version.version.clone(), entries: own }];
        for (suffix, entries) in further {
            let name = self.unused_version(&version.image, &format!("{}-{suffix}", version.version));
            written.push(Written { version: name, entries });
        }
        written
    }

    /// A version that the image does not have: this one, or the same with a number.
    fn unused_version(&mut self, image: &str, version: &str) -> String {
        let mut unused = (image.to_owned(), version.to_owned());
        let mut number = 2;
        while !self.taken.insert(unused.clone()) {
            unused.1 = format!("{version}-{number}");
            number += 1;
        }
        unused.1
    }

    /// The distinct images of a version, by architecture.
    fn variants(&self, version: &ResolvedVersion<'_>) -> Vec<Variant> {
        let mut variants: Vec<Variant> = Vec::new();
        let groups = self.resolution.groups().iter();
        for group in groups.filter(|group| self.resolution.admits(version, group)) {
            let Some(flavor) = self.flavor_of(version, group) else { continue };
            let known = variants.iter_mut().find(|known| {
                known.architecture == group.architecture
                    && without_capabilities(&known.flavor) == without_capabilities(&flavor)
            });
            let types = group.types.len();
            match known {
                Some(known) => known.types += types,
                None => variants.push(Variant { architecture: group.architecture.to_owned(), flavor, types }),
            }
        }
        self.add_unused_architectures(version.selectable, &mut variants);
        variants
    }

    /// Adds the images of architectures without machine types, as one flavor per architecture with the first image in
    /// each region. Otherwise a version, an image or a region could be left without images, which Gardener rejects.
    fn add_unused_architectures(&self, version: &SelectableVersion, variants: &mut Vec<Variant>) {
        let had: BTreeSet<String> = variants.iter().map(|variant| variant.architecture.clone()).collect();
        for mut flavor in self.documents_of(version) {
            let architecture = architecture_of(&flavor);
            if had.contains(&architecture) {
                continue;
            }
            match variants.iter_mut().find(|known| known.architecture == architecture) {
                Some(known) => append_new_regions(&mut known.flavor, &mut flavor),
                None => variants.push(Variant { architecture, flavor, types: 0 }),
            }
        }
    }

    /// All flavors of a version in the provider's half, also those for regions that the profile does not have.
    fn documents_of(&self, version: &SelectableVersion) -> impl Iterator<Item = Members> {
        let images = objects(&self.before.profile.document, PROVIDER_IMAGES);
        let entries = images.filter(|image| text(image, "name") == version.image).flat_map(versions);
        let entries = entries.filter(|entry| text(entry, "version") == version.version);
        entries.flat_map(|entry| match flavors(entry) {
            none if none.is_empty() => self.before.profile.format.flavors_of_old_format(entry, &version.architectures),
            listed => listed,
        })
    }

    /// The images that a group gets for a version, as one flavor with the image of each region.
    fn flavor_of(&self, version: &ResolvedVersion<'_>, group: &TypeGroup<'_>) -> Option<Members> {
        let mut joined: Option<Members> = None;
        for available in &version.availability {
            let Some(chosen) = self.resolution.chosen(group, available) else { continue };
            let mut flavor = self.document_of(version.selectable, chosen)?;
            if let Some(Value::Array(regions)) = flavor.get_mut("regions") {
                regions.retain(|region| region["name"].as_str().is_some_and(|name| available.regions.contains(&name)));
                if regions.is_empty() {
                    // It only has images for regions that the profile does not have.
                    continue;
                }
            }
            match &mut joined {
                None => joined = Some(flavor),
                Some(joined) => append_regions(joined, &mut flavor),
            }
        }
        joined
    }

    /// A flavor in the provider's half; for an old-format version, the equivalent flavor.
    fn document_of(&self, version: &SelectableVersion, flavor: usize) -> Option<Members> {
        let selectable = version.flavors.get(flavor)?;
        let members = at_path(&self.before.profile.document, &selectable.path)?.as_object()?;
        if selectable.path.ends_with(']') && selectable.path.contains("capabilityFlavors") {
            return Some(members.clone());
        }
        let format = self.before.profile.format;
        let mut flavors = format.flavors_of_old_format(members, &version.architectures).into_iter();
        if !format.distinguishes_architectures() {
            return flavors.next();
        }
        let architecture = selectable.capabilities.values(ARCHITECTURE);
        flavors.find(|flavor| capabilities_of(flavor).values(ARCHITECTURE) == architecture)
    }

    /// Whether another version of the image has this image as its only one for an architecture. If this version can be
    /// selected, the other one must be selectable, too.
    fn is_elsewhere(&self, version: &SelectableVersion, flavor: &Members) -> bool {
        let image = without_capabilities(flavor);
        let entries = objects(&self.before.profile.document, PROVIDER_IMAGES)
            .filter(|entry| text(entry, "name") == version.image);
        let is_of_core = |name: &str| self.of_core.contains(&(version.image.clone(), name.to_owned()));
        let is_selectable = is_of_core(&version.version);
        let others = entries.flat_map(versions).filter(|entry| text(entry, "version") != version.version);
        let mut others = others.filter(|entry| !is_selectable || is_of_core(text(entry, "version")));
        others.any(|other| {
            let flavors = flavors(other);
            let architecture = |flavor: &Members| capabilities_of(flavor).0.remove(ARCHITECTURE);
            let same: Vec<&Members> =
                flavors.iter().filter(|known| architecture(known) == architecture(flavor)).collect();
            matches!(same[..], [only] if without_capabilities(only) == image)
        })
    }

    /// A suffix that distinguishes an image from the kept one: the first value that only the other flavor lists.
    fn suffix(&self, kept: &Members, other: &Members) -> String {
        let definitions = &self.before.resolved_profile.definitions;
        let [kept, other] = [kept, other].map(|flavor| with_defaults(&capabilities_of(flavor), definitions));
        for definition in definitions.iter().filter(|definition| definition.name != ARCHITECTURE) {
            let [kept, other] = [&kept, &other].map(|side| side.values(&definition.name).unwrap_or_default());
            let only_of_other = other.iter().find(|value| !kept.contains(value));
            let value = if kept.len() > other.len() { only_of_other.or(other.first()) } else { only_of_other };
            if let Some(value) = value {
                return value.chars().map(|kept| if kept.is_ascii_alphanumeric() { kept } else { '-' }).collect();
            }
        }
        "other".to_owned()
    }

    /// Reports flavors that no machine type gets. The old format can't express them, unless another version has their
    /// image.
    fn report_left_out(&mut self, version: &SelectableVersion, variants: &[Variant]) {
        for (position, selectable) in version.flavors.iter().enumerate() {
            let Some(flavor) = self.document_of(version, position) else { continue };
            let image = without_capabilities(&flavor);
            let is_kept = variants.iter().any(|kept| {
                without_capabilities(&kept.flavor) == image
                    || (kept.flavor.contains_key("regions") && is_part(&kept.flavor, &flavor))
            });
            if is_kept || self.is_elsewhere(version, &flavor) {
                continue;
            }
            let capabilities = capabilities_text(&selectable.capabilities);
            self.undecided.push(Undecided {
                subject: format!("{} flavor {position}", version.title()),
                open: format!("No machine type gets it ({capabilities}), so it is left out."),
                advice: "Add it as a version with a suffix if it shall be had.".to_owned(),
            });
        }
    }

    /// Reports images that the old format can't express. They are left out; if machine types need them, the conversion
    /// fails.
    fn report_unwritable(&mut self, image: &str, becomes: &[Written]) {
        let format = self.before.profile.format;
        for Written { version, entries } in becomes {
            let is_lost = |entry: &&(String, Members)| {
                format.old_format_of_flavors(version, std::slice::from_ref(entry)).is_empty()
            };
            self.undecided.extend(entries.iter().filter(is_lost).map(|(architecture, _)| Undecided {
                subject: format!("{image} {version}"),
                open: format!("The old format has no word for its image for {architecture}, so it is left out."),
                advice: "List the image for each region.".to_owned(),
            }));
        }
    }

    fn write_core(&self, document: &mut Value, written: &Versions) {
        replace_versions(document, CORE_IMAGES, |title, version| {
            let becomes = written.get(&title).into_iter().flatten();
            let write = |becoming: &Written| {
                let mut version = version.clone();
                // Gardener allows one supported version per minor. A version without a classification is also
                // supported.
                if becoming.version != text(&version, "version") && text(&version, "classification") == SUPPORTED {
                    version.remove("classification");
                }
                version.remove("capabilityFlavors");
                let architectures: BTreeSet<&String> =
                    becoming.entries.iter().map(|(architecture, _)| architecture).collect();
                version.insert("version".to_owned(), becoming.version.as_str().into());
                version.insert("architectures".to_owned(), json!(architectures));
                version
            };
            becomes.map(write).collect()
        });
    }

    fn write_provider(&self, document: &mut Value, written: &Versions) {
        let format = self.before.profile.format;
        let mut done: BTreeSet<(String, String)> = BTreeSet::new();
        replace_versions(document, PROVIDER_IMAGES, |title, mut version| match written.get(&title) {
            // A version that is not offered keeps its old format; an empty list of flavors is removed.
            None => {
                version.remove("capabilityFlavors");
                vec![version]
            }
            Some(becomes) if done.insert(title) => {
                let entries = |becoming: &Written| format.old_format_of_flavors(&becoming.version, &becoming.entries);
                becomes.iter().flat_map(entries).collect()
            }
            Some(_) => Vec::new(),
        });
    }

    fn write_machine_types(&self, document: &mut Value) {
        let profile = &self.before.profile;
        for (machine_type, selectable) in
            objects_mut(document, "/spec/machineTypes").zip(&self.before.resolved_profile.machine_types)
        {
            machine_type.insert(ARCHITECTURE.to_owned(), selectable.architecture.as_str().into());
            set_capabilities(machine_type, &Capabilities::default());
        }
        let types = self.before.resolved_profile.machine_types.iter();
        let types: Vec<(&str, &Capabilities)> = types.map(|known| (known.name.as_str(), &known.capabilities)).collect();
        let is_declared =
            |name: &String| profile.spec.machine_capabilities.iter().any(|definition| definition.name == *name);
        // Capabilities that the profile does not define have no effect, so the old format must not set them.
        if self.before.resolved_profile.effects.iter().all(is_declared)
            && let Some(config) = document.pointer_mut("/spec/providerConfig").and_then(Value::as_object_mut)
        {
            profile.format.set_machine_types_of_old_format(config, &types);
        }
    }

    /// Reports capabilities of machine types that the old format can't express.
    fn report_lost_capabilities(&mut self) {
        let resolved_profile = &self.before.resolved_profile;
        let names = resolved_profile.definitions.iter().map(|definition| &definition.name);
        let lost = names.filter(|name| *name != ARCHITECTURE && !resolved_profile.effects.contains(name));
        for name in lost.cloned().collect::<Vec<_>>() {
            let types =
                resolved_profile.machine_types.iter().filter(|known| known.capabilities.values(&name).is_some());
            let types: Vec<&str> = types.map(|machine_type| machine_type.name.as_str()).collect();
            if !types.is_empty() {
                self.undecided.push(Undecided {
                    subject: some_of(types),
                    open: format!(
                        "The old format has no word for {name}: Shoots have to select the version with the right suffix \
                         themselves."
                    ),
                    advice: "Tell the owners of Shoots which versions their machine types can run.".to_owned(),
                });
            }
        }
    }
}

/// Replaces each version in a list of images by the versions that `replacement` returns.
fn replace_versions(
    document: &mut Value,
    pointer: &str,
    mut replacement: impl FnMut((String, String), Members) -> Vec<Members>,
) {
    for image in objects_mut(document, pointer) {
        let name = text(image, "name").to_owned();
        let Some(versions) = image.get_mut("versions").and_then(Value::as_array_mut) else { continue };
        let old = std::mem::take(versions).into_iter().filter_map(|version| match version {
            Value::Object(members) => Some(members),
            _ => None,
        });
        versions.extend(old.flat_map(|version| replacement(title(&name, &version), version)).map(Value::from));
    }
}

/// Whether all regions of `part` are in `whole` with the same image.
fn is_part(whole: &Members, part: &Members) -> bool {
    let whole = regions(whole);
    regions(part).iter().all(|region| whole.contains(region))
}

/// The architecture of a flavor, or Gardener's default if it has none.
fn architecture_of(flavor: &Members) -> String {
    let named = capabilities_of(flavor).0.remove(ARCHITECTURE).and_then(|values| values.into_iter().next());
    named.unwrap_or_else(|| DEFAULT_ARCHITECTURE.to_owned())
}

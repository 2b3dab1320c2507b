//! Reads Shoots, their CloudProfiles and credentials bindings from files.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

use anyhow::Context;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::cli::evidence::Evidence;
use profiles::cloud_profile::architecture_fields::apply_defaults;
use profiles::cloud_profile::members::{InvalidField, Problem, remove_invalid_fields};
use profiles::cloud_profile::namespaced::merge;
use profiles::versions::maintenance::MaintainedShoot;
use profiles::versions::shoot_defaults::{
    PoolWithoutImage, default_architecture, default_image, default_kubernetes_version,
};
use runtime::reader::files::{NamedFile, files, name_of};
use runtime::reader::objects::{Entry, for_each_object};
use wire::api::gardener::{
    MachineImage, NamespacedCloudProfile, ProfileObject, ProfileSpec, VersionedPool, VersionedShoot,
};
use wire::api::gotext::json::{decode_lenient, to_go_json};

/// How a Shoot refers to its profile: the name of a CloudProfile, or `namespace/name` of a NamespacedCloudProfile.
pub(in crate::cli) type Reference = String;

/// Identifies a profile, or one of its copies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli) struct ProfileKey {
    pub(in crate::cli) reference: Reference,
    /// Distinguishes copies in Clusters, which can be of different ages. `None` for the profile itself.
    copy: Option<u64>,
}

/// A Shoot read from a file.
pub(in crate::cli) struct ShootInput {
    pub(in crate::cli) source: String,
    pub(in crate::cli) state: MaintainedShoot,
    /// The copy of the profile, if the Shoot comes from a Cluster.
    copy: Option<u64>,
}

impl ShootInput {
    /// The profile for this Shoot: the profile itself, else the copy in its Cluster, else the copy in another Cluster.
    pub(in crate::cli) fn profile<'p, T>(
        &self,
        profiles: &'p BTreeMap<ProfileKey, T>,
    ) -> Option<(&'p ProfileKey, &'p T)> {
        let key = |copy| ProfileKey { reference: reference(&self.state.shoot), copy };
        let of_its_cluster = || profiles.get_key_value(&key(Some(self.copy?)));
        let any = || profiles.range(key(Some(0))..=key(Some(u64::MAX))).next_back();
        profiles.get_key_value(&key(None)).or_else(of_its_cluster).or_else(any)
    }
}

/// The objects of all files.
pub(in crate::cli) struct GardenFiles {
    pub(in crate::cli) evidence: Evidence,
    shoots: Vec<ShootInput>,
    profiles: BTreeMap<String, ProfileSpec>,
    /// Copies of profiles in Clusters.
    copies: BTreeMap<ProfileKey, ProfileSpec>,
    namespaced: Vec<NamespacedCloudProfile>,
    /// Merged specs in the status of NamespacedCloudProfiles whose parent had not been read before them.
    merged: BTreeMap<Reference, ProfileSpec>,
    bindings: Vec<Value>,
}

impl GardenFiles {
    pub(in crate::cli) fn none() -> Self {
        Self {
            evidence: Evidence::of("shoot"),
            shoots: Vec::new(),
            profiles: BTreeMap::new(),
            copies: BTreeMap::new(),
            namespaced: Vec::new(),
            merged: BTreeMap::new(),
            bindings: Vec::new(),
        }
    }

    /// Reads files and folders. Records unreadable files in the evidence and continues.
    pub(in crate::cli) fn read(paths: &[PathBuf]) -> Self {
        let mut found = Self::none();
        for file in found.evidence.note_skipped(files(paths)) {
            match Self::of_file(&file) {
                Ok(of_file) => found.join(of_file),
                Err(error) => found.evidence.unread(&error),
            }
        }
        found
    }

    fn of_file(file: &NamedFile) -> anyhow::Result<Self> {
        let mut found = Self::none();
        let text = file.text()?;
        let read = for_each_object(&text, &mut |entry| {
            if let Entry::Object(object) = entry {
                found.add(&file.path, &object);
            }
        });
        read.with_context(|| file.name())?;
        Ok(found)
    }

    /// Same as [`Self::read`], but records every path that contains no object of the required kind.
    pub(in crate::cli) fn read_some(paths: &[PathBuf], kind: &str, has: fn(&Self) -> bool) -> Self {
        let mut all = Self::none();
        for path in paths {
            let mut found = Self::read(std::slice::from_ref(path));
            if found.evidence.is_complete() && !has(&found) {
                found.evidence.unread_text(format!("{}: no {kind} in it", name_of(path)));
            }
            all.join(found);
        }
        all
    }

    /// Whether the files contain a CloudProfile or NamespacedCloudProfile.
    pub(in crate::cli) fn has_profiles(&self) -> bool {
        !self.profiles.is_empty() || !self.namespaced.is_empty() || !self.copies.is_empty()
    }

    /// All Shoots. A Shoot given directly takes precedence over its copy in a Cluster.
    pub(in crate::cli) fn shoots(&self) -> Vec<&ShootInput> {
        let of_garden = self.shoots.iter().filter(|shoot| shoot.copy.is_none());
        let of_garden: BTreeSet<String> = of_garden.map(|shoot| shoot.state.shoot.title()).collect();
        let counts = |shoot: &&ShootInput| shoot.copy.is_none() || !of_garden.contains(&shoot.state.shoot.title());
        self.shoots.iter().filter(counts).collect()
    }

    /// Adds an object; `path` is its source.
    pub(in crate::cli) fn add(&mut self, path: &Path, object: &Value) {
        let source = path.display();
        let result = match object["kind"].as_str() {
            Some("Shoot") => read_shoot(object)
                .map(|state| self.shoots.push(ShootInput { source: source.to_string(), state, copy: None })),
            Some("CloudProfile") => profile(object).map(|ProfileObject { metadata, spec }| {
                self.profiles.insert(metadata.name.unwrap_or_default(), with_defaults(spec));
            }),
            Some("NamespacedCloudProfile") => profile(object).map(|profile| self.add_namespaced(profile, object)),
            Some("SecretBinding" | "CredentialsBinding") => {
                self.bindings.push(object.clone());
                Ok(())
            }
            Some("Cluster") => self.add_cluster(&source.to_string(), &object["spec"]),
            _ => Ok(()),
        };
        if let Err(error) = result {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let error = format!("{source}: {} {name:?}: {error}", object["kind"].as_str().unwrap_or_default());
            match object["kind"].as_str() {
                Some("Shoot") => self.evidence.unevaluated(error),
                _ => self.evidence.unread_text(error),
            }
        }
    }

    fn add_namespaced(&mut self, child: NamespacedCloudProfile, object: &Value) {
        let merged = &object["status"]["cloudProfileSpec"];
        if !self.profiles.contains_key(&child.spec.parent.name)
            && merged.is_object()
            && let Ok(spec) = decode_lenient(&to_go_json(merged))
        {
            self.merged.insert(reference_of(&child), with_defaults(spec));
        }
        self.namespaced.push(child);
    }

    /// Adds a Cluster's copies of a Shoot and its profile. The copy of a NamespacedCloudProfile is already merged and
    /// has the kind CloudProfile; only the Shoot's reference reveals its origin.
    fn add_cluster(&mut self, source: &str, spec: &Value) -> Result<(), String> {
        let [shoot, copied] =
            ["shoot", "cloudProfile"].map(|member| Some(&spec[member]).filter(|copy| copy.is_object()));
        let shoot = shoot.map(read_shoot);
        // Without a profile, the Shoot still belongs to a copy.
        let mut copy = 0;
        if let Some(copied) = copied {
            let ProfileObject { metadata, spec } = profile(copied)?;
            let named = shoot.as_ref().and_then(|shoot| shoot.as_ref().ok()).map(|state| reference(&state.shoot));
            let mut hasher = DefaultHasher::new();
            copied["spec"].to_string().hash(&mut hasher);
            copy = hasher.finish();
            let reference = named.unwrap_or_else(|| metadata.name.unwrap_or_default());
            let key = ProfileKey { reference, copy: Some(copy) };
            self.copies.entry(key).or_insert_with(|| with_defaults(spec));
        }
        if let Some(state) = shoot.transpose()? {
            self.shoots.push(ShootInput { source: source.to_owned(), state, copy: Some(copy) });
        }
        Ok(())
    }

    /// The profiles after applying the changed ones from `other`.
    pub(in crate::cli) fn replaced_by(&self, other: &Self) -> BTreeMap<ProfileKey, ProfileSpec> {
        let given = |reference: &Reference| ProfileKey { reference: reference.clone(), copy: None };
        let copies = self.copies.iter().map(|(key, spec)| (key.clone(), spec.clone()));
        let mut all: BTreeMap<ProfileKey, ProfileSpec> = copies.collect();
        // A changed profile given as a Cluster's copy applies to all Shoots that reference it.
        let changed = other.copies.iter().map(|(key, spec)| (&key.reference, spec));
        let merged = self.merged.iter().chain(&other.merged);
        let profiles = merged.chain(&self.profiles).chain(changed).chain(&other.profiles);
        all.extend(profiles.map(|(reference, spec)| (given(reference), spec.clone())));
        for child in self.namespaced.iter().chain(&other.namespaced) {
            if let Some(parent) = all.get(&given(&child.spec.parent.name)) {
                let merged = merge(parent.clone(), child.spec.clone());
                all.insert(given(&reference_of(child)), merged);
            }
        }
        all
    }

    pub(in crate::cli) fn join(&mut self, other: Self) {
        let Self { evidence, shoots, profiles, copies, namespaced, merged, bindings } = other;
        self.shoots.extend(shoots);
        self.evidence.join(evidence);
        self.profiles.extend(profiles);
        self.copies.extend(copies);
        self.namespaced.extend(namespaced);
        self.merged.extend(merged);
        self.bindings.extend(bindings);
    }

    /// Profiles to evaluate separately: CloudProfiles, their copies, and NamespacedCloudProfiles without their parent.
    pub(in crate::cli) fn own_profiles(&self) -> Vec<ProfileKey> {
        let is_given = |key: &ProfileKey| key.copy.is_some() && self.profiles.contains_key(&key.reference);
        let copies = self.copies.keys().filter(|key| !is_given(key)).cloned();
        let names = self.profiles.keys().chain(self.merged.keys().filter(|name| !self.has_parent(name)));
        let given = names.map(|name| ProfileKey { reference: name.clone(), copy: None });
        given.chain(copies).collect()
    }

    fn has_parent(&self, name: &str) -> bool {
        let child = self.namespaced.iter().find(|child| reference_of(child) == name);
        child.is_some_and(|child| self.profiles.contains_key(&child.spec.parent.name))
    }

    pub(in crate::cli) fn namespaced(&self) -> &[NamespacedCloudProfile] {
        &self.namespaced
    }

    /// Credentials bindings; `None` (unknown) if no file contains one.
    pub(in crate::cli) fn bindings(&self) -> Option<Vec<Value>> {
        (!self.bindings.is_empty()).then(|| self.bindings.clone())
    }
}

fn read_shoot(shoot: &Value) -> Result<MaintainedShoot, String> {
    MaintainedShoot::read(shoot, true).map_err(|error| error.to_string())
}

fn with_defaults(mut spec: ProfileSpec) -> ProfileSpec {
    apply_defaults(&mut spec);
    spec
}

fn reference_of(child: &NamespacedCloudProfile) -> Reference {
    let [namespace, name] =
        [&child.metadata.namespace, &child.metadata.name].map(|text| text.as_deref().unwrap_or_default());
    format!("{namespace}/{name}")
}

/// Decodes a profile. An invalid date is an error, because the version would otherwise seem to never expire.
fn profile<T: DeserializeOwned>(object: &Value) -> Result<T, String> {
    let is_time =
        |misfit: &&InvalidField| ["expirationDate", "startTime"].iter().any(|time| misfit.path.ends_with(time));
    let misfits = remove_invalid_fields(&mut object.clone());
    match misfits.iter().find(is_time) {
        Some(InvalidField { path, problem: Problem::Type { required, found } }) => {
            Err(format!("{path}: {required} is expected, not {found}"))
        }
        _ => decode_lenient(&to_go_json(object)).map_err(|error| error.to_string()),
    }
}
pub(in crate::cli) fn reference(shoot: &VersionedShoot) -> Reference {
    let namespace = shoot.metadata.namespace.as_deref().unwrap_or_default();
    match (&shoot.spec.cloud_profile, &shoot.spec.cloud_profile_name) {
        (Some(reference), _) if reference.kind == "NamespacedCloudProfile" => format!("{namespace}/{}", reference.name),
        (Some(reference), _) => reference.name.clone(),
        (None, name) => name.clone().unwrap_or_default(),
    }
}

/// Defaults versions that the Shoot leaves open, as Gardener does on creation.
pub(in crate::cli) fn complete(
    shoot: &mut VersionedShoot,
    profile: &ProfileSpec,
    now: Timestamp,
) -> Result<(), String> {
    let required = shoot.spec.kubernetes.version.clone().unwrap_or_default();
    let versions = &profile.kubernetes.versions;
    let default = |required: &str| {
        let found = default_kubernetes_version(versions, required, now).map_err(|error| error.to_string())?;
        Ok::<_, String>(found.map(str::to_owned))
    };
    if let Some(version) = default(&required)? {
        shoot.spec.kubernetes.version = Some(version);
    }
    for pool in &mut shoot.spec.provider.workers {
        if let Some(required) = &pool.kubernetes.version
            && let Some(version) = default(required)?
        {
            pool.kubernetes.version = Some(version);
        }
        complete_image(pool, profile, now).map_err(|error| format!("pool {}: {error}", pool.name))?;
    }
    Ok(())
}

fn complete_image(pool: &mut VersionedPool, profile: &ProfileSpec, now: Timestamp) -> Result<(), String> {
    let in_place = pool.is_updated_in_place();
    let machine = &mut pool.machine;
    let machine_type = profile.machine_types.iter().find(|known| known.name == machine.machine_type);
    let definitions = &profile.machine_capabilities;
    let architecture = default_architecture(machine.architecture.as_deref(), machine_type, definitions).to_owned();
    let is_open = |image: &MachineImage| image.version.split('.').count() < 3;
    if machine.image.as_ref().is_none_or(is_open) {
        let required =
            PoolWithoutImage { requested: machine.image.as_ref(), architecture: &architecture, machine_type, in_place };
        let image = default_image(&profile.machine_images, definitions, required, now);
        machine.image = Some(image.map_err(|error| error.to_string())?);
    }
    machine.architecture = Some(architecture);
    Ok(())
}

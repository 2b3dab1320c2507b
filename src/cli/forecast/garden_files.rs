//! Shoots, their profiles and bindings of credentials, from files.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::gardener::{
    MachineImage, NamespacedCloudProfile, ProfileObject, ProfileSpec, VersionedPool, VersionedShoot,
};
use crate::api::gotext::json::{decode_lenient, to_go_json};
use crate::cli::evidence::Evidence;
use crate::cloud_profile::architecture_fields::apply_defaults;
use crate::cloud_profile::members::{Misfit, Problem, take_out_misfits};
use crate::cloud_profile::namespaced::merge;
use crate::reader::files::{files, name_of};
use crate::versions::maintenance::MaintainedShoot;
use crate::versions::shoot_defaults::{
    PoolWithoutImage, default_architecture, default_image, default_kubernetes_version,
};

/// A profile as a Shoot names it: a CloudProfile by its name, a NamespacedCloudProfile as `namespace/name`.
pub(in crate::cli) type Reference = String;

/// One of the profiles that are known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli) struct ProfileKey {
    /// How Shoots name it.
    pub(in crate::cli) reference: Reference,
    /// Which one, where it is not given as itself: Clusters have copies, and not all need be of the same age.
    copy: Option<u64>,
}

/// A Shoot of the files.
pub(in crate::cli) struct GivenShoot {
    /// The file.
    pub(in crate::cli) source: String,
    pub(in crate::cli) state: MaintainedShoot,
    /// The copy of its profile, if it is the one of a Cluster.
    copy: Option<u64>,
}

impl GivenShoot {
    /// Its profile: as itself, else the copy in its Cluster, else that of another Cluster.
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

/// What the files have.
pub(in crate::cli) struct GardenFiles {
    /// What was read, and what could not be.
    pub(in crate::cli) evidence: Evidence,
    shoots: Vec<GivenShoot>,
    profiles: BTreeMap<String, ProfileSpec>,
    /// Copies of profiles in Clusters.
    copies: BTreeMap<ProfileKey, ProfileSpec>,
    namespaced: Vec<NamespacedCloudProfile>,
    /// Merged profiles of those whose parent had not been given before.
    merged: BTreeMap<Reference, ProfileSpec>,
    bindings: Vec<Value>,
}

impl GardenFiles {
    /// Without any file.
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

    /// Reads files and folders. A file that can't be read is noted, and does not keep the others from being read.
    pub(in crate::cli) fn read(paths: &[PathBuf]) -> Self {
        let mut found = Self::none();
        for file in found.evidence.note_skipped(files(paths)) {
            match file.objects() {
                Ok(objects) => objects.iter().for_each(|object| found.add(&file.path, object)),
                Err(error) => found.evidence.unread(&error),
            }
        }
        found
    }

    /// The same for files that are of no use without something of this kind.
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

    /// Whether it has a CloudProfile or a NamespacedCloudProfile.
    pub(in crate::cli) fn has_profiles(&self) -> bool {
        !self.profiles.is_empty() || !self.namespaced.is_empty() || !self.copies.is_empty()
    }

    /// The Shoots. Of one that is given as itself, the copy in its Cluster does not count.
    pub(in crate::cli) fn shoots(&self) -> Vec<&GivenShoot> {
        let of_garden = self.shoots.iter().filter(|shoot| shoot.copy.is_none());
        let of_garden: BTreeSet<String> = of_garden.map(|shoot| shoot.state.shoot.title()).collect();
        let counts = |shoot: &&GivenShoot| shoot.copy.is_none() || !of_garden.contains(&shoot.state.shoot.title());
        self.shoots.iter().filter(counts).collect()
    }

    /// Adds what an object has; `path` says where it is from.
    pub(in crate::cli) fn add(&mut self, path: &Path, object: &Value) {
        let source = path.display();
        let result = match object["kind"].as_str() {
            Some("Shoot") => read_shoot(object)
                .map(|state| self.shoots.push(GivenShoot { source: source.to_string(), state, copy: None })),
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

    /// The copies of a Shoot and its profile that extensions get, in a seed. That of a NamespacedCloudProfile is merged, and called a
    /// CloudProfile; only the Shoot tells what it is.
    fn add_cluster(&mut self, source: &str, spec: &Value) -> Result<(), String> {
        let [shoot, copied] =
            ["shoot", "cloudProfile"].map(|member| Some(&spec[member]).filter(|copy| copy.is_object()));
        let shoot = shoot.map(read_shoot);
        // One without a profile is a copy as well.
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
            self.shoots.push(GivenShoot { source: source.to_owned(), state, copy: Some(copy) });
        }
        Ok(())
    }

    /// The profiles, with what other files say anew.
    pub(in crate::cli) fn replaced_by(&self, other: &Self) -> BTreeMap<ProfileKey, ProfileSpec> {
        let given = |reference: &Reference| ProfileKey { reference: reference.clone(), copy: None };
        let copies = self.copies.iter().map(|(key, spec)| (key.clone(), spec.clone()));
        let mut all: BTreeMap<ProfileKey, ProfileSpec> = copies.collect();
        // A copy that is given as the changed profile is meant for everybody.
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

    /// Adds what further files have.
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

    /// What stands for itself: CloudProfiles and their copies, and NamespacedCloudProfiles whose parent is not given.
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

    /// NamespacedCloudProfiles.
    pub(in crate::cli) fn namespaced(&self) -> &[NamespacedCloudProfile] {
        &self.namespaced
    }

    /// Bindings of credentials; unknown where no file has one.
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

/// A profile in which every time is one: a version whose end can't be read would seem to have none.
fn profile<T: DeserializeOwned>(object: &Value) -> Result<T, String> {
    let is_time = |misfit: &&Misfit| ["expirationDate", "startTime"].iter().any(|time| misfit.path.ends_with(time));
    let misfits = take_out_misfits(&mut object.clone());
    match misfits.iter().find(is_time) {
        Some(Misfit { path, problem: Problem::Type { wanted, found } }) => {
            Err(format!("{path}: {wanted} is expected, not {found}"))
        }
        _ => decode_lenient(&to_go_json(object)).map_err(|error| error.to_string()),
    }
}
/// The profile that a Shoot names.
pub(in crate::cli) fn reference(shoot: &VersionedShoot) -> Reference {
    let namespace = shoot.metadata.namespace.as_deref().unwrap_or_default();
    match (&shoot.spec.cloud_profile, &shoot.spec.cloud_profile_name) {
        (Some(reference), _) if reference.kind == "NamespacedCloudProfile" => format!("{namespace}/{}", reference.name),
        (Some(reference), _) => reference.name.clone(),
        (None, name) => name.clone().unwrap_or_default(),
    }
}

/// Sets the versions that a Shoot leaves open, as Gardener does when it is created.
pub(in crate::cli) fn complete(
    shoot: &mut VersionedShoot,
    profile: &ProfileSpec,
    now: Timestamp,
) -> Result<(), String> {
    let wanted = shoot.spec.kubernetes.version.clone().unwrap_or_default();
    let versions = &profile.kubernetes.versions;
    let default = |wanted: &str| {
        let found = default_kubernetes_version(versions, wanted, now).map_err(|error| error.to_string())?;
        Ok::<_, String>(found.map(str::to_owned))
    };
    if let Some(version) = default(&wanted)? {
        shoot.spec.kubernetes.version = Some(version);
    }
    for pool in &mut shoot.spec.provider.workers {
        if let Some(wanted) = &pool.kubernetes.version
            && let Some(version) = default(wanted)?
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
        let wanted =
            PoolWithoutImage { wanted: machine.image.as_ref(), architecture: &architecture, machine_type, in_place };
        let image = default_image(&profile.machine_images, definitions, wanted, now);
        machine.image = Some(image.map_err(|error| error.to_string())?);
    }
    machine.architecture = Some(architecture);
    Ok(())
}

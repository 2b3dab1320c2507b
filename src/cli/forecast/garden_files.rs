//! Shoots, their profiles and bindings of credentials, from files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::gardener::{
    MachineImage, NamespacedCloudProfile, ProfileObject, ProfileSpec, VersionedPool, VersionedShoot,
};
use crate::api::gotext::json::{decode_lenient, to_go_json};
use crate::cli::input::{files, objects, text_of_file};
use crate::cloud_profile::architecture_fields::apply_defaults;
use crate::cloud_profile::members::{Misfit, Problem, take_out_misfits};
use crate::cloud_profile::namespaced::merge;
use crate::versions::maintenance::MaintainedShoot;
use crate::versions::shoot_defaults::{
    PoolWithoutImage, default_architecture, default_image, default_kubernetes_version,
};

/// A profile as a Shoot names it: a CloudProfile by its name, a NamespacedCloudProfile as `namespace/name`.
pub(in crate::cli) type Reference = String;

/// What the files have.
#[derive(Default)]
pub(in crate::cli) struct GardenFiles {
    /// Shoots with the file that each is from.
    pub(in crate::cli) shoots: Vec<(String, MaintainedShoot)>,
    /// What could not be read.
    pub(in crate::cli) errors: Vec<String>,
    profiles: BTreeMap<String, ProfileSpec>,
    namespaced: Vec<NamespacedCloudProfile>,
    bindings: Vec<Value>,
}

impl GardenFiles {
    /// Reads files and folders.
    pub(in crate::cli) fn read(paths: &[PathBuf]) -> anyhow::Result<Self> {
        let mut found = Self::default();
        for file in files(paths)? {
            let objects = text_of_file(&file.path).and_then(|text| objects(&text));
            match objects.with_context(|| file.path.display().to_string()) {
                Ok(objects) => objects.iter().for_each(|object| found.add(&file.path, object)),
                // One that can't be read does not keep the others from being read.
                Err(error) => found.errors.push(format!("{error:#}")),
            }
        }
        Ok(found)
    }

    /// The same for files that have nothing to say without something of this kind.
    pub(in crate::cli) fn read_some(paths: &[PathBuf], kind: &str, has: fn(&Self) -> bool) -> anyhow::Result<Self> {
        let mut all = Self::default();
        for path in paths {
            let mut found = Self::read(std::slice::from_ref(path))?;
            if found.errors.is_empty() && !has(&found) {
                found.errors.push(format!("{}: no {kind} in it", path.display()));
            }
            all.join(found);
        }
        Ok(all)
    }

    /// Whether it has a CloudProfile or a NamespacedCloudProfile.
    pub(in crate::cli) fn has_profiles(&self) -> bool {
        !self.profiles.is_empty() || !self.namespaced.is_empty()
    }

    /// Adds what an object has; `path` says where it is from.
    pub(super) fn add(&mut self, path: &Path, object: &Value) {
        let source = path.display();
        let result = match object["kind"].as_str() {
            Some("Shoot") => MaintainedShoot::read(object, true)
                .map(|shoot| self.shoots.push((source.to_string(), shoot)))
                .map_err(|error| error.to_string()),
            Some("CloudProfile") => profile(object).map(|profile: ProfileObject| self.add_profile(profile)),
            Some("NamespacedCloudProfile") => profile(object).map(|profile| self.namespaced.push(profile)),
            Some("SecretBinding" | "CredentialsBinding") => {
                self.bindings.push(object.clone());
                Ok(())
            }
            // The extensions' copy of both, in a seed.
            Some("Cluster") => {
                for member in ["cloudProfile", "shoot"] {
                    self.add(path, &object["spec"][member]);
                }
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(error) = result {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            self.errors.push(format!("{source}: {} {name:?}: {error}", object["kind"].as_str().unwrap_or_default()));
        }
    }

    fn add_profile(&mut self, profile: ProfileObject) {
        let mut spec = profile.spec;
        apply_defaults(&mut spec);
        self.profiles.insert(profile.metadata.name.unwrap_or_default(), spec);
    }

    /// The same with what other files say anew.
    pub(in crate::cli) fn replaced_by(&self, other: &Self) -> BTreeMap<Reference, ProfileSpec> {
        let profiles = self.profiles.iter().chain(&other.profiles).map(|(name, spec)| (name.clone(), spec.clone()));
        let mut all: BTreeMap<Reference, ProfileSpec> = profiles.collect();
        for child in self.namespaced.iter().chain(&other.namespaced) {
            let [namespace, name] =
                [&child.metadata.namespace, &child.metadata.name].map(|text| text.as_deref().unwrap_or_default());
            if let Some(parent) = all.get(&child.spec.parent.name) {
                let merged = merge(parent.clone(), child.spec.clone());
                all.insert(format!("{namespace}/{name}"), merged);
            }
        }
        all
    }

    /// Adds what further files have.
    pub(in crate::cli) fn join(&mut self, other: Self) {
        let Self { shoots, errors, profiles, namespaced, bindings } = other;
        self.shoots.extend(shoots);
        self.errors.extend(errors);
        self.profiles.extend(profiles);
        self.namespaced.extend(namespaced);
        self.bindings.extend(bindings);
    }

    /// CloudProfiles by name.
    pub(in crate::cli) fn profiles(&self) -> impl Iterator<Item = (&str, &ProfileSpec)> {
        self.profiles.iter().map(|(name, spec)| (name.as_str(), spec))
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

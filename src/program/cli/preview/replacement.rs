//! Replaces CloudProfiles with the one of `--cloudprofile-new`.

use std::collections::HashMap;
use std::ops::AddAssign;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::shoots::ShootReader;
use super::words::counted;
use explanations::preview::{CloudProfiles, Inputs, NamedProfiles, SharedCloudProfile};
use runtime::reader::files::objects_of_file;

/// The CloudProfile of `--cloudprofile-new`.
pub(super) struct Replacement {
    /// The name by which Shoots reference it.
    name: String,
    profile: Arc<SharedCloudProfile>,
    /// Merged NamespacedCloudProfiles by the address of their previous version.
    extended: Mutex<HashMap<usize, Arc<SharedCloudProfile>>>,
}

/// How often the replacement was applied or skipped for another profile.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(in crate::cli) struct Replaced {
    /// Workers whose profile has another name.
    other_names: u64,
    /// Workers of another type, which keep their profile.
    other_types: u64,
    /// Shoots that reference another profile and keep it.
    kept: u64,
}

impl AddAssign for Replaced {
    fn add_assign(&mut self, other: Self) {
        self.other_names += other.other_names;
        self.other_types += other.other_types;
        self.kept += other.kept;
    }
}

impl Replacement {
    /// Reads the only profile in a file. A NamespacedCloudProfile's parent comes from `--profiles`.
    pub(super) fn read(path: &Path, of_shoots: &ShootReader, shared: &CloudProfiles) -> anyhow::Result<Self> {
        const KINDS: [&str; 2] = ["CloudProfile", "NamespacedCloudProfile"];
        let mut documents = objects_of_file(path)?;
        documents.retain(|document| KINDS.iter().any(|kind| document["kind"] == **kind));
        let (Some(document), true) = (documents.pop(), documents.is_empty()) else {
            bail!("exactly one CloudProfile is expected");
        };
        let of = |member: &str| document["metadata"][member].as_str().unwrap_or_default();
        let is_namespaced = document["kind"] == "NamespacedCloudProfile";
        let name = if is_namespaced { format!("{}/{}", of("namespace"), of("name")) } else { of("name").to_owned() };
        let mut profiles = of_shoots.profiles(shared).clone();
        profiles.add(document, shared).context("CloudProfile")?;
        let profile = profiles.get(&name, shared)?.with_context(|| {
            format!("NamespacedCloudProfile {name:?} extends {:?}: name it with --profiles", profiles.needed(&name))
        })?;
        Ok(Self { name, profile, extended: Mutex::default() })
    }

    /// The inputs with the new CloudProfile. Workers of another provider type keep their profile, and so do Shoots that
    /// reference another one. A NamespacedCloudProfile that extends this profile is merged with it.
    pub(super) fn of(&self, old: &Inputs, shared: &CloudProfiles, count: &mut Replaced) -> anyhow::Result<Inputs> {
        let Some(replaced) = &old.cloud_profile else { return Ok(old.clone()) };
        let required = self.profile.document.pointer("/spec/type").and_then(|text| text.as_str());
        if required.is_some_and(|required| old.worker.value["spec"]["type"] != *required) {
            count.other_types += 1;
            return Ok(old.clone());
        }
        let shoot = if old.made_from_shoot.is_some() { old.shoot.as_ref() } else { None };
        let is_other = shoot.is_some_and(|shoot| NamedProfiles::name_for(&shoot.value) != self.name);
        let profile = match is_other {
            true => self.extended(replaced, shared)?,
            false => Some(Arc::clone(&self.profile)),
        };
        let Some(profile) = profile else {
            count.kept += 1;
            return Ok(old.clone());
        };
        if shoot.is_none() && replaced.name() != self.profile.name() {
            count.other_names += 1;
        }
        Ok(Inputs { cloud_profile: Some(profile), ..old.clone() })
    }

    /// A NamespacedCloudProfile that extends this profile, merged with it; `None` for other profiles.
    fn extended(
        &self,
        replaced: &Arc<SharedCloudProfile>,
        shared: &CloudProfiles,
    ) -> anyhow::Result<Option<Arc<SharedCloudProfile>>> {
        let Some(extension) = replaced.extension_of(&self.name) else { return Ok(None) };
        let mut known = self.extended.lock();
        let address = Arc::as_ptr(replaced).addr();
        if let Some(known) = known.get(&address) {
            return Ok(Some(Arc::clone(known)));
        }
        let name = format!(
            "{}/{}",
            extension["metadata"]["namespace"].as_str().unwrap_or_default(),
            extension["metadata"]["name"].as_str().unwrap_or_default()
        );
        let mut profiles = NamedProfiles::default();
        profiles.add(self.profile.document.clone(), shared)?;
        profiles.add(extension, shared)?;
        let merged = profiles.get(&name, shared).with_context(|| format!("NamespacedCloudProfile {name:?}"))?;
        known.extend(merged.iter().map(|merged| (address, Arc::clone(merged))));
        Ok(merged)
    }

    /// The replacing profile.
    pub(super) fn profile(&self) -> &SharedCloudProfile {
        &self.profile
    }

    /// A note for the user about unexpected effects of the replacement.
    pub(super) fn note(&self, replaced: Replaced) -> Option<String> {
        let Replaced { other_names: names, other_types: types, kept } = replaced;
        let mut notes = Vec::new();
        let forms = |number: u64, one: &'static str, many: &'static str| if number == 1 { one } else { many };
        if names > 0 {
            let verb = forms(names, "uses", "use");
            let workers = counted(names, "Worker");
            let name = self.profile.name();
            notes.push(format!(
                "{workers} {verb} a CloudProfile that is not called {name:?}; it is replaced all the same"
            ));
        }
        if types > 0 {
            let verb = forms(types, "is", "are");
            let keeps = forms(types, "keeps its own", "keep theirs");
            let workers = counted(types, "Worker");
            notes.push(format!("{workers} {verb} of another type than the CloudProfile and {keeps}"));
        }
        if kept > 0 {
            let verb = forms(kept, "names", "name");
            let keeps = forms(kept, "keeps it", "keep theirs");
            notes.push(format!("{} {verb} another CloudProfile and {keeps}", counted(kept, "Shoot")));
        }
        (!notes.is_empty()).then(|| format!("note: {}", notes.join("; ")))
    }
}

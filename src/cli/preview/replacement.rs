//! A CloudProfile that takes the place of every other one.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, bail};

use super::words::counted;
use crate::api::gotext::yaml;
use crate::cli::input::text_of_file;
use crate::preview::{CloudProfiles, Inputs, SharedCloudProfile};

/// The CloudProfile of `--cloudprofile`, and how often it took the place of one with another name.
pub(super) struct Replacement {
    profile: Arc<SharedCloudProfile>,
    other_names: AtomicUsize,
    other_types: AtomicUsize,
}

impl Replacement {
    pub(super) fn read(path: &Path, profiles: &CloudProfiles) -> anyhow::Result<Self> {
        const KINDS: [&str; 2] = ["CloudProfile", "NamespacedCloudProfile"];
        let mut documents = yaml::documents(&text_of_file(path)?)?;
        documents.retain(|document| KINDS.iter().any(|kind| document["kind"] == **kind));
        let (Some(document), true) = (documents.pop(), documents.is_empty()) else {
            bail!("exactly one CloudProfile is expected");
        };
        let profile = profiles.share(document).context("CloudProfile")?;
        Ok(Self { profile, other_names: AtomicUsize::new(0), other_types: AtomicUsize::new(0) })
    }

    /// The inputs with the new CloudProfile. A profile for another type of Workers is not put in.
    pub(super) fn of(&self, old: &Inputs) -> Inputs {
        let Some(replaced) = &old.cloud_profile else { return old.clone() };
        let wanted = self.profile.document.pointer("/spec/type").and_then(|text| text.as_str());
        if wanted.is_some_and(|wanted| old.worker.value["spec"]["type"] != *wanted) {
            self.other_types.fetch_add(1, Ordering::Relaxed);
            return old.clone();
        }
        if replaced.name() != self.profile.name() {
            self.other_names.fetch_add(1, Ordering::Relaxed);
        }
        Inputs { cloud_profile: Some(Arc::clone(&self.profile)), ..old.clone() }
    }

    /// What a person should know about the replacement.
    pub(super) fn note(&self) -> Option<String> {
        let (names, types) = (self.other_names.load(Ordering::Relaxed), self.other_types.load(Ordering::Relaxed));
        let mut notes = Vec::new();
        if names > 0 {
            let name = self.profile.name();
            let verb = if names == 1 { "uses" } else { "use" };
            let workers = counted(names as u64, "Worker");
            notes.push(format!(
                "{workers} {verb} a CloudProfile that is not called {name:?}; it is replaced all the same"
            ));
        }
        if types > 0 {
            let (verb, keeps) = if types == 1 { ("is", "keeps its own") } else { ("are", "keep theirs") };
            let workers = counted(types as u64, "Worker");
            notes.push(format!("{workers} {verb} of another type than the CloudProfile and {keeps}"));
        }
        (!notes.is_empty()).then(|| format!("note: {}", notes.join("; ")))
    }
}

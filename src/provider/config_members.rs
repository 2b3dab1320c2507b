//! The members of a pool's provider config, one after the other: what of each counts in the hash, and how a person reads
//! it. Each provider has one function that makes this list, which names every member.

use super::explanation::{EffectiveInput, Origin};
use super::node_template::StrictNodeTemplate;
use crate::pool::config_items::push_capacity;
use crate::pool::hash::HashItems;

/// What the members say.
#[derive(Debug, Default)]
pub(super) struct ConfigMembers {
    /// What counts in the hash from the Kubernetes version on from which values count, in the order of the hash.
    pub(super) hashed: HashItems,
    /// What a person needs to know, also what counts where a member is absent.
    pub(super) inputs: Vec<EffectiveInput>,
}

impl ConfigMembers {
    /// Members of the object at a path, for the hash.
    pub(super) fn hash(&mut self, path: impl Into<String>) -> HashedObject<'_> {
        HashedObject { hashed: &mut self.hashed, path: path.into() }
    }

    /// A member of the config itself, for the hash.
    pub(super) fn hash_member(&mut self, member: &str, value: &str) {
        self.hashed.push(format!("providerConfig.{member}"), value);
    }

    /// What a person reads of the members at a path: what is given, with commas; nothing where nothing is.
    pub(super) fn explain(
        &mut self,
        path: impl AsRef<str>,
        name: &'static str,
        parts: impl IntoIterator<Item = Option<String>>,
    ) {
        self.inputs.extend(in_one_line(parts).map(|value| of_config(path.as_ref(), name, value)));
    }

    /// As [`explain`](Self::explain), with what counts where nothing is given.
    pub(super) fn explain_or(&mut self, path: &str, name: &'static str, value: Option<String>, default: &str) {
        let value = value.map(|value| of_config(path, name, value));
        self.inputs.push(value.unwrap_or_else(|| EffectiveInput::default_of(name, default)));
    }

    /// The node template. Its virtual capacity exists only for the autoscaler.
    pub(super) fn node_template(&mut self, template: &StrictNodeTemplate) {
        let StrictNodeTemplate { capacity, virtual_capacity: _ } = template;
        push_capacity(&mut self.hashed, capacity);
        self.inputs.push(of_config("nodeTemplate.capacity", "capacity override", template.capacity_text()));
    }
}

/// Members of one object of the provider config, for the hash.
pub(super) struct HashedObject<'a> {
    hashed: &'a mut HashItems,
    path: String,
}

impl HashedObject<'_> {
    /// Adds a member if it is given.
    pub(super) fn add(&mut self, member: &str, value: Option<impl ToString>) -> &mut Self {
        let value = value.map(|value| value.to_string());
        self.hashed.push_some(format!("providerConfig.{}.{member}", self.path), value);
        self
    }
}

/// What is given, with commas; `None` where nothing is.
pub(super) fn in_one_line(parts: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    let given: Vec<String> = parts.into_iter().flatten().collect();
    (!given.is_empty()).then(|| given.join(", "))
}

/// A value behind words that say what it is.
pub(super) fn given(words: &str, value: Option<impl ToString>) -> Option<String> {
    value.map(|value| format!("{words}{}", value.to_string()))
}

fn of_config(path: &str, name: &'static str, value: String) -> EffectiveInput {
    EffectiveInput::of(Origin::Worker, format!("providerConfig.{path}"), name, value)
}

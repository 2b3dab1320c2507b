//! The members of a pool's provider config, with their hash inputs and their explanation. Each provider has one
//! function that returns this list and names every member.

use super::explanation::{EffectiveInput, Origin};
use super::node_template::StrictNodeTemplate;
use crate::pool::config_items::push_capacity;
use crate::pool::hash::HashItems;

/// Hash inputs and explanations of the members.
#[derive(Debug, Default)]
pub(super) struct ConfigMembers {
    /// Hash inputs in order, for Kubernetes versions from which values are hashed.
    pub(super) hashed: HashItems,
    /// Effective values for `explain`, including defaults of absent members.
    pub(super) inputs: Vec<EffectiveInput>,
}

impl ConfigMembers {
    /// Starts a hashed object at this path.
    pub(super) fn hash(&mut self, path: impl Into<String>) -> HashedObject<'_> {
        HashedObject { hashed: &mut self.hashed, path: path.into() }
    }

    /// Adds a top-level member of the config to the hash.
    pub(super) fn hash_member(&mut self, member: &str, value: &str) {
        self.hashed.push(format!("providerConfig.{member}"), value);
    }

    /// Adds the members at a path to the explanation, separated by commas, unless all are absent.
    pub(super) fn explain(
        &mut self,
        path: impl AsRef<str>,
        name: &'static str,
        parts: impl IntoIterator<Item = Option<String>>,
    ) {
        self.inputs.extend(in_one_line(parts).map(|value| of_config(path.as_ref(), name, value)));
    }

    /// As [`explain`](Self::explain), with the default if the value is absent.
    pub(super) fn explain_or(&mut self, path: &str, name: &'static str, value: Option<String>, default: &str) {
        let value = value.map(|value| of_config(path, name, value));
        self.inputs.push(value.unwrap_or_else(|| EffectiveInput::default_of(name, default)));
    }

    /// Adds the node template. Its virtual capacity is not hashed, because it exists only for the autoscaler.
    pub(super) fn node_template(&mut self, template: &StrictNodeTemplate) {
        let StrictNodeTemplate { capacity, virtual_capacity: _ } = template;
        push_capacity(&mut self.hashed, capacity);
        self.inputs.push(of_config("nodeTemplate.capacity", "capacity override", template.capacity_text()));
    }
}

/// Adds members of one object of the provider config to the hash.
pub(super) struct HashedObject<'a> {
    hashed: &'a mut HashItems,
    path: String,
}

impl HashedObject<'_> {
    /// Adds a member if it has a value.
    pub(super) fn add(&mut self, member: &str, value: Option<impl ToString>) -> &mut Self {
        let value = value.map(|value| value.to_string());
        self.hashed.push_some(format!("providerConfig.{}.{member}", self.path), value);
        self
    }
}

/// Joins the present parts by commas; `None` if all are absent.
pub(super) fn in_one_line(parts: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    let given: Vec<String> = parts.into_iter().flatten().collect();
    (!given.is_empty()).then(|| given.join(", "))
}

/// Prefixes a value with its label.
pub(super) fn given(words: &str, value: Option<impl ToString>) -> Option<String> {
    value.map(|value| format!("{words}{}", value.to_string()))
}

fn of_config(path: &str, name: &'static str, value: String) -> EffectiveInput {
    EffectiveInput::of(Origin::Worker, format!("providerConfig.{path}"), name, value)
}

//! The inputs that changed a machine class, with their values as far as they can be recognised.
//!
//! Records have digests, no values. A digest is compared with those of public names and versions: of the CloudProfile,
//! and of the pools. A value that is in neither stays unknown.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use decisions::worker::plan::class_inputs::{ClassChange, Difference, Generation, INDIRECT_PREFIX, is_value};
use wire::api::bounded_text::shortened;

/// Maximum length of a name or version in bytes.
const LONGEST_VALUE: usize = 100;
/// Maximum number of known values.
const MAX_VALUES: usize = 10_000;

/// Public names and versions that inputs may have.
#[derive(Clone, Debug, Default)]
pub struct KnownValues {
    values: BTreeSet<KnownValue>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct KnownValue {
    /// The text that is hashed.
    hashed: String,
    /// Name of the image, for images.
    image: Option<String>,
    /// The value for people, without the name of the image.
    text: String,
}

/// An input that changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RollCause {
    /// Path of the input.
    pub input: String,
    /// Name of the image, if both values are versions of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The value of the earlier class, if it is recognised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The value of the later class, if it is recognised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

fn entries(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

impl KnownValues {
    /// The values in a Worker and its Cluster.
    #[must_use]
    pub fn of<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut known = Self::default();
        for object in objects {
            match object["kind"].as_str() {
                Some("Worker") => known.add_pools(&object["spec"]["pools"]),
                Some("Cluster") => known.add_profile(&object["spec"]["cloudProfile"]["spec"]),
                _ => {}
            }
        }
        known
    }

    fn add_pools(&mut self, pools: &Value) {
        for pool in entries(pools) {
            self.add_text(&pool["machineType"]);
            self.add_version(&pool["kubernetesVersion"]);
            self.add_image(&pool["machineImage"]["name"], &pool["machineImage"]["version"]);
            self.add_text(&pool["volume"]["size"]);
            self.add_text(&pool["volume"]["type"]);
        }
    }

    fn add_profile(&mut self, profile: &Value) {
        let of_provider = entries(&profile["providerConfig"]["machineImages"]);
        for image in entries(&profile["machineImages"]).chain(of_provider) {
            for version in entries(&image["versions"]) {
                self.add_image(&image["name"], &version["version"]);
            }
        }
        for version in entries(&profile["kubernetes"]["versions"]) {
            self.add_version(&version["version"]);
        }
        for machine_type in entries(&profile["machineTypes"]) {
            self.add_text(&machine_type["name"]);
        }
    }

    fn add(&mut self, hashed: String, image: Option<&str>, text: &str) {
        if self.values.len() < MAX_VALUES {
            let text = shortened(text, LONGEST_VALUE);
            self.values.insert(KnownValue { hashed, image: image.map(|image| shortened(image, LONGEST_VALUE)), text });
        }
    }

    fn add_text(&mut self, value: &Value) {
        if let Some(text) = value.as_str() {
            self.add(text.to_owned(), None, text);
        }
    }

    /// A version is hashed in full, or without its patch version.
    fn add_version(&mut self, value: &Value) {
        self.add_text(value);
        let minor = value.as_str().and_then(|version| version.rsplit_once('.')).map(|(minor, _)| minor);
        if let Some(minor) = minor {
            self.add(minor.to_owned(), None, minor);
        }
    }

    fn add_image(&mut self, name: &Value, version: &Value) {
        if let (Some(name), Some(version)) = (name.as_str(), version.as_str()) {
            self.add(format!("{name}{version}"), Some(name), version);
            self.add(version.to_owned(), None, version);
        }
    }

    fn value(&self, generation: &Generation, input: &str) -> Option<&KnownValue> {
        let recorded = generation.inputs.as_ref()?.get(input)?;
        self.values.iter().find(|known| is_value(input, recorded, &known.hashed))
    }
}

/// The inputs that differ between two classes; empty if they are unknown.
#[must_use]
pub fn roll_causes(change: &ClassChange<'_>, known: &KnownValues) -> Vec<RollCause> {
    let Difference::Inputs(inputs) = &change.difference else { return Vec::new() };
    let mut causes = BTreeSet::new();
    for input in inputs {
        if input.because.is_empty() {
            causes.insert(cause(change, known, &input.input, &input.input));
        }
        for behind in &input.because {
            causes.insert(cause(change, known, behind, &format!("{INDIRECT_PREFIX}{behind}")));
        }
    }
    causes.into_iter().collect()
}

fn cause(change: &ClassChange<'_>, known: &KnownValues, name: &str, recorded: &str) -> RollCause {
    let from = known.value(change.from, recorded);
    let to = known.value(change.to, recorded);
    let image = match (from, to) {
        (Some(from), Some(to)) if from.image == to.image => to.image.clone(),
        _ => None,
    };
    let text = |value: Option<&KnownValue>| {
        value.map(|value| match &value.image {
            Some(name) if image.is_none() => format!("{name} {}", value.text),
            _ => value.text.clone(),
        })
    };
    RollCause { input: name.to_owned(), from: text(from), to: text(to), image }
}

impl fmt::Display for RollCause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let input = shortened(&self.input, LONGEST_VALUE);
        match (&self.from, &self.to) {
            (Some(from), Some(to)) => write!(formatter, "{input} {from} → {to}"),
            (None, Some(to)) => write!(formatter, "{input}, now {to} (the earlier value is not known)"),
            (Some(from), None) => write!(formatter, "{input}, before {from} (the later value is not known)"),
            (None, None) => formatter.write_str(&input),
        }
    }
}

#[cfg(test)]
mod tests {
    use decisions::worker::plan::class_inputs::{Detail, History};
    use serde_json::json;

    use super::*;

    fn known() -> KnownValues {
        KnownValues::of(&[
            json!({"kind": "Worker", "spec": {"pools": [{"machineType": "m5", "kubernetesVersion": "1.35.1",
                "machineImage": {"name": "gardenlinux", "version": "1992.6.0"}}]}}),
            json!({"kind": "Cluster", "spec": {"cloudProfile": {"spec": {
                "machineImages": [{"name": "gardenlinux", "versions": [{"version": "1992.3.0"}]},
                    {"name": "ubuntu", "versions": [{"version": "22.4"}]}],
                "kubernetes": {"versions": [{"version": "1.34.2"}]}, "machineTypes": [{"name": "m6"}]}}}}),
        ])
    }

    fn causes(from: &[(&str, &str)], to: &[(&str, &str)]) -> Vec<String> {
        let generation = |inputs: &[(&str, &str)]| Generation {
            class: inputs.iter().map(|(_, value)| *value).collect(),
            since: jiff::Timestamp::UNIX_EPOCH,
            found: false,
            inputs: Some(inputs.iter().map(|(name, value)| ((*name).to_owned(), recorded(name, value))).collect()),
            owner: None,
        };
        let history = History {
            detail: Detail::Fields,
            generations: vec![generation(to), generation(from)],
            wait: None,
            mark: None,
        };
        let change = history.changes().next().unwrap();
        roll_causes(&change, &known()).iter().map(ToString::to_string).collect()
    }

    /// The digest that [`is_value`] recognises.
    fn recorded(name: &str, value: &str) -> String {
        use sha2::{Digest as _, Sha256};
        let mut hash = Sha256::new_with_prefix(name.as_bytes());
        hash.update([0]);
        hash.update(value.as_bytes());
        hex::encode(hash.finalize())[..8].to_owned()
    }

    #[test]
    fn recognises_public_values() {
        let image = |from: &str, to: &str| {
            let opaque = "nodeAgentSecretName";
            causes(&[("~machineImage", from), (opaque, "a")], &[("~machineImage", to), (opaque, "b")])
        };
        assert_eq!(image("gardenlinux1992.3.0", "gardenlinux1992.6.0"), ["machineImage 1992.3.0 → 1992.6.0"]);
        assert_eq!(image("ubuntu22.4", "gardenlinux1992.6.0"), ["machineImage ubuntu 22.4 → gardenlinux 1992.6.0"]);
        assert_eq!(
            image("gardenlinux1.0", "gardenlinux1992.6.0"),
            ["machineImage, now gardenlinux 1992.6.0 (the earlier value is not known)"]
        );
        assert_eq!(
            causes(&[("kubernetesVersion", "1.34")], &[("kubernetesVersion", "1.35")]),
            ["kubernetesVersion 1.34 → 1.35"]
        );
        assert_eq!(causes(&[("machineType", "m5")], &[("machineType", "m6")]), ["machineType m5 → m6"]);
        assert_eq!(causes(&[("identity", "a")], &[("identity", "b")]), ["identity"], "a secret stays one");
    }
}

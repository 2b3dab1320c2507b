//! A lookup defines which image names stand for which image, version and flavor, and whose images may be used.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::identity::Identity;
use super::pattern::{Pattern, Template};
use super::record::{ImageRecord, fact, spelled, text};
use super::reference::ImageReference;
use super::sources::ec2_attributes::{attribute_name, is_attribute};
use super::versions::VersionRange;
use wire::api::bounded_text::{Bound, named};
use wire::api::gardener::Capabilities;
use wire::api::gotext::json::decode_value;
pub use wire::api::image_objects::ImageFilter as Filter;
use wire::api::image_objects::ImageLookupSpec;

/// Maximum number of combinations of operating systems, architectures and custom field values.
const MOST_COMBINATIONS: usize = 1000;
/// Maximum size of a list of facts in an error.
const FACTS: Bound = Bound { items: 30, bytes: 500 };

/// The lookup is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct LookupError {
    /// Path of the invalid field.
    pub path: String,
    /// The problem.
    pub problem: String,
}

/// A lookup as a document.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(rename = "apiVersion")]
    _api_version: Option<String>,
    #[serde(rename = "kind")]
    _kind: String,
    metadata: Metadata,
    spec: ImageLookupSpec,
}

#[derive(Clone, Debug, Deserialize)]
struct Metadata {
    name: String,
}

/// A valid lookup.
#[derive(Clone, Debug)]
pub struct Lookup {
    /// Its name.
    pub name: String,
    /// `spec.type` of the CloudProfiles that the images are for.
    pub provider: &'static str,
    /// Owners whose images may be used.
    pub owners: Vec<String>,
    /// Whether images have to be encrypted; if false, they must not be.
    pub encrypted: bool,
    /// Filters in addition to the name.
    pub filters: Vec<Filter>,
    /// Facts that distinguish flavors.
    pub facts: Vec<String>,
    /// Whether the order of owners takes precedence over the age of images.
    pub owners_in_order: bool,
    /// The identity for requests to its cloud.
    pub identity: Identity,
    /// Matching versions.
    pub versions: VersionRange,
    /// Possible meanings of a name.
    pub combinations: Vec<Combination>,
}

/// A possible meaning of a name, except the version.
#[derive(Clone, Debug)]
pub struct Combination {
    /// Pattern of the names.
    pub pattern: Pattern,
    /// Name of the image in CloudProfiles.
    pub image: String,
    /// The flavor according to the name: architecture, operating system, custom field values.
    pub flavor: Arc<Capabilities>,
}

impl Lookup {
    /// Verifies that the images have the facts to which the lookup refers.
    ///
    /// # Errors
    /// The error has the path of the first unknown fact.
    pub fn ensure_known_facts(&self, images: &[ImageRecord]) -> Result<(), LookupError> {
        ensure_known_facts("spec.filters", &self.filters, images.iter())?;
        for (index, name) in self.facts.iter().enumerate() {
            ensure_known_fact(&format!("spec.facts[{index}]"), name, images.iter())?;
        }
        Ok(())
    }

    /// Decodes an object `ImageLookup`.
    ///
    /// # Errors
    /// The error has the path of the invalid field.
    pub fn read(document: &Value) -> Result<Self, LookupError> {
        let Document { metadata, spec, .. } =
            decode_value(document).map_err(|error| LookupError { path: error.path, problem: error.message })?;
        Self::new(&metadata.name, spec)
    }

    /// Converts the spec of an object.
    ///
    /// # Errors
    /// The error has the path of the invalid field.
    pub fn new(name: &str, spec: ImageLookupSpec) -> Result<Self, LookupError> {
        let error = |path: &str, problem: String| LookupError { path: format!("spec.{path}"), problem };
        let provider = ImageReference::provider(&spec.provider)
            .ok_or_else(|| error("provider", "no images of this provider are known here".to_owned()))?;
        for (path, is_empty, problem) in [
            ("owners", spec.owners.is_empty(), "name at least one owner: anybody can give an image this name"),
            ("owners", spec.owners.iter().any(|owner| owner.contains('*')), "an owner is an account, not a pattern"),
            ("arch", spec.arch.is_empty(), "name at least one architecture"),
            ("os", spec.os.is_empty() && spec.image.is_none(), "name an operating system, or the image"),
            ("ec2", spec.ec2.is_some() && provider != "aws", "EC2 has images of the provider aws only"),
            ("ec2.regions", spec.ec2.as_ref().is_some_and(|ec2| ec2.regions.is_empty()), "name at least one region"),
        ] {
            if is_empty {
                return Err(error(path, problem.to_owned()));
            }
        }
        let versions = VersionRange::parse(&spec.versions).map_err(|problem| error("versions", problem.to_string()))?;
        let identity = Identity::read(spec.identity_ref.as_ref())
            .map_err(|(member, problem)| error(&format!("identityRef.{member}"), problem))?;
        if identity != Identity::OfProgram && provider != "aws" {
            return Err(error("identityRef", "only lookups for aws have one".to_owned()));
        }
        let combinations = combinations(&spec)?;
        Ok(Self {
            name: text(name),
            provider,
            owners: spec.owners,
            encrypted: spec.encrypted,
            filters: spec.filters,
            facts: spec.facts,
            owners_in_order: spec.owners_in_order,
            identity,
            versions,
            combinations,
        })
    }
}

/// Verifies that the images have the facts to which filters refer. A misspelled fact would exclude every image.
///
/// # Errors
/// For the first unknown fact; `path` is that of the filters.
pub fn ensure_known_facts<'i>(
    path: &str,
    filters: &[Filter],
    images: impl Iterator<Item = &'i ImageRecord> + Clone,
) -> Result<(), LookupError> {
    for (index, filter) in filters.iter().enumerate() {
        if filter.name.strip_prefix("tag:").is_none() {
            ensure_known_fact(&format!("{path}[{index}].name"), &filter.name, images.clone())?;
        }
    }
    Ok(())
}

fn ensure_known_fact<'i>(
    path: &str,
    name: &str,
    images: impl Iterator<Item = &'i ImageRecord> + Clone,
) -> Result<(), LookupError> {
    let attribute = attribute_name(name);
    let is_defined = fact::ALL.contains(&attribute.as_str()) || is_attribute(&attribute);
    let is_empty = images.clone().next().is_none();
    if is_empty || is_defined || images.clone().any(|image| image.values(&attribute).is_some()) {
        return Ok(());
    }
    let mut known: BTreeSet<&str> = fact::ALL.into_iter().collect();
    known.extend(images.flat_map(|image| image.facts.0.keys()).map(String::as_str));
    let known: Vec<&str> = known.into_iter().collect();
    let (name, known) = (text(name), named(&known, FACTS));
    let problem = format!("no image has the fact {name:?}; there are {known}, attributes of EC2, and tags as tag:NAME");
    Err(LookupError { path: path.to_owned(), problem })
}

/// Verifies that the template uses the values of the lookup. Otherwise every image would have all of them.
fn ensure_used(spec: &ImageLookupSpec, template: &Template) -> Result<(), LookupError> {
    let error = |path: &str, problem: String| LookupError { path: format!("spec.{path}"), problem };
    for (index, field) in spec.custom_fields.iter().enumerate() {
        if !template.uses(&field.name) {
            let path = format!("customFields[{index}].name");
            return Err(error(&path, format!("lookupFormat does not use {{{{.{}}}}}", text(&field.name))));
        }
    }
    if spec.os.len() > 1 && !template.uses("OS") && !template.uses("BaseOS") {
        return Err(error("os", "lookupFormat uses neither {{.OS}} nor {{.BaseOS}}".to_owned()));
    }
    Ok(())
}

/// Every combination of operating system, architecture and custom field values.
fn combinations(spec: &ImageLookupSpec) -> Result<Vec<Combination>, LookupError> {
    let error = |path: &str, problem: String| LookupError { path: format!("spec.{path}"), problem };
    let mut variables = vec!["OS", "BaseOS", "ARCH"];
    for (index, field) in spec.custom_fields.iter().enumerate() {
        let path = format!("customFields[{index}]");
        if field.valid_values.is_empty() {
            return Err(error(&path, "no valid value excludes every image".to_owned()));
        }
        if variables.contains(&field.name.as_str()) {
            return Err(error(&path, "the name is taken".to_owned()));
        }
        variables.push(&field.name);
    }
    let template = format!("{}{}", spec.image_prefix, spec.lookup_format);
    let template =
        Template::parse(&template, &variables).map_err(|problem| error("lookupFormat", problem.to_string()))?;
    ensure_used(spec, &template)?;
    let systems = if spec.os.is_empty() { vec![String::new()] } else { spec.os.clone() };
    let mut all: Vec<BTreeMap<String, String>> = vec![BTreeMap::new()];
    let fields = spec.custom_fields.iter().map(|field| (field.name.as_str(), &field.valid_values));
    for (name, values) in [("OS", &systems), ("ARCH", &spec.arch)].into_iter().chain(fields) {
        if all.len() * values.len() > MOST_COMBINATIONS {
            return Err(error("lookupFormat", format!("more than {MOST_COMBINATIONS} combinations of values")));
        }
        all = all
            .iter()
            .flat_map(|known| {
                values.iter().map(|value| {
                    let mut more = known.clone();
                    more.insert(name.to_owned(), value.clone());
                    more
                })
            })
            .collect();
    }
    let combination = |mut values: BTreeMap<String, String>| {
        let system = values.get("OS").cloned().unwrap_or_default();
        values.insert("BaseOS".to_owned(), system.clone());
        let mut flavor = Capabilities::from_iter(
            spec.custom_fields
                .iter()
                .filter_map(|field| Some((field.name.clone(), [values.get(&field.name)?.clone()]))),
        );
        flavor.0.insert(
            fact::ARCHITECTURE.to_owned(),
            values.get("ARCH").map(|value| spelled(value)).into_iter().collect(),
        );
        if spec.image.is_some() && spec.os.len() > 1 {
            flavor.0.insert(fact::OPERATING_SYSTEM.to_owned(), vec![text(&system)]);
        }
        let pattern = template.pattern(&values).map_err(|problem| error("lookupFormat", problem.to_string()))?;
        Ok(Combination { pattern, image: text(spec.image.as_ref().unwrap_or(&system)), flavor: Arc::new(flavor) })
    };
    all.into_iter().map(combination).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lookup(member: &str, value: Value) -> Result<Lookup, LookupError> {
        let mut document = json!({"kind": "ImageLookup", "metadata": {"name": "l"}, "spec": {
            "provider": "aws", "imagePrefix": "capa-ami", "lookupFormat": "-{{.OS}}-?{{.K8sVersion}}-*",
            "os": ["ubuntu-24.04"], "arch": ["amd64"], "versions": ">=1.33", "owners": ["111111111111"],
        }});
        document["spec"][member] = value;
        Lookup::read(&document)
    }

    #[test]
    fn what_is_wrong_with_a_lookup_is_located() {
        assert_eq!(lookup("filters", json!([])).unwrap().combinations.len(), 1);
        for (member, value, expected) in [
            ("owners", json!([]), "spec.owners: name at least one owner: anybody can give an image this name"),
            ("owners", json!(["*"]), "spec.owners: an owner is an account, not a pattern"),
            ("versions", json!(">=1.36, <1.33"), "spec.versions: no version is in \">=1.36, <1.33\""),
            (
                "lookupFormat",
                json!("-{{.Os}}"),
                "spec.lookupFormat: unknown variable \"Os\" at character 10; there are K8sVersion, K8sMinor, OS, BaseOS, ARCH",
            ),
            (
                "customFields",
                json!([{"name": "ARCH", "validValues": ["a"]}]),
                "spec.customFields[0]: the name is taken",
            ),
            (
                "customFields",
                json!([{"name": "x", "validValues": []}]),
                "spec.customFields[0]: no valid value excludes every image",
            ),
            (
                "customFields",
                json!([{"name": "bootType", "validValues": ["UEFI", "BIOS"]}]),
                "spec.customFields[0].name: lookupFormat does not use {{.bootType}}",
            ),
            ("ec2", json!({"regions": []}), "spec.ec2.regions: name at least one region"),
            ("identityRef", json!({"kind": "Role"}), "spec.identityRef.roleARN: name the role to assume"),
            ("provider", json!("azzure"), "spec.provider: no images of this provider are known here"),
        ] {
            assert_eq!(lookup(member, value).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn rejects_facts_that_no_image_has() {
        let reference = ImageReference::new("aws", "ami", "ami-0123456789abcdef0").unwrap();
        let image = [ImageRecord::new("aws", reference, "n").with_fact("disk", &["nvme"])];
        let filters = |name: &str| {
            lookup("filters", json!([{"name": "tag:a", "values": ["b"]}, {"name": name, "values": ["b"]}]))
        };
        for known in ["disk", "bootMode", "tag:x", "virtualizationType", "root-device-type", "boot-mode"] {
            assert_eq!(filters(known).unwrap().ensure_known_facts(&image), Ok(()));
        }
        let error = filters("bootmode").unwrap().ensure_known_facts(&image).unwrap_err().to_string();
        assert!(error.starts_with("spec.filters[1].name: no image has the fact \"bootmode\"; there are"), "{error}");
        let error = lookup("facts", json!(["tag:x"])).unwrap().ensure_known_facts(&image).unwrap_err().to_string();
        assert!(error.starts_with("spec.facts[0]: no image has the fact \"tag:x\""), "{error}");
        assert_eq!(filters("bootmode").unwrap().ensure_known_facts(&[]), Ok(()));
    }
}

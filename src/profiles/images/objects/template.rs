//! AWSMachineTemplates that opt in. Each gets a selection, and its first resolutions as labels. An existing label
//! takes precedence, so the first writer decides. To update a version, write a newer image into its label.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::image::{LOOKUP_LABEL, is_label};
use super::write::Write;
use crate::images::record::{fact, text};
use wire::api::capa::AwsMachineTemplate;
use wire::api::image_objects::{
    Consumer, ImageFilter, ImageLookup, ImageLookupSpec, ImageSelection, ImageSelectionSpec, ImageSelectionStatus,
};

/// Prefix of the label for a version.
pub const VERSION_LABEL: &str = "cluster.x-k8s.io/version-ami-";
/// Label of a template with the region of its machines.
const REGION_LABEL: &str = "topology.kubernetes.io/region";
/// Label of a template with the architecture of its machines, if its status has none.
const ARCHITECTURE_LABEL: &str = "kubernetes.io/arch";
/// Annotation of a template with further filters: a JSON list with the members of a lookup's `filters`.
const FILTERS: &str = "images.gardener-extension-worker/additional-filters";
/// Maximum size of that list.
const MOST_FILTERS: usize = 50;
const KIND: &str = "AWSMachineTemplate";

/// The next write for a template that has opted in; `Ok(None)` if there is none.
///
/// # Errors
/// If the template can't be processed.
pub fn follow(
    template: &AwsMachineTemplate,
    lookup: Option<&ImageLookup>,
    selection: Option<&ImageSelection>,
) -> Result<Option<Write>, String> {
    let recorded: BTreeMap<String, String> =
        recorded(template).map(|(version, name)| (version.to_owned(), name.to_owned())).collect();
    let Some(selection) = selection else {
        let spec = selection_spec(template, lookup, recorded)?;
        let metadata = ObjectMeta {
            name: template.metadata.name.clone(),
            namespace: template.metadata.namespace.clone(),
            owner_references: Some(vec![owner(template)]),
            ..ObjectMeta::default()
        };
        return Ok(Some(Write::CreateSelection(ImageSelection {
            metadata,
            spec,
            status: ImageSelectionStatus::default(),
        })));
    };
    let owners = selection.metadata.owner_references.iter().flatten();
    if !owners.into_iter().any(|owner| Some(&owner.uid) == template.metadata.uid.as_ref()) {
        return Err("an ImageSelection of this name belongs to somebody else".to_owned());
    }
    let mut images = selection.spec.images.clone();
    images.extend(recorded.clone());
    let spec = selection_spec(template, lookup, images)?;
    if spec != selection.spec {
        return Ok(Some(Write::ReplaceSelection(ImageSelection { spec, ..selection.clone() })));
    }
    labels_to_write(template, selection.spec.images.iter().filter(|(version, _)| !recorded.contains_key(*version)))
}

/// The write for versions without a label on the template.
///
/// # Errors
/// If all remaining values are invalid as labels.
fn labels_to_write<'a>(
    template: &AwsMachineTemplate,
    new: impl Iterator<Item = (&'a String, &'a String)>,
) -> Result<Option<Write>, String> {
    let label = |(version, name): (&String, &String)| (format!("{VERSION_LABEL}{version}"), name.clone());
    let bare = |label: &str| label.split_once('/').map_or(label, |(_, bare)| bare).to_owned();
    let (new, impossible): (BTreeMap<String, String>, BTreeMap<String, String>) =
        new.map(label).partition(|(label, name)| is_label(&bare(label)) && is_label(name));
    if !new.is_empty() {
        return Ok(Some(Write::TemplateLabels(Box::new(template.clone()), new)));
    }
    let impossible: Vec<String> = impossible.iter().map(|(label, name)| format!("{}={name}", bare(label))).collect();
    if impossible.is_empty() { Ok(None) } else { Err(format!("no label can say this: {}", impossible.join(", "))) }
}

/// The lookup for which a template has opted in. `None` if it has a fixed image or is being deleted.
#[must_use]
pub fn lookup_of(template: &AwsMachineTemplate) -> Option<&str> {
    let is_open = template.spec.template.spec.ami.id.is_empty() && template.metadata.deletion_timestamp.is_none();
    if is_open { label(template, LOOKUP_LABEL) } else { None }
}

/// Versions and image names in the labels of a template.
pub(super) fn recorded(template: &AwsMachineTemplate) -> impl Iterator<Item = (&str, &str)> {
    let labels = template.metadata.labels.iter().flatten();
    let of_version = labels.filter_map(|(label, name)| Some((label.strip_prefix(VERSION_LABEL)?, name.as_str())));
    of_version.filter(|(version, name)| !version.is_empty() && !name.is_empty())
}

fn label<'a>(template: &'a AwsMachineTemplate, name: &str) -> Option<&'a str> {
    template.metadata.labels.as_ref()?.get(name).map(String::as_str).filter(|value| !value.is_empty())
}

fn owner(template: &AwsMachineTemplate) -> OwnerReference {
    OwnerReference {
        api_version: <AwsMachineTemplate as k8s_openapi::Resource>::API_VERSION.to_owned(),
        kind: KIND.to_owned(),
        name: template.metadata.name.clone().unwrap_or_default(),
        uid: template.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: None,
    }
}

/// Requirements of the machines of a template.
fn selection_spec(
    template: &AwsMachineTemplate,
    lookup: Option<&ImageLookup>,
    images: BTreeMap<String, String>,
) -> Result<ImageSelectionSpec, String> {
    let spec = &lookup.ok_or("there is no such ImageLookup")?.spec;
    let machine = &template.spec.template.spec;
    let only = |values: &[String]| if let [one] = values { Some(one.clone()) } else { None };
    let system = Some(machine.image_lookup_base_os.clone()).filter(|os| !os.is_empty()).or_else(|| only(&spec.os));
    let architecture = Some(template.status.node_info.architecture.clone()).filter(|known| !known.is_empty());
    let architecture =
        label(template, ARCHITECTURE_LABEL).map(str::to_owned).or(architecture).or_else(|| only(&spec.arch));
    Ok(ImageSelectionSpec {
        consumer: Some(Consumer { kind: KIND.to_owned(), name: template.metadata.name.clone().unwrap_or_default() }),
        provider: spec.provider.clone(),
        realm: None,
        region: Some(
            label(template, REGION_LABEL).ok_or_else(|| format!("it needs the label {REGION_LABEL}"))?.to_owned(),
        ),
        image: spec
            .image
            .clone()
            .or_else(|| system.clone())
            .ok_or("it needs spec.template.spec.imageLookupBaseOS: the lookup has several")?,
        architecture: architecture
            .ok_or_else(|| format!("it needs the label {ARCHITECTURE_LABEL}: the lookup has several"))?,
        versions: spec.versions.clone(),
        owners: owners(spec, &machine.image_lookup_org)?,
        filters: [filters(spec, system), additional_filters(template)?].concat(),
        encrypted: spec.encrypted,
        owners_in_order: spec.owners_in_order,
        images,
    })
}

/// Owners of the images: those of the lookup, or the one of them that the template names.
fn owners(spec: &ImageLookupSpec, wanted: &str) -> Result<Vec<String>, String> {
    match wanted {
        "" => Ok(spec.owners.clone()),
        owner if spec.owners.iter().any(|known| known == owner) => Ok(vec![owner.to_owned()]),
        owner => Err(format!("its imageLookupOrg {} is no owner of the lookup", text(owner))),
    }
}

/// The filters in the annotation of a template.
fn additional_filters(template: &AwsMachineTemplate) -> Result<Vec<ImageFilter>, String> {
    let annotations = template.metadata.annotations.as_ref();
    let Some(written) = annotations.and_then(|annotations| annotations.get(FILTERS)) else { return Ok(Vec::new()) };
    let filters: Vec<ImageFilter> =
        serde_json::from_str(written).map_err(|error| format!("annotation {FILTERS}: {error}"))?;
    if filters.len() > MOST_FILTERS {
        return Err(format!("annotation {FILTERS}: more than {MOST_FILTERS} filters"));
    }
    Ok(filters)
}

/// If the image has a name of its own, the operating system becomes a filter.
fn filters(spec: &ImageLookupSpec, system: Option<String>) -> Vec<ImageFilter> {
    let system = if spec.image.is_some() && spec.os.len() > 1 { system } else { None };
    let of_system = system.map(|system| ImageFilter { name: fact::OPERATING_SYSTEM.to_owned(), values: vec![system] });
    spec.filters.iter().cloned().chain(of_system).collect()
}

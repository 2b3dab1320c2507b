//! The size of the stored object, how many more versions fit into it, and which parts can be removed.

use serde::Serialize;
use serde_json::Value;

use super::Lint;
use super::finding::{Rule, Severity, count};
use crate::resolved_profile::document::{
    CORE_IMAGES, PROVIDER_IMAGES, at_path, objects, text, versions, without_status,
};
use crate::resolved_profile::profile::Profile;
use wire::api::gotext::json::to_go_json;

/// Etcd's default for the largest request; larger objects can't be stored.
const LIMIT: usize = 1_572_864;
/// Percentage of the limit from which the size is reported.
const REPORTED_PERCENT: usize = 75;
/// If fewer versions than this fit, the size is reported.
const MIN_REMAINING_VERSIONS: usize = 20;

/// The size of a profile.
///
/// It is the size as JSON, because seeds store the profile in every Cluster in addition to Shoot and Seed, and custom
/// resources are stored as JSON. The garden stores the profile as protobuf, which is smaller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Size {
    /// Size of the object in bytes, without `status` and managed fields.
    pub bytes: usize,
    /// Maximum size in bytes that can be stored.
    pub limit: usize,
    /// Percentage of the limit, rounded down.
    pub percent: usize,
    /// The size of another version of each image, in both halves.
    pub images: Vec<ImageCost>,
    /// How many more versions fit, if all images get new ones at the same rate; absent without images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room_for_versions: Option<usize>,
    /// Parts that can be removed without an effect on users.
    pub prunable: Vec<Prunable>,
}

/// The size of an image's versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageCost {
    /// Name of the image.
    pub image: String,
    /// Number of versions.
    pub versions: usize,
    /// Average size of a version in bytes, in both halves.
    pub bytes_per_version: usize,
}

/// A part that can be removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Prunable {
    /// Description of the part.
    pub what: String,
    /// Its size in bytes.
    pub bytes: usize,
}

impl Size {
    /// The size of a document that can't be analyzed further.
    pub(super) fn of_document(document: &Value) -> Self {
        let bytes = stored_bytes(document);
        Self {
            bytes,
            limit: LIMIT,
            percent: bytes * 100 / LIMIT,
            images: Vec::new(),
            room_for_versions: None,
            prunable: Vec::new(),
        }
    }
}

/// Size of an object in bytes, without fields that its author does not write.
pub(in crate::resolved_profile) fn stored_bytes(document: &Value) -> usize {
    let mut document = without_status(document);
    if let Some(metadata) = document.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    to_go_json(&document).len()
}

impl Lint<'_> {
    pub(super) fn size(&mut self) -> Size {
        let document = &self.profile.document;
        let mut size = Size::of_document(document);
        size.images = image_costs(self.profile);
        let versions: usize = size.images.iter().map(|image| image.versions).sum();
        let bytes: usize = size.images.iter().map(|image| image.versions * image.bytes_per_version).sum();
        let average = bytes.checked_div(versions).unwrap_or_default();
        size.room_for_versions = LIMIT.saturating_sub(size.bytes).checked_div(average);
        size.prunable = self.prunable();
        let is_tight = size.room_for_versions.is_some_and(|room| room < MIN_REMAINING_VERSIONS);
        if size.percent >= REPORTED_PERCENT || is_tight {
            self.large(&size, average);
        }
        size
    }

    fn large(&mut self, size: &Size, average: usize) {
        let kib = |bytes: usize| format!("{} KiB", bytes.div_ceil(1024));
        let room = size.room_for_versions.unwrap_or_default();
        let reason = format!(
            "As JSON the object has {}, {} % of the {} that can be stored; seeds store it like that in every Cluster, next to \
             Shoot and Seed. A version takes {}: there is room for {} more.",
            kib(size.bytes),
            size.percent,
            kib(LIMIT),
            kib(average),
            count(room, "version")
        );
        let prunable: Vec<String> =
            size.prunable.iter().map(|part| format!("{} ({})", part.what, kib(part.bytes))).collect();
        let advice = if prunable.is_empty() {
            "Remove unused versions, and see what cloudprofile minimize saves.".to_owned()
        } else {
            format!("Remove {}; and see what cloudprofile minimize saves.", prunable.join(", "))
        };
        let severity = if size.bytes > LIMIT { Severity::Error } else { Severity::Warning };
        let name = self.profile.name().to_owned();
        self.find_as(severity, Rule::Size, "spec", name, reason, advice);
    }

    /// Expired versions, versions that no machine type can use or that are not offered, and flavors that no machine
    /// type gets.
    fn prunable(&self) -> Vec<Prunable> {
        let mut prunable = Vec::new();
        let mut add = |what: String, bytes: usize| {
            if bytes > 0 {
                prunable.push(Prunable { what, bytes });
            }
        };
        let expired = self.resolved_profile().images.iter().filter(|version| version.is_expired());
        let expired: Vec<(&str, &str)> =
            expired.map(|version| (version.image.as_str(), version.version.as_str())).collect();
        let bytes = expired.iter().map(|(image, version)| version_bytes(self.profile, image, version)).sum();
        add(count(expired.len(), "expired version"), bytes);
        for (rule, part, which) in [
            (Rule::UnusedVersion, "version", "that no machine type can use"),
            (Rule::UnreachableFlavor, "flavor", "that no machine type gets"),
            (Rule::UnlistedImage, "version", "that no one can select"),
        ] {
            let found: Vec<_> = self.findings.iter().filter(|finding| finding.rule == rule).collect();
            let parts = found.iter().filter_map(|finding| at_path(&self.profile.document, &finding.path));
            let bytes = parts.map(|part| to_go_json(part).len() + 1).sum();
            add(format!("{} {which}", count(found.len(), part)), bytes);
        }
        prunable
    }
}

fn image_costs(profile: &Profile) -> Vec<ImageCost> {
    let images = profile.spec.machine_images.iter().filter(|image| !image.versions.is_empty());
    let cost = |image: &wire::api::gardener::ProfileImage| {
        let bytes: usize =
            image.versions.iter().map(|version| version_bytes(profile, &image.name, &version.version)).sum();
        let versions = image.versions.len();
        ImageCost { image: image.name.clone(), versions, bytes_per_version: bytes.div_ceil(versions) }
    };
    images.map(cost).collect()
}

/// Size of a version in bytes, in both halves.
fn version_bytes(profile: &Profile, image: &str, version: &str) -> usize {
    let half = |pointer: &str| -> usize {
        let versions =
            objects(&profile.document, pointer).filter(|known| text(known, "name") == image).flat_map(versions);
        let versions = versions.filter(|known| text(known, "version") == version);
        // One byte for the comma between list items.
        versions.map(|known| to_go_json(&known.clone().into()).len() + 1).sum()
    };
    half(CORE_IMAGES) + half(PROVIDER_IMAGES)
}

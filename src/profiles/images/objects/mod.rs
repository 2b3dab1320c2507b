//! Images as objects of a cluster (docs/images.md#objects). Every decision is computed from all objects.
//!
//! ```text
//!  sources ─► Catalogue ─┐
//!  ImageLookups ─────────┴─► discovery ─► MachineImages ─┐
//!                                  ▲ images in use       ├─► selection ─► first resolution, UpgradeAvailable
//!  AWSMachineTemplates ─► template ┴─► ImageSelections ──┘
//! ```
//!
//! Resolution sends no requests to clouds and only uses the objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use crate::images::record::text;
use wire::api::capa::AwsMachineTemplate;
use wire::api::image_objects::{ImageLookup, ImageSelection};

pub mod discovery;
mod event;
pub mod image;
pub mod numbers;
pub mod selection;
pub mod template;
pub mod write;

use discovery::{SourceResults, Sources, discover};
use image::{ImageObject, lookup_label};
use selection::{KnownImages, select};
use template::{follow, lookup_of, recorded};
use write::Write;

/// Maximum number of reported unreadable images.
const MOST_PROBLEMS: usize = 20;

/// All objects for images.
#[derive(Debug, Default)]
pub struct Objects {
    /// MachineImages.
    pub images: Vec<Arc<ImageObject>>,
    /// ImageLookups.
    pub lookups: Vec<Arc<ImageLookup>>,
    /// ImageSelections.
    pub selections: Vec<Arc<ImageSelection>>,
    /// Machine templates of Cluster API, if their kind is served.
    pub templates: Vec<Arc<AwsMachineTemplate>>,
}

impl Objects {
    /// Writes for images and lookups if no lookup uses a cloud.
    #[must_use]
    pub fn images_to_write(&self, files: Sources<'_>, now: Timestamp) -> Vec<Write> {
        self.images_to_write_with((files, now), &SourceResults::default(), now)
    }

    /// Writes for images and lookups, with the responses of clouds and the time at which the files were read.
    #[must_use]
    pub fn images_to_write_with(
        &self,
        files: (Sources<'_>, Timestamp),
        results: &SourceResults,
        now: Timestamp,
    ) -> Vec<Write> {
        discover(&self.images, &self.lookups, (files, results), &self.used(), now)
    }

    /// Writes for selections and templates, and problems with images and templates.
    #[must_use]
    pub fn selections_to_write(&self, now: Timestamp) -> (Vec<Write>, Vec<String>) {
        let images = KnownImages::new(&self.images);
        let mut writes = BTreeMap::new();
        let mut problems = self.unreadable_images();
        for selection in self.selections.iter().filter(|selection| selection.metadata.deletion_timestamp.is_none()) {
            let write = select(selection, &images, now);
            writes.insert((&selection.metadata.namespace, &selection.metadata.name), write);
        }
        for template in &self.templates {
            let Some(lookup) = lookup_of(template) else { continue };
            let location = (&template.metadata.namespace, &template.metadata.name);
            let lookup = self.lookups.iter().find(|known| lookup_label(known) == lookup);
            let selection =
                self.selections.iter().find(|known| (&known.metadata.namespace, &known.metadata.name) == location);
            match follow(template, lookup.map(Arc::as_ref), selection.map(Arc::as_ref)) {
                // The template takes precedence. The next run updates its selection.
                Ok(Some(write)) => drop(writes.insert(location, Some(write))),
                Ok(None) => {}
                Err(problem) => problems.push(text(&format!(
                    "AWSMachineTemplate {}/{}: {problem}",
                    location.0.as_deref().unwrap_or_default(),
                    location.1.as_deref().unwrap_or_default()
                ))),
            }
        }
        (writes.into_values().flatten().collect(), problems)
    }

    fn unreadable_images(&self) -> Vec<String> {
        let problem = |image: &Arc<ImageObject>| {
            let problem = image.record.as_ref().err()?;
            Some(text(&format!("MachineImage {}: {problem}", image.name)))
        };
        self.images.iter().filter_map(problem).take(MOST_PROBLEMS).collect()
    }

    /// Names of the images in use.
    fn used(&self) -> BTreeSet<&str> {
        let selected = self.selections.iter().flat_map(|selection| selection.spec.images.values().map(String::as_str));
        let of_templates = self.templates.iter().flat_map(|template| {
            let fixed = template.spec.template.spec.ami.id.as_str();
            recorded(template).map(|(_, name)| name).chain([fixed])
        });
        selected.chain(of_templates).collect()
    }
}

//! Writes. A replaced object carries the version that the decision was based on, so the
//! second of two writers gets a conflict.

use std::collections::BTreeMap;
use std::sync::Arc;

pub use super::event::ImageEvent;
use super::image::{ImageObject, ImageToWrite};
use wire::api::capa::AwsMachineTemplate;
use wire::api::image_objects::{ImageLookup, ImageSelection};

/// A write.
#[derive(Clone, Debug)]
pub enum Write {
    /// A new image.
    CreateImage(Box<ImageToWrite>),
    /// An image with changed data.
    ReplaceImage(Box<ImageToWrite>),
    /// An image that no source has.
    DeleteImage(Arc<ImageObject>),
    /// Result of a lookup.
    LookupStatus(ImageLookup, Option<ImageEvent>),
    /// A new selection.
    CreateSelection(ImageSelection),
    /// First resolutions, or changed requirements of the consumer.
    ReplaceSelection(ImageSelection),
    /// Newer images.
    SelectionStatus(ImageSelection, Option<ImageEvent>),
    /// First resolutions as labels of the template.
    TemplateLabels(Box<AwsMachineTemplate>, BTreeMap<String, String>),
}

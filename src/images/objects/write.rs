//! What is to be written, and what people are told of it. Objects that are replaced carry the version that they were decided from: whoever comes second loses.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::image::{ImageObject, ImageToWrite};
use crate::api::capa::AwsMachineTemplate;
use crate::api::image_objects::{ImageLookup, ImageSelection, ImageUpgrade};

/// A write.
#[derive(Clone, Debug)]
pub enum Write {
    /// A new image.
    CreateImage(Box<ImageToWrite>),
    /// An image of which something else is known now.
    ReplaceImage(Box<ImageToWrite>),
    /// An image that is gone.
    DeleteImage(Arc<ImageObject>),
    /// What a lookup found.
    LookupStatus(ImageLookup, Option<ImageEvent>),
    /// A new selection.
    CreateSelection(ImageSelection),
    /// A first resolution, or something else that the consumer asks for.
    ReplaceSelection(ImageSelection),
    /// What is newer.
    SelectionStatus(ImageSelection, Option<ImageEvent>),
    /// First resolutions, for those who read them at the template.
    TemplateLabels(Box<AwsMachineTemplate>, BTreeMap<String, String>),
}

/// What happened to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageEvent {
    /// A lookup, or the sources, have other errors than before.
    LookupFailed(Vec<String>),
    /// There are images that are newer than those that are used.
    UpgradeAvailable(Vec<ImageUpgrade>),
}

//! What is to be written. Objects that are replaced carry the version that they were decided from: whoever comes second loses.

use std::collections::BTreeMap;

use crate::api::capa::AwsMachineTemplate;
use crate::api::image_objects::{ImageLookup, ImageSelection, MachineImage};

/// A write.
#[derive(Clone, Debug)]
pub enum Write {
    /// A new image.
    CreateImage(MachineImage),
    /// An image of which something else is known now.
    ReplaceImage(MachineImage),
    /// An image that is gone.
    DeleteImage(MachineImage),
    /// What a lookup found.
    LookupStatus(ImageLookup),
    /// A new selection.
    CreateSelection(ImageSelection),
    /// A first resolution, or another wish of the consumer.
    ReplaceSelection(ImageSelection),
    /// What is newer.
    SelectionStatus(ImageSelection),
    /// First resolutions, for those who read them at the template.
    TemplateLabels(Box<AwsMachineTemplate>, BTreeMap<String, String>),
}

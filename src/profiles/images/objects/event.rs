//! Events about objects for images.

use wire::api::image_objects::ImageUpgrade;

/// An event about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageEvent {
    /// The errors of a lookup or of its sources have changed.
    LookupFailed(Vec<String>),
    /// The sources no longer list an image.
    Gone(String),
    /// There are newer images than the selected ones.
    UpgradeAvailable(Vec<ImageUpgrade>),
}

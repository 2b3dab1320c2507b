//! How an Azure image is named: one of four forms, in the order in which they are preferred.

/// One way to name an image of Azure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageReference<'a> {
    /// A marketplace image.
    Urn(&'a str),
    /// An image of a community gallery.
    CommunityGallery(&'a str),
    /// An image of a shared gallery.
    SharedGallery(&'a str),
    /// An image or image version by its resource id.
    Id(&'a str),
}

/// Every reference that a document gives for one image. Machines use the preferred one; the status keeps all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImageReferences<'a> {
    /// A marketplace image.
    pub urn: Option<&'a str>,
    /// An image of a community gallery.
    pub community_gallery: Option<&'a str>,
    /// An image of a shared gallery.
    pub shared_gallery: Option<&'a str>,
    /// An image or image version by its resource id.
    pub id: Option<&'a str>,
}

impl<'a> ImageReferences<'a> {
    /// The reference that machines use.
    #[must_use]
    pub fn preferred(self) -> Option<ImageReference<'a>> {
        None.or(self.urn.map(ImageReference::Urn))
            .or(self.community_gallery.map(ImageReference::CommunityGallery))
            .or(self.shared_gallery.map(ImageReference::SharedGallery))
            .or(self.id.map(ImageReference::Id))
    }
}

impl<'a> ImageReference<'a> {
    /// The members that can hold a reference, for messages.
    pub const MEMBERS: &'static str = "urn, communityGalleryImageID, sharedGalleryImageID, id";

    /// Name of the member in every document, also in machine classes.
    #[must_use]
    pub fn member(self) -> &'static str {
        match self {
            Self::Urn(_) => "urn",
            Self::CommunityGallery(_) => "communityGalleryImageID",
            Self::SharedGallery(_) => "sharedGalleryImageID",
            Self::Id(_) => "id",
        }
    }

    /// The reference itself.
    #[must_use]
    pub fn value(self) -> &'a str {
        match self {
            Self::Urn(value) | Self::CommunityGallery(value) | Self::SharedGallery(value) | Self::Id(value) => value,
        }
    }
}

/// Gives a type that declares the four members a method that collects them.
macro_rules! names_an_image {
    ($type:ty) => {
        impl $type {
            /// The references to the image.
            #[must_use]
            pub fn references(&self) -> super::ImageReferences<'_> {
                super::ImageReferences {
                    urn: self.urn.as_deref(),
                    community_gallery: self.community_gallery_image_id.as_deref(),
                    shared_gallery: self.shared_gallery_image_id.as_deref(),
                    id: self.id.as_deref(),
                }
            }
        }
    };
}
pub(super) use names_an_image;

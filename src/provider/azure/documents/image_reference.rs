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

impl<'a> ImageReference<'a> {
    /// The members that can hold a reference, for messages.
    pub const MEMBERS: &'static str = "urn, communityGalleryImageID, sharedGalleryImageID, id";

    /// The first reference that is there.
    pub fn first_of(
        urn: Option<&'a str>,
        community_gallery: Option<&'a str>,
        shared_gallery: Option<&'a str>,
        id: Option<&'a str>,
    ) -> Option<Self> {
        None.or(urn.map(Self::Urn))
            .or(community_gallery.map(Self::CommunityGallery))
            .or(shared_gallery.map(Self::SharedGallery))
            .or(id.map(Self::Id))
    }

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

/// Gives a type that declares the four members a method that picks the reference.
macro_rules! names_an_image {
    ($type:ty) => {
        impl $type {
            /// The reference to the image, `None` when no member holds one.
            #[must_use]
            pub fn reference(&self) -> Option<super::ImageReference<'_>> {
                super::ImageReference::first_of(
                    self.urn.as_deref(),
                    self.community_gallery_image_id.as_deref(),
                    self.shared_gallery_image_id.as_deref(),
                    self.id.as_deref(),
                )
            }
        }
    };
}
pub(super) use names_an_image;

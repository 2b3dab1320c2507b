//! References to an Azure image: one of four members, in order of preference.

/// All references to one image in a document. Machines use the preferred one; the status keeps all.
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
    /// The members that can hold a reference, for messages.
    pub const MEMBERS: &'static str = "urn, communityGalleryImageID, sharedGalleryImageID, id";

    /// The references that are set, in order of preference, with their members. Documents and machine classes use the
    /// same members.
    pub fn given(self) -> impl Iterator<Item = (&'static str, &'a str)> {
        let members = [
            ("urn", self.urn),
            ("communityGalleryImageID", self.community_gallery),
            ("sharedGalleryImageID", self.shared_gallery),
            ("id", self.id),
        ];
        members.into_iter().filter_map(|(member, value)| Some((member, value?)))
    }

    /// The reference that machines use, with its member.
    #[must_use]
    pub fn preferred(self) -> Option<(&'static str, &'a str)> {
        self.given().next()
    }
}

/// Adds a method that collects the references of a type with the four members.
macro_rules! image_references {
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
pub(super) use image_references;

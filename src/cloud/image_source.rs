//! Who can be asked for images: the seam between clouds and what is decided from their images.

use async_trait::async_trait;

use crate::api::bounded_text::beginning;
use crate::images::query::ImageQuery;
use crate::images::sources::Listing;

/// Most characters of an error in a message.
const MOST_OF_ERROR: usize = 500;

/// A cloud in one place, or several that have the same images.
#[async_trait]
pub trait ImageSource: Send + Sync {
    /// All images that a query means, and perhaps more; every page of them.
    ///
    /// # Errors
    /// When the cloud refuses, can't be reached, or answers something else. Then nothing is known: a part is no answer.
    async fn images(&self, query: &ImageQuery) -> Result<Listing, ImageSourceError>;
}

/// Why there is no answer, in one bounded line without secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{source_name}: {text}")]
pub struct ImageSourceError {
    /// Who was asked, for people: `EC2 in eu-central-1`.
    pub source_name: String,
    /// What went wrong.
    pub text: String,
}

impl ImageSourceError {
    pub(super) fn new(source_name: impl Into<String>, text: impl ToString) -> Self {
        Self { source_name: source_name.into(), text: beginning(&text.to_string(), MOST_OF_ERROR) }
    }
}

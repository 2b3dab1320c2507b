//! Interface to clouds that can list images.

use async_trait::async_trait;

use profiles::images::query::ImageQuery;
use profiles::images::sources::Listing;
use wire::api::bounded_text::beginning;

/// Maximum number of characters of an error in a message.
const MOST_OF_ERROR: usize = 500;

/// A cloud in one region, or several regions with the same images.
#[async_trait]
pub trait ImageSource: Send + Sync {
    /// Lists all images that match a query, and possibly more, from all pages.
    ///
    /// # Errors
    /// If the cloud refuses the request, is unreachable, or sends an invalid response. A partial list is never
    /// returned.
    async fn images(&self, query: &ImageQuery) -> Result<Listing, ImageSourceError>;
}

/// Why images could not be listed, in one bounded line without secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{source_name}: {text}")]
pub struct ImageSourceError {
    /// Name of the source for messages, such as `EC2 in eu-central-1`.
    pub source_name: String,
    /// Text of the error.
    pub text: String,
}

impl ImageSourceError {
    pub(super) fn new(source_name: impl Into<String>, text: impl ToString) -> Self {
        Self { source_name: source_name.into(), text: beginning(&text.to_string(), MOST_OF_ERROR) }
    }
}

//! Maximum lengths of texts in a status. gardenlet copies them into the Shoot, and etcd accepts 1.5 MiB for a whole
//! Worker. Most of that is needed for its specification and the autoscaler bounds, which are never shortened.

use wire::api::bounded_text::shortened;

/// Size of texts. A status that the API server rejects for its size is written with shorter ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextSize {
    /// In full.
    Full,
    /// The beginning and the end of each text.
    Short,
    /// A few words.
    Shortest,
}

/// Maximum length of a failure in bytes. It leaves room for a prefix within a full text, so it is not shortened again.
pub const MOST_OF_FAILURE: usize = 15 * 1024;

impl TextSize {
    /// From the longest to the shortest.
    pub const ALL: [Self; 3] = [Self::Full, Self::Short, Self::Shortest];

    /// Maximum length of a text in bytes.
    pub(crate) fn of_text(self) -> usize {
        match self {
            Self::Full => 16 * 1024,
            Self::Short => 1024,
            Self::Shortest => 256,
        }
    }

    /// Maximum length of each list of pools in `PoolsReady` in bytes. In full, it fits a thousand pools with the
    /// longest names that Gardener allows.
    pub(crate) fn of_pool_list(self) -> usize {
        match self {
            Self::Full => 32 * 1024,
            Self::Short => 1024,
            Self::Shortest => 128,
        }
    }

    /// Shortens a text to this size.
    pub(crate) fn text(self, text: &str) -> String {
        shortened(text, self.of_text())
    }
}

/// Whether a recorded text is the target text in any size. A text that was rejected for its size is not written again.
pub(crate) fn is_same_text(recorded: &str, wanted: &str) -> bool {
    TextSize::ALL.into_iter().any(|size| recorded == size.text(wanted))
}

//! Maximum lengths of texts in a status. gardenlet copies them into the Shoot, and etcd accepts 1.5 MiB for a whole
//! Worker. Most of that is needed for its specification and the autoscaler bounds, which are never shortened.

use wire::api::bounded_text::{in_one_line, shortened};

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
pub const MAX_FAILURE_BYTES: usize = 15 * 1024;

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

    /// Writes a text in one line and shortens it to this size. Drivers and clouds respond with several lines, of which
    /// each could look like another error.
    pub(crate) fn text(self, text: &str) -> String {
        shortened(&in_one_line(text), self.of_text())
    }
}

/// Whether a recorded text is the target text in any size. A text that was rejected for its size is not written again.
pub(crate) fn is_same_text(recorded: &str, target: &str) -> bool {
    TextSize::ALL.into_iter().any(|size| recorded == size.text(target))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_a_status_are_one_line() {
        let text = "machine(s) failed: \"m\": no quota\r\n\n  RESPONSE 409\n\tlastError: none\n";
        for size in TextSize::ALL {
            let written = size.text(text);
            assert!(!written.contains('\n'), "{written:?}");
            assert!(is_same_text(&written, text));
        }
        let expected = "machine(s) failed: \"m\": no quota RESPONSE 409 lastError: none";
        assert_eq!(TextSize::Full.text(text), expected);
    }
}

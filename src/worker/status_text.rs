//! How long the texts of a status may be. gardenlet copies them into the Shoot, and etcd takes 1.5 MiB for a whole Worker, of
//! which its specification and the bounds for the autoscaler need most: those are never shortened.

use crate::api::bounded_text::shortened;

/// How long texts may be. A status that the API server rejects for its size is written with shorter ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextSize {
    /// As people want them.
    Full,
    /// The beginning and the end of each.
    Short,
    /// What goes wrong, in a few words.
    Shortest,
}

/// The longest text that a status has room for is shortened once more where it does not fit; what goes before it counts too.
pub(crate) const MOST_OF_FAILURE: usize = 15 * 1024;

impl TextSize {
    /// From the longest to the shortest.
    pub const ALL: [Self; 3] = [Self::Full, Self::Short, Self::Shortest];

    /// Most bytes of a text.
    pub(crate) fn of_text(self) -> usize {
        match self {
            Self::Full => 16 * 1024,
            Self::Short => 1024,
            Self::Shortest => 256,
        }
    }

    /// Most bytes of each list of pools in `PoolsReady`. A thousand pools have room, with names as long as Gardener allows.
    pub(crate) fn of_pool_list(self) -> usize {
        match self {
            Self::Full => 32 * 1024,
            Self::Short => 1024,
            Self::Shortest => 128,
        }
    }

    /// A text of this size.
    pub(crate) fn text(self, text: &str) -> String {
        shortened(text, self.of_text())
    }
}

/// Whether a recorded text is the wanted one, in whatever size. What was once rejected for its size is not tried again and again.
pub(crate) fn is_same_text(recorded: &str, wanted: &str) -> bool {
    TextSize::ALL.into_iter().any(|size| recorded == size.text(wanted))
}

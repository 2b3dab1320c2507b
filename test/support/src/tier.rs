//! Selects the tests of a target: those for each change, or those that take longer.

use std::process::ExitCode;

/// How much a run covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// `cargo test`: for each change.
    Default,
    /// `cargo test -- --ignored`: the rest, every night.
    Deep,
}

impl Tier {
    /// The tier for a target without a test harness, selected by the harness's own flag.
    #[must_use]
    pub fn of_arguments() -> Self {
        if std::env::args().any(|argument| argument == "--ignored") { Self::Deep } else { Self::Default }
    }
}

/// Ends a target without deep tests if only those are selected.
#[must_use]
pub fn without_deep_tests() -> Option<ExitCode> {
    (Tier::of_arguments() == Tier::Deep).then_some(ExitCode::SUCCESS)
}

//! A command that a user can paste, and how its arguments are quoted.

use serde::Serialize;

/// Name of this program in commands.
pub const PROGRAM: &str = "gardener-extension-worker";
/// The cluster of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CommandCluster {
    /// The seed, with the Worker and its machines.
    Seed,
    /// The shoot, with the nodes.
    Shoot,
    /// The garden, with the Shoot.
    Garden,
}

impl CommandCluster {
    /// The cluster in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Seed => "in the seed",
            Self::Shoot => "in the shoot",
            Self::Garden => "in the garden",
        }
    }
}

/// A command to paste.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PasteCommand {
    /// The cluster whose kubeconfig it needs.
    pub cluster: CommandCluster,
    /// The command with its arguments.
    pub text: String,
}

/// A text as one word of a shell.
pub(super) fn word(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/=:".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hostile_names() {
        assert_eq!(word("shoot--a--b/web"), "shoot--a--b/web");
        assert_eq!(word("$(rm -r /)"), "'$(rm -r /)'");
        assert_eq!(word("a'b"), "'a'\\''b'");
        assert_eq!(word(""), "''");
    }
}

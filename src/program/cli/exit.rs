//! Exit codes of all commands. `--help` and `docs/cli.md` are generated from this table.

use std::fmt;
use std::process::ExitCode;

use super::documentation::linked;
use super::terminal::complain;

/// The outcome of a command. If several apply, the greatest in this order determines the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Exit {
    Done,
    Findings,
    Hazard,
    Roll,
    Delete,
    Invalid,
    Failed,
    Usage,
}

impl Exit {
    /// All outcomes in order of their code.
    pub(super) const ALL: [Self; 8] =
        [Self::Done, Self::Findings, Self::Usage, Self::Failed, Self::Hazard, Self::Roll, Self::Delete, Self::Invalid];
    /// Outcomes that every command can have.
    const OF_EVERY_COMMAND: [Self; 3] = [Self::Done, Self::Usage, Self::Failed];

    pub(super) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Findings => 1,
            Self::Usage => 2,
            Self::Failed => 3,
            Self::Hazard => 4,
            Self::Roll => 5,
            Self::Delete => 6,
            Self::Invalid => 7,
        }
    }

    pub(super) fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done, nothing to report",
            Self::Findings => "done, but there are findings, or changes that affect no node",
            Self::Usage => "wrong usage",
            Self::Failed => "an input can't be read, or the command failed, so the result is missing or incomplete",
            Self::Hazard => "no node rolls, but the change has an unexpected effect",
            Self::Roll => "nodes are replaced or updated in place",
            Self::Delete => "machines are deleted without replacement",
            Self::Invalid => "a pool or a Worker is invalid, so it can't be planned",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Text after the options in `--help`: `text`, then the command's exit codes. `special` lists the codes that not every
/// command has. An empty meaning falls back to the common table.
pub(super) fn help(text: &str, special: &[(Exit, &'static str)]) -> String {
    let mut help = format!("{}\n\nExit codes:", linked(text));
    for exit in Exit::ALL {
        let of_command = special.iter().find(|(other, _)| *other == exit);
        let of_command = of_command.map(|(_, meaning)| if meaning.is_empty() { exit.meaning() } else { meaning });
        let of_all = Exit::OF_EVERY_COMMAND.contains(&exit).then(|| exit.meaning());
        if let Some(meaning) = of_command.or(of_all) {
            help.push_str(&format!("\n  {}  {meaning}", exit.code()));
        }
    }
    help
}

/// The table for the program's own `--help`.
pub(super) fn overview() -> String {
    let rows = Exit::ALL.map(|exit| format!("\n  {}  {}", exit.code(), exit.meaning()));
    format!("Exit codes of all commands. If several apply, 3 takes precedence, then the highest code:{}", rows.concat())
}

/// Warns about a flag that has another name since this release.
pub(super) fn warn_renamed(is_used: bool, old: &str, new: &str) {
    if is_used {
        complain(&format!("warning: {old} is called {new} now; the old name works until the next release"));
    }
}

/// Warns about a flag that has no effect any more.
pub(super) fn warn_unneeded(is_used: bool, flag: &str) {
    if is_used {
        complain(&format!("warning: {flag} is not needed any more; it is accepted until the next release"));
    }
}

/// Arguments that cannot be combined.
#[derive(Debug)]
pub(super) struct WrongUsage(String);

impl fmt::Display for WrongUsage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for WrongUsage {}

/// An error that exits with [`Exit::Usage`], as clap's argument errors do.
pub(super) fn wrong_usage(message: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(WrongUsage(message.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_exit_has_its_code() {
        let codes: Vec<u8> = Exit::ALL.iter().map(|exit| exit.code()).collect();
        assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn a_deletion_is_worse_than_a_roll() {
        assert!(Exit::Delete > Exit::Roll && Exit::Delete.code() > Exit::Roll.code());
        assert!(Exit::ALL.iter().all(|exit| *exit <= Exit::Failed || *exit == Exit::Usage), "incomplete beats all");
    }
}

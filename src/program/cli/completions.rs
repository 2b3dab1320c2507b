//! `completions`: scripts that complete commands and options in a shell.

use clap::{Args, Command};
use clap_complete::Shell;

use super::evidence::Reply;
use super::exit;
use super::terminal::print;

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker completions bash > /etc/bash_completion.d/gardener-extension-worker
  source <(gardener-extension-worker completions zsh)", &[]))]
pub(super) struct CompletionsArguments {
    /// Shell to generate the script for.
    shell: Shell,
}

pub(super) fn run(arguments: &CompletionsArguments, mut command: Command) -> anyhow::Result<Reply> {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, name, &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(Reply::of_program())
}

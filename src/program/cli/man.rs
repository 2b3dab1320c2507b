//! `man`: manual pages, generated from the definitions of the commands.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Command};
use clap_mangen::Man;

use super::evidence::Reply;
use super::exit;
use super::terminal::print;

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker man | man -l -
  gardener-extension-worker man --folder /usr/local/share/man/man1", &[]))]
pub(super) struct ManArguments {
    /// Existing folder for one page per command. By default, the page of the program is printed to stdout.
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

pub(super) fn run(arguments: &ManArguments, mut command: Command) -> anyhow::Result<Reply> {
    command.build();
    match &arguments.folder {
        Some(folder) => write(&command, folder)?,
        None => print(&page(&command)?)?,
    }
    Ok(Reply::of_program())
}

/// Writes the pages of a command and its subcommands.
fn write(command: &Command, folder: &Path) -> anyhow::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let path = folder.join(format!("{name}.1"));
    std::fs::write(&path, page(command)?).with_context(|| format!("{}: can't be written", path.display()))?;
    let below = command.get_subcommands().filter(|command| command.get_name() != "help");
    below.into_iter().try_for_each(|command| write(command, folder))
}

fn page(command: &Command) -> anyhow::Result<String> {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page).context("the page can't be made")?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

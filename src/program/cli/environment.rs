//! Names of environment variables. Our own have a prefix, so that a variable of another program changes nothing.

use std::ffi::OsStr;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

use super::exit::warn_renamed;
use super::terminal::complain;

/// Prefix of the variables that only this program reads.
const PREFIX: &str = "GARDENER_EXTENSION_WORKER_";
/// Beginnings of names that others define: gardenlet, and the tools of clouds and of OpenTelemetry.
const FOREIGN: [&str; 5] = ["GARDEN_KUBECONFIG", "AWS_", "AZURE_", "OS_", "OTEL_"];

/// Arguments that limit what the controller writes. A value that doesn't parse ends the program, whatever the variable's name,
/// because the program would write more without it.
const LIMITS: [&str; 9] = [
    "config",
    "disable-controllers",
    "extension-classes",
    "provider-type",
    "roll-budget",
    "shadow",
    "shard-name",
    "shard-ring",
    "worker-type",
];

/// The command with prefixed variables. An old name is used if it is set and the new one is not.
pub(super) fn with_prefixes(command: Command, is_set: impl Fn(&OsStr) -> bool + Copy) -> Command {
    command.mut_subcommands(|command| with_prefixes(command, is_set)).mut_args(|argument| with_prefix(argument, is_set))
}

fn with_prefix(argument: Arg, is_set: impl Fn(&OsStr) -> bool) -> Arg {
    let Some(old) = argument.get_env().and_then(OsStr::to_str).map(str::to_owned) else { return argument };
    if !lacks_prefix(&old) {
        return argument;
    }
    let new = format!("{PREFIX}{old}");
    if is_set(OsStr::new(&old)) && !is_set(OsStr::new(&new)) { argument } else { argument.env(new) }
}

/// Whether only this program reads the variable, and its name has no prefix.
fn lacks_prefix(variable: &str) -> bool {
    !variable.starts_with(PREFIX) && !FOREIGN.iter().any(|name| variable.starts_with(name))
}

/// Warns of values that come from variables with an old name.
pub(super) fn warn_of_old_names(command: &Command, matches: &ArgMatches) {
    let Some((name, matches)) = matches.subcommand() else { return };
    let Some(command) = command.find_subcommand(name) else { return };
    for argument in command.get_arguments() {
        let Some(variable) = argument.get_env().and_then(OsStr::to_str) else { continue };
        let is_used = matches.value_source(argument.get_id().as_str()) == Some(ValueSource::EnvVariable);
        warn_renamed(is_used && lacks_prefix(variable), variable, &format!("{PREFIX}{variable}"));
    }
    warn_of_old_names(command, matches);
}

/// A variable with an old name whose value doesn't parse. Another program may have set it.
pub(super) struct RejectedVariable {
    variable: String,
    long: String,
}

/// The variable with an old name whose value `error` rejects.
pub(super) fn rejected_old_variable(command: &Command, error: &clap::Error) -> Option<RejectedVariable> {
    let Some(ContextValue::String(rejected)) = error.get(ContextKind::InvalidArg) else { return None };
    let mut command = command.clone();
    command.build();
    let argument = all_arguments(&command).into_iter().find(|argument| argument.to_string() == *rejected)?;
    let variable = argument.get_env().and_then(OsStr::to_str).filter(|variable| lacks_prefix(variable))?;
    std::env::var_os(variable)?;
    Some(RejectedVariable { variable: variable.to_owned(), long: argument.get_long()?.to_owned() })
}

impl RejectedVariable {
    /// The command that doesn't read this variable, with a warning.
    ///
    /// # Errors
    /// If the argument limits what the controller writes.
    pub(super) fn ignored(&self, mut command: Command) -> Result<Command, clap::Error> {
        let Self { variable, long } = self;
        let renamed = format!("the variable of --{long} is called {PREFIX}{variable} now");
        if LIMITS.contains(&long.as_str()) {
            let text = format!("environment variable {variable}: invalid value for --{long}; {renamed}");
            return Err(command.error(ErrorKind::ValueValidation, text));
        }
        complain(&format!("warning: ignoring environment variable {variable}: invalid value for --{long}; {renamed}"));
        Ok(without(command, variable))
    }
}

/// The command in which arguments with this variable read the one with a prefix.
fn without(command: Command, variable: &str) -> Command {
    command.mut_subcommands(|command| without(command, variable)).mut_args(|argument| {
        let is_ignored = argument.get_env().is_some_and(|name| name == variable);
        if is_ignored { argument.env(format!("{PREFIX}{variable}")) } else { argument }
    })
}

fn all_arguments(command: &Command) -> Vec<&Arg> {
    let below = command.get_subcommands().flat_map(all_arguments);
    command.get_arguments().chain(below).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Program;

    fn variable(set: &[&str], name: &str) -> Option<String> {
        let command = Command::new("p").subcommand(
            Command::new("controller")
                .arg(Arg::new("images").long("images").env("IMAGES"))
                .arg(Arg::new("garden").long("garden").env("GARDEN_KUBECONFIG")),
        );
        let command = with_prefixes(command, |name| set.iter().any(|set| name == *set));
        let command = command.find_subcommand("controller").unwrap();
        let argument = command.get_arguments().find(|argument| argument.get_id() == name).unwrap();
        argument.get_env().map(|variable| variable.to_string_lossy().into_owned())
    }

    #[test]
    fn old_names_count_only_without_new_ones() {
        let new = "GARDENER_EXTENSION_WORKER_IMAGES";
        assert_eq!(variable(&[], "images").as_deref(), Some(new));
        assert_eq!(variable(&["IMAGES"], "images").as_deref(), Some("IMAGES"));
        assert_eq!(variable(&["IMAGES", new], "images").as_deref(), Some(new));
        assert_eq!(variable(&[], "garden").as_deref(), Some("GARDEN_KUBECONFIG"), "gardenlet sets it");
    }

    #[test]
    fn all_own_variables_have_the_prefix() {
        fn check(command: &Command) {
            for argument in command.get_arguments() {
                let Some(variable) = argument.get_env().and_then(OsStr::to_str) else { continue };
                assert!(!lacks_prefix(variable), "{variable}");
            }
            command.get_subcommands().for_each(check);
        }
        check(&with_prefixes(Program::SHIPPED.command(), |_| false));
    }
}

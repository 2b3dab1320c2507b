//! The program that a crate builds: its providers, its clouds, and the resulting commands.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory, FromArgMatches};

use super::exit::Exit;
use super::terminal::{complain_in_lines, print};
use super::{Arguments, configuration_file, environment};
use decisions::provider::Providers;
use runtime::cloud::{CloudArguments, CloudFactory, azure, openstack};

/// Name of the program.
const NAME: &str = "gardener-extension-worker";
/// Names of the executable as a plugin of kubectl, with the displayed name.
const PLUGINS: [(&str, &str); 2] =
    [("kubectl-worker", "kubectl worker"), ("kubectl-gardener_worker", "kubectl gardener-worker")];
/// Name of the executable that kubectl runs to complete arguments of the plugin.
const COMPLETION: &str = "kubectl_complete-worker";
/// Error texts of the number parser, with replacements for users.
const NUMBER_ERRORS: [(&str, &str); 2] = [
    ("invalid digit found in string", "a whole number is expected"),
    ("cannot parse integer from empty string", "a whole number is expected"),
];
/// The command that receives the clouds' arguments.
const CONTROLLER: &str = "controller";

/// A program for Workers of these providers. A crate with its own provider builds one and calls [`Program::run`].
#[derive(Clone, Copy)]
pub struct Program {
    /// Providers whose Workers are served and whose CloudProfiles are supported.
    pub providers: Providers,
    /// Factories for cloud resources that pools depend on, at most one per Worker type.
    pub clouds: &'static [&'static dyn CloudFactory],
}

/// Parsed arguments.
pub struct Call {
    pub(super) program: Program,
    pub(super) arguments: Arguments,
    pub(super) clouds: CloudArguments,
}

impl Program {
    /// The program in releases, `gardener-extension-worker`.
    pub const SHIPPED: Self =
        Self { providers: Providers::SHIPPED, clouds: &[&azure::AzureFactory, &openstack::OpenStackFactory] };

    /// The command definitions, including the clouds' arguments.
    #[must_use]
    pub fn command(self) -> clap::Command {
        let with_clouds = |command| self.clouds.iter().fold(command, |command, cloud| cloud.with_arguments(command));
        let command = Arguments::command().mut_subcommands(|command| match command.get_name() {
            CONTROLLER => with_clouds(command),
            _ => command,
        });
        environment::with_prefixes(command, |variable| std::env::var_os(variable).is_some())
    }

    /// Parses the arguments of the process, starting with the program name.
    ///
    /// # Errors
    /// The exit code if there is nothing to run: 0 after help, else that of wrong usage.
    pub fn parse(self, arguments: impl IntoIterator<Item = OsString>) -> Result<Call, ExitCode> {
        let arguments: Vec<OsString> = arguments.into_iter().collect();
        self.read(&arguments).map_err(|refusal| {
            let mut text = refusal.render().ansi().to_string();
            for (of_library, plain) in NUMBER_ERRORS {
                text = text.replace(of_library, plain);
            }
            if refusal.use_stderr() {
                complain_in_lines(text.trim_end());
                return Exit::Usage.into();
            }
            // Ignore errors, because stdout may be closed.
            let _ = print(&text);
            ExitCode::SUCCESS
        })
    }

    /// Parses the arguments of the process and runs the selected command.
    #[must_use]
    pub fn run(self, arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
        self.parse(arguments).map_or_else(|code| code, Call::run)
    }

    fn read(self, arguments: &[OsString]) -> Result<Call, clap::Error> {
        let mut command = self.called(arguments);
        let arguments = &with_completion(arguments);
        if arguments.iter().filter(|argument| *argument == "-").count() > 1 {
            let refusal = "standard input (`-`) can be read only once";
            return Err(command.error(ErrorKind::ArgumentConflict, refusal));
        }
        let matches = matches_of(&mut command, arguments)?;
        environment::warn_of_old_names(&command, &matches);
        let typed = matches.subcommand_matches(CONTROLLER).map_or_else(ArgMatches::default, Clone::clone);
        let clouds = CloudArguments::new(self.clouds, typed);
        Ok(Call { program: self, arguments: Arguments::from_arg_matches(&matches)?, clouds })
    }

    /// The command definitions, with the name by which the program was called.
    fn called(self, arguments: &[OsString]) -> clap::Command {
        let command = self.command();
        match arguments.first().and_then(|program| plugin_name(program)) {
            Some(displayed) => with_name(command, displayed).bin_name(displayed),
            None => command,
        }
    }
}

/// The parsed arguments. An old environment variable with a value for another program is ignored.
fn matches_of(command: &mut clap::Command, arguments: &[OsString]) -> Result<ArgMatches, clap::Error> {
    loop {
        let parsed = configuration_file::with_file(command, arguments)
            .and_then(|arguments| command.try_get_matches_from_mut(arguments));
        let Err(error) = parsed else { return parsed };
        match environment::rejected_old_variable(command, &error) {
            Some(rejected) => *command = rejected.ignored(command.clone())?,
            None => return Err(error),
        }
    }
}

/// The displayed name of a plugin of kubectl, by its executable.
fn plugin_name(program: &OsStr) -> Option<&'static str> {
    let name = Path::new(program).file_stem()?;
    PLUGINS.iter().find(|(executable, _)| name == *executable).map(|(_, displayed)| *displayed)
}

/// The name by which this process was called, for commands that a user can paste.
pub(super) fn typed_name() -> &'static str {
    std::env::args_os().next().and_then(|program| plugin_name(&program)).unwrap_or(NAME)
}

/// Adds the command that kubectl means with the executable `kubectl_complete-worker`.
fn with_completion(arguments: &[OsString]) -> Vec<OsString> {
    let name = arguments.first().and_then(|program| Path::new(program).file_stem());
    match arguments.split_first() {
        Some((program, words)) if name.is_some_and(|name| name == COMPLETION) => {
            [program.clone(), "complete".into(), "--".into()].into_iter().chain(words.iter().cloned()).collect()
        }
        _ => arguments.to_vec(),
    }
}

/// Replaces the program's name in the examples of all commands.
fn with_name(command: clap::Command, name: &'static str) -> clap::Command {
    let help = command.get_after_help().map(|help| help.to_string().replace(&format!("{NAME} "), &format!("{name} ")));
    let command = command.mut_subcommands(|below| with_name(below, name));
    match help {
        Some(help) => command.after_help(help),
        None => command,
    }
}

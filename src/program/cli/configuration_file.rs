//! `--config FILE`: arguments of a long-running command in a YAML file. The command line takes precedence over the
//! environment, the environment over the file, and the file over defaults.
//!
//! The file's members are the long names of arguments. They are appended to the command line, so that values are
//! validated in one place only.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::{Map, Value};

/// The argument with the path of the file.
const CONFIG: &str = "config";

/// Appends the file's arguments, unless the command line or environment sets them.
pub(super) fn with_file(command: &Command, arguments: &[OsString]) -> Result<Vec<OsString>, clap::Error> {
    // Ignore errors, because the file may contain the missing arguments. The final parse of all arguments reports
    // errors.
    let mut command = command.clone().ignore_errors(true);
    let matches = command.try_get_matches_from_mut(arguments)?;
    let Some((name, matches)) = matches.subcommand() else { return Ok(arguments.to_vec()) };
    let file = matches.try_get_one::<PathBuf>(CONFIG).ok().flatten();
    let (Some(file), Some(subcommand)) = (file, command.find_subcommand(name)) else { return Ok(arguments.to_vec()) };
    let refuse = |reason: String| {
        command.clone().error(ErrorKind::ValueValidation, format!("--config {}: {reason}", file.display()))
    };
    let text = fs::read_to_string(file).map_err(|error| refuse(error.to_string()))?;
    let typed = typed(subcommand, matches, &text).map_err(refuse)?;
    Ok(arguments.iter().cloned().chain(typed.into_iter().map(OsString::from)).collect())
}

/// The file's members as arguments, without those that the command line or environment sets.
pub(crate) fn typed(command: &Command, matches: &ArgMatches, text: &str) -> Result<Vec<String>, String> {
    let members: Option<Map<String, Value>> = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    let mut typed = Vec::new();
    for (name, value) in members.iter().flatten() {
        let argument = command
            .get_arguments()
            .find(|argument| argument.get_long() == Some(name) && name != CONFIG)
            .ok_or_else(|| format!("{name}: no such argument; there are {}", names(command)))?;
        let source = matches.value_source(argument.get_id().as_str());
        if matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable)) {
            continue;
        }
        typed.extend(spelled(argument, name, value)?);
    }
    Ok(typed)
}

fn spelled(argument: &Arg, name: &str, value: &Value) -> Result<Vec<String>, String> {
    let is_switch = matches!(argument.get_action(), ArgAction::SetTrue);
    match value {
        Value::Bool(on) if is_switch => Ok(if *on { vec![format!("--{name}")] } else { Vec::new() }),
        _ if is_switch => Err(format!("{name}: expected true or false")),
        Value::Array(values) => {
            let each = values.iter().map(|value| Ok(format!("--{name}={}", scalar(name, value)?)));
            each.collect()
        }
        value => Ok(vec![format!("--{name}={}", scalar(name, value)?)]),
    }
}

fn scalar(name: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(value) => Ok(value.to_string()),
        _ => Err(format!("{name}: expected a text or a number")),
    }
}

fn names(command: &Command) -> String {
    let names =
        command.get_arguments().filter_map(Arg::get_long).filter(|name| ![CONFIG, "help", "version"].contains(name));
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::cli::Arguments;

    /// The parsed arguments with this configuration file.
    fn read_with(text: &str, arguments: &[&str]) -> Result<String, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        let program = ["gardener-extension-worker"].iter().chain(arguments).map(OsString::from);
        let typed: Vec<OsString> = program.chain(["--config".into(), file.path().into()]).collect();
        let arguments = with_file(&Arguments::command(), &typed).and_then(Arguments::try_parse_from);
        arguments.map(|arguments| format!("{arguments:?}")).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn a_file_can_have_what_is_required() {
        let file = "image: [azure=registry.example/azure:v1, aws=registry.example/aws:v1]\n\
                    webhook-config-mode: url\nwebhook-config-url: a.example\n\
                    tls-cert-file: c.crt\ntls-private-key-file: c.key\n";
        let read = read_with(file, &["sidecar"]).unwrap();
        for message in ["registry.example/azure:v1", "registry.example/aws:v1", "a.example", "c.crt", "c.key"] {
            assert!(read.contains(message), "{message} is missing: {read}");
        }
        // Only one argument of a pair is on the command line.
        let read = read_with(file, &["sidecar", "--tls-cert-file", "typed.crt", "--image", "gcp=typed:v1"]).unwrap();
        assert!(read.contains("typed.crt") && read.contains("c.key") && read.contains("typed:v1"), "{read}");
        assert!(!read.contains("registry.example"), "the command line goes before the file: {read}");
    }

    #[test]
    fn reports_missing_and_wrong_arguments() {
        for (file, typed, expected) in [
            ("webhook-config-namespace: ns", &["sidecar"][..], "--image <TYPE=IMAGE>"),
            ("image: azure", &["sidecar"], "a provider type and an image"),
            ("image: azure=a:v1\nwebhook-config-mode: url", &["sidecar"], "--webhook-config-url"),
            ("image: azure=a:v1", &["sidecar", "--unheard-of"], "--unheard-of"),
            ("image: azure=a:v1", &["sidecar", "--webhook-config-server-port", "x"], "webhook-config-server-port"),
            ("unheard-of: 1", &["sidecar"], "unheard-of: no such argument"),
        ] {
            let refusal = read_with(file, typed).unwrap_err();
            assert!(refusal.contains(expected), "{expected:?} is missing: {refusal}");
        }
    }
}

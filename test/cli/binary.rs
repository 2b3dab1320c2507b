//! Runs the binary like a shell, without the environment variables that change its output.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

/// Exit code and outputs of a command.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    pub(crate) fn succeeded(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }
}

/// The binary with these arguments, run in the folder of the package.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = test_support::program::command();
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments);
    for variable in ["COLUMNS", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "KUBECONFIG", "SOURCE_DATE_EPOCH"] {
        command.env_remove(variable);
    }
    command
}

pub(crate) fn run(arguments: &[&str]) -> Outcome {
    outcome(command(arguments), "")
}

/// Runs a command with this standard input.
pub(crate) fn outcome(mut command: Command, input: &str) -> Outcome {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || {
        // A command that fails early reads no input.
        let _ = stdin.write_all(input.as_bytes());
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Outcome {
        code: output.status.code().expect("no signal"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Returns the example with replacements, each of which must match.
#[track_caller]
pub(crate) fn example(replacements: &[(&str, &str)]) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("test/cli/azure.yaml");
    let mut text = std::fs::read_to_string(path).unwrap();
    for (from, to) in replacements {
        assert!(text.contains(from), "{from:?} is not in the example");
        text = text.replace(from, to);
    }
    text
}

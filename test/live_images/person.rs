//! A user who runs the program.

use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;

/// A user with a folder and an environment.
pub(crate) struct Person {
    folder: TempDir,
    environment: Vec<(&'static str, String)>,
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Person {
    pub(crate) fn new(environment: &[(&'static str, &str)]) -> Self {
        let environment = environment.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Self { folder: tempfile::tempdir().unwrap(), environment }
    }

    /// The same user, with another value in the environment.
    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.environment.retain(|(known, _)| *known != name);
        self.environment.push((name, value.to_owned()));
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Runs a command of `images`. It does not inherit the environment of the test.
    pub(crate) fn images(&self, arguments: &[&str]) -> Outcome {
        let mut command = test_support::program::command();
        command.arg("images").args(arguments).current_dir(self.folder.path()).env_clear();
        command.env("HOME", self.folder.path()).env("AWS_EC2_METADATA_DISABLED", "true").env("COLUMNS", "200");
        let output = command.envs(self.environment.iter().map(|(name, value)| (*name, value))).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Outcome { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// The result of `images resolve`: flavors with their images.
    pub(crate) fn resolved(&self, arguments: &[&str]) -> Vec<String> {
        let printed = self.images(&[&["resolve", "-o", "json", "--at", "2026-11-22"], arguments].concat());
        let document: Value =
            serde_json::from_str(&printed.stdout).unwrap_or_else(|error| panic!("{error}: {printed:?}"));
        let flavor = |flavor: &Value| {
            let text = |member: &str| flavor[member].as_str().unwrap_or("everywhere").to_owned();
            let candidates = flavor["candidates"].as_array().unwrap().iter().map(|candidate| {
                format!("{} {}", candidate["id"].as_str().unwrap(), candidate["verdict"].as_str().unwrap())
            });
            format!(
                "{} {} {}: {}",
                text("image"),
                text("version"),
                text("region"),
                candidates.collect::<Vec<_>>().join("; ")
            )
        };
        document["flavors"].as_array().unwrap().iter().map(flavor).collect()
    }
}

//! `version`: name and version of the program.

use clap::Args;
use serde_json::json;

use super::evidence::Answer;
use super::exit;
use super::terminal::{OutputFormat, json, one_of, print};
use decisions::provider::Providers;

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker version -o json | jq -r .version", &[]))]
pub(super) struct VersionArguments {
    /// Output format.
    #[arg(short, long, value_parser = one_of(&["table", "json"]), default_value = "table")]
    output: OutputFormat,
}

pub(super) fn run(arguments: &VersionArguments, providers: Providers) -> anyhow::Result<Answer> {
    let name = env!("CARGO_PKG_NAME");
    let version = env!("CARGO_PKG_VERSION");
    let types: Vec<&str> = providers.worker_types().collect();
    print(&match arguments.output {
        OutputFormat::Json => {
            let platform = format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH);
            json(&json!({
                "schema": "version/v1", "name": name, "version": version, "platform": platform, "workerTypes": types,
            }))?
        }
        _ => format!("{name} {version} for Workers of {}\n", types.join(", ")),
    })?;
    Ok(Answer::of_program())
}

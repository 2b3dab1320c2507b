//! `version`: name and version of the program, its source, and the Gardener versions that it was measured with.

use clap::Args;
use serde_json::{Value, json};

use super::evidence::Reply;
use super::exit;
use super::terminal::{OutputFormat, json, one_of, print};
use decisions::provider::Providers;

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker version -o json | jq -r .version", &[]))]
pub(super) struct VersionArguments {
    /// Output format. JSON contains the commit and its date, the optional features, and the measured Gardener versions.
    #[arg(short, long, value_parser = one_of(&["table", "json"]), default_value = "table")]
    output: OutputFormat,
}

/// The Go extension and its Gardener library whose objects the parity tests compare with.
struct Measured {
    worker_type: &'static str,
    extension: &'static str,
    gardener: &'static str,
}

/// As in the table of docs/compatibility.md; a test compares them.
const MEASURED: [Measured; 5] = [
    Measured { worker_type: "azure", extension: "v1.63-dev", gardener: "v1.144.2" },
    Measured { worker_type: "aws", extension: "v1.74-dev", gardener: "v1.149.3" },
    Measured { worker_type: "gcp", extension: "v1.55-dev", gardener: "v1.148.1" },
    Measured { worker_type: "alicloud", extension: "v1.72-dev", gardener: "v1.143.1" },
    Measured { worker_type: "openstack", extension: "v1.58-dev", gardener: "v1.148.1" },
];

/// Commit of the source, and its time. The release command sets both (release/src/build.rs); other builds have none.
const COMMIT: Option<&str> = option_env!("RELEASE_COMMIT");
const COMMIT_TIME: Option<&str> = option_env!("RELEASE_COMMIT_TIME");

fn document(name: &str, version: &str, types: &[&str]) -> Value {
    let platform = format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH);
    let optional = [("live-images", cfg!(feature = "live-images")), ("otlp", cfg!(feature = "otlp"))];
    let features: Vec<&str> = optional.iter().filter(|(_, is_on)| *is_on).map(|(name, _)| *name).collect();
    let measured = MEASURED.iter().map(|measured| {
        json!({"workerType": measured.worker_type, "extension": measured.extension, "gardener": measured.gardener})
    });
    let mut document = json!({
        "schema": "version/v1", "name": name, "version": version, "platform": platform, "workerTypes": types,
        "features": features, "measuredWith": measured.collect::<Vec<_>>(),
    });
    for (member, value) in [("commit", COMMIT), ("commitTime", COMMIT_TIME)] {
        if let Some(value) = value {
            document[member] = value.into();
        }
    }
    document
}

pub(super) fn run(arguments: &VersionArguments, providers: Providers) -> anyhow::Result<Reply> {
    let name = env!("CARGO_PKG_NAME");
    let version = env!("CARGO_PKG_VERSION");
    let types: Vec<&str> = providers.worker_types().collect();
    print(&match arguments.output {
        OutputFormat::Json => json(&document(name, version, &types))?,
        _ => format!("{name} {version} for Workers of {}\n", types.join(", ")),
    })?;
    Ok(Reply::of_program())
}

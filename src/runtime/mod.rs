//! Wiring: arguments of the controller, the client, logs, watches.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, ValueEnum};

use crate::cloud::azure;
use crate::provider::Providers;
use crate::worker::garden::Garden;
use logs::{LogFormat, LogLevel};
use traces::Traces;

mod connection;
mod controller;
mod decode_guard;
mod election;
mod garden_cluster;
mod heartbeat;
#[cfg(test)]
mod incidents;
mod kinds;
mod leadership;
mod lease;
pub(crate) mod logs;
mod look;
mod measure;
mod metrics;
mod newest;
mod news;
pub(crate) mod operations_server;
mod pace;
pub(crate) mod process;
pub(crate) mod readiness;
mod record;
mod request;
mod request_count;
mod rest;
mod retry;
pub(crate) mod seed;
mod served;
mod shadow;
mod shown;
mod tell;
mod threads;
mod traces;
mod tries;
mod unasked;
mod undecodable;
mod watches;
pub(crate) mod webhook;
mod worker_events;
mod write_gate;

pub(crate) use election::LEASE as LEADER_LEASE;
pub use garden_cluster::GardenCluster;
pub use seed::Seed;
pub(crate) use served::Served;

/// A part of the process that can be switched off, as the Go extension's `--disable-controllers` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Reconciling Workers.
    Worker,
    /// The sign of life for gardenlet.
    Heartbeat,
}

/// Arguments of `controller`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Example:
  gardener-extension-worker controller --kubeconfig seed.yaml")]
pub struct ControllerArguments {
    #[command(flatten)]
    seed: Seed,
    /// Only Workers of this type; may be given several times. Without it, every type that is supported.
    #[arg(long = "worker-type", env = "WORKER_TYPE", value_name = "TYPE", value_delimiter = ',')]
    worker_types: Vec<String>,
    /// Only Workers of these extension classes; one without a class is a shoot's.
    #[arg(long, env = "EXTENSION_CLASSES", value_name = "CLASS", value_delimiter = ',', default_value = Served::DEFAULT_CLASS)]
    extension_classes: Vec<String>,
    /// Kubeconfig of the garden, which keeps the machines of a shoot while its control plane moves; needed only when gardenlet
    /// has not put them into the Worker.
    #[arg(long, env = "GARDEN_KUBECONFIG", value_name = "FILE")]
    garden_kubeconfig: Option<PathBuf>,
    /// Where requests for Azure's resource manager go, of whichever cloud: a proxy, or a stand-in for tests.
    #[arg(long, env = "AZURE_RESOURCE_MANAGER_URL", value_name = "URL")]
    azure_resource_manager_url: Option<azure::Origin>,
    /// Where requests for Azure's access tokens go, of whichever cloud.
    #[arg(long, env = "AZURE_AUTHORITY_HOST", value_name = "URL")]
    azure_authority_url: Option<azure::Origin>,
    /// Begin also without the annotation gardener.cloud/operation: when the generation of a Worker changes, or when its
    /// Cluster says something else about its machines.
    #[arg(long, env = "IGNORE_OPERATION_ANNOTATION")]
    ignore_operation_annotation: bool,
    /// Workers that are reconciled at the same time. Nobody holds a place while it waits, so more of them only hold more
    /// memory.
    #[arg(long, env = "WORKER_MAX_CONCURRENT_RECONCILES", default_value_t = 6, value_name = "N")]
    worker_max_concurrent_reconciles: u16,
    /// Writes nothing, beside another controller: what it would write is compared with what is there, and differences are
    /// told as metrics and in the log. The client refuses every write.
    #[arg(long, env = "SHADOW")]
    shadow: bool,
    /// Parts that are switched off; may be given several times.
    #[arg(long, env = "DISABLE_CONTROLLERS", value_enum, value_name = "PART", value_delimiter = ',')]
    disable_controllers: Vec<Part>,
    /// Namespace of the lease by which one of several processes leads. Without it there is no election: run one process.
    #[arg(long, env = "LEADER_ELECTION_NAMESPACE", value_name = "NAMESPACE")]
    leader_election_namespace: Option<String>,
    /// Name of that lease; processes with other types or classes need another one.
    #[arg(long, env = "LEADER_ELECTION_ID", value_name = "NAME", default_value = election::LEASE)]
    leader_election_id: String,
    /// Seconds without a sign of life after which another process takes over.
    #[arg(long, env = "LEADER_ELECTION_LEASE_SECONDS", value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u16).range(3..))]
    leader_election_lease_seconds: u16,
    /// Namespace of the lease that tells gardenlet that this extension lives. Without it there is none.
    #[arg(long, env = "HEARTBEAT_NAMESPACE", value_name = "NAMESPACE")]
    heartbeat_namespace: Option<String>,
    /// Seconds between two signs of life.
    #[arg(long, env = "HEARTBEAT_RENEW_INTERVAL_SECONDS", value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..))]
    heartbeat_renew_interval_seconds: u16,
    /// Port of /healthz, /readyz and /log-level. Without it they are not served.
    #[arg(long, env = "HEALTH_PORT", value_name = "PORT")]
    health_port: Option<u16>,
    /// Port of /metrics. Without it they are not served.
    #[arg(long, env = "METRICS_PORT", value_name = "PORT")]
    metrics_port: Option<u16>,
    /// What is logged; `RUST_LOG` has finer directives. PUT /log-level changes it while the process runs.
    #[arg(long, env = "LOG_LEVEL", value_enum, default_value_t = LogLevel::Info)]
    log_level: LogLevel,
    /// How it is logged.
    #[arg(long, env = "LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
    /// Where traces go: a collector of OpenTelemetry that takes OTLP over HTTP, such as http://collector:4318. Needs a program
    /// that was built with the feature otlp.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_name = "URL")]
    otlp_endpoint: Option<String>,
    /// YAML file with arguments by their long names. The command line goes before the environment, the environment before
    /// the file.
    #[arg(long, env = "CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
}

impl ControllerArguments {
    fn azure(&self) -> azure::Addresses {
        azure::Addresses {
            resource_manager: self.azure_resource_manager_url.clone(),
            authority: self.azure_authority_url.clone(),
        }
    }

    fn garden(&self) -> Garden {
        Garden { kubeconfig: self.garden_kubeconfig.clone() }
    }
}

/// Runs the controller for Workers of these providers until it is told to stop.
#[must_use]
pub fn run(arguments: ControllerArguments, providers: Providers) -> ExitCode {
    match start(arguments, providers) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "logs may not be there yet")]
            {
                eprintln!("{error:#}");
            }
            ExitCode::FAILURE
        }
    }
}

fn start(arguments: ControllerArguments, providers: Providers) -> anyhow::Result<()> {
    let runtime = threads::start().context("no threads")?;
    let result = runtime.block_on(async {
        let traces = Traces::begin(arguments.otlp_endpoint.as_deref().filter(|endpoint| !endpoint.is_empty()))?;
        let logs = logs::begin_beside(
            arguments.log_level,
            arguments.log_format,
            traces.as_ref().map(|traces| traces.layer()),
        )?;
        traces.iter().for_each(Traces::tell);
        process::run(&arguments, providers, logs, traces).await
    });
    // Nothing that is still under way may hold up the end.
    runtime.shutdown_background();
    result
}

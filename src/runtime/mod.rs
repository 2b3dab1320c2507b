//! Wiring: arguments of the controller, the client, logs, watches.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;

use crate::provider::Providers;

mod controller;
mod decode_guard;
mod look;
mod newest;
mod pace;
mod record;
mod retry;
mod seed;
mod served;
mod undecodable;
mod worker_events;

pub use seed::Seed;

use crate::worker::garden::Garden;

/// Arguments of `controller`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Example:
  gardener-extension-worker controller --kubeconfig seed.yaml")]
pub struct ControllerArguments {
    #[command(flatten)]
    seed: Seed,
    /// Only Workers of this type; may be given several times. Without it, every type that is supported.
    #[arg(long = "worker-type", value_name = "TYPE")]
    worker_types: Vec<String>,
    /// Only Workers of these extension classes; one without a class is a shoot's.
    #[arg(long, value_name = "CLASS", value_delimiter = ',', default_value = served::DEFAULT_CLASS)]
    extension_classes: Vec<String>,
    /// Kubeconfig of the garden, which keeps the machines of a shoot while its control plane moves; needed only when gardenlet
    /// has not put them into the Worker.
    #[arg(long, env = "GARDEN_KUBECONFIG", value_name = "FILE")]
    garden_kubeconfig: Option<PathBuf>,
    /// Workers that are reconciled at the same time.
    #[arg(long, env = "WORKER_MAX_CONCURRENT_RECONCILES", default_value_t = 20, value_name = "N")]
    worker_max_concurrent_reconciles: u16,
    /// What is logged; `RUST_LOG` has finer directives.
    #[arg(long, value_enum, default_value_t = LogLevel::Info)]
    log_level: LogLevel,
    /// How it is logged.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
}

impl ControllerArguments {
    fn garden(&self) -> Garden {
        Garden { kubeconfig: self.garden_kubeconfig.clone() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogLevel {
    Error,
    Info,
    Debug,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    Text,
    Json,
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
    init_logs(&arguments);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no runtime")?;
    runtime.block_on(async {
        let client = arguments.seed.client().await?;
        controller::run(client, &arguments, providers).await
    })
}

fn init_logs(arguments: &ControllerArguments) {
    // kube's controller adds the reason for each look to every line, which is worth more than it costs only in search of
    // its own faults.
    let level = match arguments.log_level {
        LogLevel::Error => "error",
        LogLevel::Info => "info,kube_runtime=warn",
        LogLevel::Debug => "info,kube_runtime=warn,gardener_extension_worker=debug",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match arguments.log_format {
        LogFormat::Text => logs.init(),
        LogFormat::Json => logs.json().flatten_event(true).init(),
    }
}

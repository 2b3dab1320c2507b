//! Wiring: arguments of the controller, the client, logs, watches.

use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;

mod controller;
mod decode_guard;
mod pace;
mod retry;
mod worker_events;

/// Arguments of `controller`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Example:
  gardener-extension-worker controller --kubeconfig seed.yaml")]
pub struct ControllerArguments {
    /// Kubeconfig of the seed; without it `KUBECONFIG`, the default file or the service account of the pod is used.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<std::path::PathBuf>,
    /// Only Workers of this type; may be given several times. Without it, every type that is supported.
    #[arg(long = "worker-type", value_name = "TYPE")]
    worker_types: Vec<String>,
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

/// Runs the controller until it is told to stop.
#[must_use]
pub fn run(arguments: ControllerArguments) -> ExitCode {
    match start(arguments) {
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

fn start(arguments: ControllerArguments) -> anyhow::Result<()> {
    init_logs(&arguments);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no runtime")?;
    runtime.block_on(async {
        let client = client(arguments.kubeconfig.as_deref()).await?;
        controller::run(client, &arguments).await
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

/// A client for the cluster of a kubeconfig, else of the environment or the pod.
///
/// # Errors
/// When there is none, or it can't be used.
pub async fn client(kubeconfig: Option<&std::path::Path>) -> anyhow::Result<kube::Client> {
    let config = match kubeconfig {
        Some(path) => {
            let kubeconfig = kube::config::Kubeconfig::read_from(path)
                .with_context(|| format!("kubeconfig {} can't be read", path.display()))?;
            kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default())
                .await
                .with_context(|| format!("kubeconfig {} can't be used", path.display()))?
        }
        None => kube::Config::infer().await.context("no kubeconfig and no service account")?,
    };
    kube::Client::try_from(config).context("no client for the seed")
}

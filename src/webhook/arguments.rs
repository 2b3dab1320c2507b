//! Arguments that every command with webhooks has. Names follow the webhooks of Gardener's extensions where they have the
//! same one.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};

use super::{Address, CertificateFiles, Lifetimes};
use crate::cluster::seed::Seed;
use crate::process::logs::{LogFormat, LogLevel};

/// How the API server reaches the webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// By a Service of its own cluster.
    Service,
    /// By a URL: it is the API server of another cluster than the one that the webhooks run in.
    Url,
}

/// Arguments of the webhooks of a command.
#[derive(Clone, Debug, Args)]
pub(crate) struct WebhookArguments {
    /// The cluster that it runs in: there are its Service and the Secret with its certificates.
    #[command(flatten)]
    pub(crate) cluster: Seed,
    /// Port of the webhooks.
    #[arg(long, env = "WEBHOOK_CONFIG_SERVER_PORT", value_name = "PORT", default_value_t = 10250)]
    pub(crate) webhook_config_server_port: u16,
    /// How the API server reaches the webhooks.
    #[arg(long, env = "WEBHOOK_CONFIG_MODE", value_enum, default_value_t = Mode::Service)]
    pub(crate) webhook_config_mode: Mode,
    /// With mode url: host and, unless it is 443, port under which the webhooks are reached.
    #[arg(long, env = "WEBHOOK_CONFIG_URL", value_name = "HOST[:PORT]", required_if_eq("webhook_config_mode", "url"))]
    pub(crate) webhook_config_url: Option<String>,
    /// Namespace of the Service and of the Secret.
    #[arg(long, env = "WEBHOOK_CONFIG_NAMESPACE", value_name = "NAMESPACE")]
    pub(crate) webhook_config_namespace: Option<String>,
    /// Port of the Service.
    #[arg(long, env = "WEBHOOK_CONFIG_SERVICE_PORT", value_name = "PORT", default_value_t = 443)]
    pub(crate) webhook_config_service_port: u16,
    /// Namespace that owns the webhook configurations: they are deleted with it.
    #[arg(long, env = "WEBHOOK_CONFIG_OWNER_NAMESPACE", value_name = "NAMESPACE")]
    pub(crate) webhook_config_owner_namespace: Option<String>,
    /// Do not write the webhook configurations; another program registers the webhooks.
    #[arg(long, env = "WEBHOOK_CONFIG_UNMANAGED")]
    pub(crate) webhook_config_unmanaged: bool,
    /// Certificate of the server with its chain, PEM. Read again when it changes. Without it, the program
    /// has a CA of its own and rotates certificates.
    #[arg(long, env = "TLS_CERT_FILE", value_name = "FILE", requires = "tls_private_key_file")]
    pub(crate) tls_cert_file: Option<PathBuf>,
    /// Its private key, PEM.
    #[arg(long, env = "TLS_PRIVATE_KEY_FILE", value_name = "FILE", requires = "tls_cert_file")]
    pub(crate) tls_private_key_file: Option<PathBuf>,
    /// CA bundle for the provided certificate, PEM. Read again when it changes.
    #[arg(long, env = "TLS_CA_FILE", value_name = "FILE", requires = "tls_cert_file")]
    pub(crate) tls_ca_file: Option<PathBuf>,
    /// Validity of the program's own certificates; they are rotated after two thirds of it.
    #[arg(long, env = "CERTIFICATE_VALIDITY", value_name = "DURATION", default_value = "720h", value_parser = duration)]
    pub(crate) certificate_validity: Duration,
    /// How long the next CA is in the CA bundle before it signs.
    #[arg(long, env = "CERTIFICATE_ANNOUNCEMENT", value_name = "DURATION", default_value = "5m", value_parser = duration)]
    pub(crate) certificate_announcement: Duration,
    /// Port of /healthz, /readyz and /log-level. Without it they are not served.
    #[arg(long, env = "HEALTH_PORT", value_name = "PORT")]
    pub(crate) health_port: Option<u16>,
    /// Port of /metrics. Without it they are not served.
    #[arg(long, env = "METRICS_PORT", value_name = "PORT")]
    pub(crate) metrics_port: Option<u16>,
    /// What is logged; `RUST_LOG` has finer directives. PUT /log-level changes it while the process runs.
    #[arg(long, env = "LOG_LEVEL", value_enum, default_value_t = LogLevel::Info)]
    pub(crate) log_level: LogLevel,
    /// How it is logged.
    #[arg(long, env = "LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
    /// YAML file with arguments by their long names. The command line goes before the environment, the environment before
    /// the file.
    #[arg(long, env = "CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// A positive duration in Go's form: `90s`, `5m`, `720h`.
fn duration(text: &str) -> Result<Duration, String> {
    let parsed: jiff::SignedDuration = text.parse().map_err(|_| "a duration such as 90s, 5m or 720h".to_owned())?;
    Duration::try_from(parsed)
        .ok()
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| "a duration of more than nothing".to_owned())
}

impl WebhookArguments {
    /// Where the API server finds the server, by a Service of that name if by a Service.
    pub(crate) fn address(&self, name: &str) -> anyhow::Result<Address> {
        Ok(match self.webhook_config_mode {
            Mode::Url => {
                let host = self.webhook_config_url.clone().context("--webhook-config-url is needed with mode url")?;
                Address::Url { host }
            }
            Mode::Service => {
                let namespace = self.namespace().context("--webhook-config-namespace is needed with mode service")?;
                let (namespace, name) = (namespace.to_owned(), name.to_owned());
                Address::Service { namespace, name, port: self.webhook_config_service_port }
            }
        })
    }

    /// Namespace of Service and Secret.
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.webhook_config_namespace.as_deref()
    }

    /// Provided certificates, if there are any.
    pub(crate) fn certificate_files(&self) -> Option<CertificateFiles> {
        let (certificate, key) = (self.tls_cert_file.clone()?, self.tls_private_key_file.clone()?);
        Some(CertificateFiles { certificate, key })
    }

    /// How long certificates of our own last.
    pub(crate) fn lifetimes(&self) -> anyhow::Result<Lifetimes> {
        let lifetimes = Lifetimes { validity: self.certificate_validity, announcement: self.certificate_announcement };
        // From the announcement at two thirds on, a third is left.
        anyhow::ensure!(
            lifetimes.announcement * 4 <= lifetimes.validity,
            "--certificate-announcement must be at most a quarter of --certificate-validity"
        );
        Ok(lifetimes)
    }
}

//! Arguments shared by all commands that serve webhooks. Their names match those of Gardener's extensions where
//! possible.

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
    /// Through a Service in the same cluster.
    Service,
    /// Through a URL, for an API server in another cluster.
    Url,
}

/// Arguments of the webhooks of a command.
#[derive(Clone, Debug, Args)]
pub struct WebhookArguments {
    /// The cluster that runs the program. It contains the Service and the Secret with the certificates.
    #[command(flatten)]
    pub cluster: Seed,
    /// Port that serves the webhooks.
    #[arg(long, env = "WEBHOOK_CONFIG_SERVER_PORT", value_name = "PORT", default_value_t = 10250)]
    pub(crate) webhook_config_server_port: u16,
    /// How the API server reaches the webhooks.
    #[arg(long, env = "WEBHOOK_CONFIG_MODE", value_enum, default_value_t = Mode::Service)]
    pub(crate) webhook_config_mode: Mode,
    /// Host and port of the webhooks in mode `url`. The port defaults to 443.
    #[arg(long, env = "WEBHOOK_CONFIG_URL", value_name = "HOST[:PORT]", required_if_eq("webhook_config_mode", "url"))]
    pub(crate) webhook_config_url: Option<String>,
    /// Namespace of the Service and the Secret.
    #[arg(long, env = "WEBHOOK_CONFIG_NAMESPACE", value_name = "NAMESPACE")]
    pub(crate) webhook_config_namespace: Option<String>,
    /// Port of the Service.
    #[arg(long, env = "WEBHOOK_CONFIG_SERVICE_PORT", value_name = "PORT", default_value_t = 443)]
    pub(crate) webhook_config_service_port: u16,
    /// Namespace that owns the webhook configurations. Kubernetes deletes them together with it.
    #[arg(long, env = "WEBHOOK_CONFIG_OWNER_NAMESPACE", value_name = "NAMESPACE")]
    pub(crate) webhook_config_owner_namespace: Option<String>,
    /// Do not write the webhook configurations, because another program registers the webhooks.
    #[arg(long, env = "WEBHOOK_CONFIG_UNMANAGED")]
    pub(crate) webhook_config_unmanaged: bool,
    /// Server certificate and its chain as PEM, reloaded when it changes. By default, the program creates a CA and
    /// rotates its certificates.
    #[arg(long, env = "TLS_CERT_FILE", value_name = "FILE", requires = "tls_private_key_file")]
    pub(crate) tls_cert_file: Option<PathBuf>,
    /// Private key of the server certificate as PEM.
    #[arg(long, env = "TLS_PRIVATE_KEY_FILE", value_name = "FILE", requires = "tls_cert_file")]
    pub(crate) tls_private_key_file: Option<PathBuf>,
    /// CA bundle for the server certificate as PEM, reloaded when it changes.
    #[arg(long, env = "TLS_CA_FILE", value_name = "FILE", requires = "tls_cert_file")]
    pub(crate) tls_ca_file: Option<PathBuf>,
    /// Validity of certificates that the program creates. It rotates them after two thirds of this time.
    #[arg(long, env = "CERTIFICATE_VALIDITY", value_name = "DURATION", default_value = "720h", value_parser = duration)]
    pub(crate) certificate_validity: Duration,
    /// Time that a new CA spends in the CA bundle before it signs certificates.
    #[arg(long, env = "CERTIFICATE_ANNOUNCEMENT", value_name = "DURATION", default_value = "5m", value_parser = duration)]
    pub(crate) certificate_announcement: Duration,
    /// Port that serves /healthz, /readyz and /log-level. By default, they are not served.
    #[arg(long, env = "HEALTH_PORT", value_name = "PORT")]
    pub(crate) health_port: Option<u16>,
    /// Port that serves /metrics. By default, they are not served.
    #[arg(long, env = "METRICS_PORT", value_name = "PORT")]
    pub(crate) metrics_port: Option<u16>,
    /// Log level. `RUST_LOG` accepts finer directives. PUT /log-level changes the level at run time.
    #[arg(long, env = "LOG_LEVEL", value_enum, default_value_t = LogLevel::Info)]
    pub(crate) log_level: LogLevel,
    /// Log format.
    #[arg(long, env = "LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
    /// YAML file with arguments by their long names. Command line arguments override environment variables, which
    /// override the file.
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
    /// Returns the server's address for the webhook configurations. `name` is the Service in mode `service`.
    pub(crate) fn address(&self, name: &str) -> anyhow::Result<Address> {
        Ok(match self.webhook_config_mode {
            Mode::Url => {
                let host = self.webhook_config_url.clone().context("--webhook-config-url is needed with mode url")?;
                Address::Url { host }
            }
            Mode::Service => {
                let namespace = self.namespace().context("--webhook-config-namespace is needed with mode service")?;
                let namespace = namespace.to_owned();
                let name = name.to_owned();
                Address::Service { namespace, name, port: self.webhook_config_service_port }
            }
        })
    }

    /// Namespace of the Service and the Secret.
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.webhook_config_namespace.as_deref()
    }

    /// Provided certificate files, if any.
    pub(crate) fn certificate_files(&self) -> Option<CertificateFiles> {
        let certificate = self.tls_cert_file.clone()?;
        let key = self.tls_private_key_file.clone()?;
        Some(CertificateFiles { certificate, key })
    }

    /// Lifetimes of the certificates that the program creates.
    pub(crate) fn lifetimes(&self) -> anyhow::Result<Lifetimes> {
        let lifetimes = Lifetimes { validity: self.certificate_validity, announcement: self.certificate_announcement };
        // Rotation starts after two thirds of the validity, so one third remains.
        anyhow::ensure!(
            lifetimes.announcement * 4 <= lifetimes.validity,
            "--certificate-announcement must be at most a quarter of --certificate-validity"
        );
        Ok(lifetimes)
    }
}

//! The process of a command with webhooks: certificates, registration and server.

use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Client;
use kube::api::Api;
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::{info, warn};

use super::clocks::Clocks;
use super::trust::refusal;
use super::{
    CaBundle, CertificateAuthority, CertificateFiles, LiveCertificate, Registration, Routes, Webhook, WebhookArguments,
    WebhookKind, WebhookMetrics, publish, serve,
};
use crate::cluster::config_files::ConfigFiles;
use crate::process::endpoints::{self, Operations};
use crate::process::failure_reason::reason;
use crate::process::http_server::listen;
use crate::process::logs::{self, LogSwitch};
use crate::process::output::complain;
use crate::process::readiness::{Need, Readiness};
use crate::process::signals::stop_signal;
use crate::process::threads;

/// How often the registration is updated when certificates come from files.
const PUBLISH_INTERVAL: Duration = Duration::from_secs(10);
/// Delay before retrying after a failure.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// The services of a command.
pub struct Served {
    /// The cluster that the process runs in.
    pub cluster: Client,
    /// The cluster whose API server calls the webhooks.
    pub asking: Client,
    /// The kubeconfig files as they were when the clients were created.
    pub files: ConfigFiles,
    pub webhooks: Vec<(WebhookKind, Webhook)>,
    pub routes: Routes,
}

/// Runs a command with webhooks until it is stopped. `name` is used for Service, Secret and webhook configurations.
pub fn run(
    arguments: &WebhookArguments,
    name: &str,
    metrics: WebhookMetrics,
    served: impl Future<Output = anyhow::Result<Served>>,
) -> ExitCode {
    let start = || {
        let logs = logs::begin(arguments.log_level, arguments.log_format)?;
        let runtime = threads::several().context("no threads")?;
        let result = runtime.block_on(until_stopped(arguments, name, Arc::new(metrics), served, logs));
        // Tasks still in progress must not delay the exit.
        runtime.shutdown_background();
        result
    };
    match start() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Logging may not be initialized yet.
            complain(&reason(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

async fn until_stopped(
    arguments: &WebhookArguments,
    name: &str,
    metrics: Arc<WebhookMetrics>,
    served: impl Future<Output = anyhow::Result<Served>>,
    logs: LogSwitch,
) -> anyhow::Result<()> {
    let mut stop = pin!(stop_signal()?);
    let needs = [Some(Need::Certificate), (!arguments.webhook_config_unmanaged).then_some(Need::Registration)];
    let readiness = Readiness::waiting_for(needs.into_iter().flatten());
    let operations = Operations { readiness: readiness.clone(), metrics: metrics.clone(), logs };
    let servers = endpoints::serve(arguments.health_port, arguments.metrics_port, operations);
    let mut servers = pin!(servers?);
    let listener = listen(arguments.webhook_config_server_port).context("--webhook-config-server-port")?;
    info!(address = %listener.local_addr().context("no address")?, "listening");

    let Served { cluster, asking, files, webhooks, routes } = served.await?;
    let live = LiveCertificate::default();
    let registration = registration(arguments, name, webhooks, &asking).await?;
    // Without an address nothing is registered, and no name is expected.
    let server_name = arguments.address(name).ok().and_then(|address| address.names().into_iter().next());
    let server_name = server_name.unwrap_or_default();
    let live_of_upkeep = live.clone();
    let metrics_of_upkeep = metrics.clone();
    let upkeep =
        Maintenance { registration, asking, live: live_of_upkeep, readiness, metrics: metrics_of_upkeep, server_name };
    let mut upkeep = pin!(maintain(arguments, name, upkeep, cluster)?);

    let (stopping, stopped) = watch::channel(false);
    let mut server = pin!(serve(listener, &live, routes, metrics, stopped));
    let result = tokio::select! {
        result = &mut server => return result,
        error = &mut servers => Err(error),
        error = &mut upkeep => Err(error),
        error = files.until_changed() => Err(error),
        signal = &mut stop => {
            info!(signal, "stopping");
            Ok(())
        }
    };
    stopping.send_replace(true);
    let served = server.await;
    info!("stopped");
    result.and(served)
}

/// The configurations to write; `None` if they are managed elsewhere.
async fn registration(
    arguments: &WebhookArguments,
    name: &str,
    webhooks: Vec<(WebhookKind, Webhook)>,
    asking: &Client,
) -> anyhow::Result<Option<Registration>> {
    if arguments.webhook_config_unmanaged {
        return Ok(None);
    }
    let owner = match &arguments.webhook_config_owner_namespace {
        None => None,
        Some(namespace) => Some(owner(namespace, asking).await?),
    };
    let exclude = ("remediation.webhook.shoot.gardener.cloud/exclude".to_owned(), "true".to_owned());
    let address = arguments.address(name)?;
    Ok(Some(Registration { name: name.to_owned(), labels: [exclude].into(), owner, address, webhooks }))
}

async fn owner(namespace: &str, asking: &Client) -> anyhow::Result<OwnerReference> {
    let api: Api<Namespace> = Api::all(asking.clone());
    let found = api.get(namespace).await.context("--webhook-config-owner-namespace")?;
    Ok(OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        name: namespace.to_owned(),
        uid: found.metadata.uid.unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(false),
    })
}

/// Tasks that run while the server is running.
struct Maintenance {
    registration: Option<Registration>,
    asking: Client,
    live: LiveCertificate,
    readiness: Readiness,
    metrics: Arc<WebhookMetrics>,
    /// The name that the API server expects in the certificate.
    server_name: String,
}

/// Maintains certificate and registration. Ends only with an error, for invalid arguments.
fn maintain(
    arguments: &WebhookArguments,
    name: &str,
    upkeep: Maintenance,
    cluster: Client,
) -> anyhow::Result<BoxFuture<'static, anyhow::Error>> {
    if let Some(files) = arguments.certificate_files() {
        let trusted = arguments.tls_ca_file.clone();
        return Ok(Box::pin(async move { upkeep.given(&files, trusted.as_deref()).await }));
    }
    let namespace =
        arguments.namespace().context("--webhook-config-namespace is needed for a certificate of our own")?;
    let names = arguments.address(name)?.names();
    let api: Api<Secret> = Api::namespaced(cluster, namespace);
    let authority = CertificateAuthority::new(api, name, names, arguments.lifetimes()?);
    Ok(Box::pin(async move { upkeep.own(authority).await }))
}

impl Maintenance {
    async fn given(self, files: &CertificateFiles, trusted: Option<&Path>) -> anyhow::Error {
        if let Err(error) = files.load(&self.live) {
            return error;
        }
        self.readiness.has(Need::Certificate);
        let publishing = async {
            let mut registered = None;
            loop {
                let clocks = self.clocks().await;
                match trusted.map_or(Ok(String::new()), std::fs::read_to_string).map(CaBundle) {
                    Ok(bundle) => {
                        if self.publish(&bundle).await {
                            registered = Some(bundle);
                        }
                    }
                    Err(error) => warn!(%error, "--tls-ca-file can't be read"),
                }
                self.verify(registered.as_ref(), clocks, None);
                sleep(PUBLISH_INTERVAL).await;
            }
        };
        tokio::select! {
            () = files.follow(&self.live) => {}
            () = publishing => {}
        }
        anyhow::anyhow!("the certificate is not kept up any more")
    }

    async fn own(self, mut authority: CertificateAuthority) -> anyhow::Error {
        let mut registered = None;
        loop {
            let clocks = self.clocks().await;
            let (pause, failure) = match authority.rotate(&self.live, clocks).await {
                Ok(rotated) => {
                    self.metrics.certificate_expires(rotated.expires);
                    if self.publish(&rotated.bundle).await {
                        authority.mark_published(&rotated.bundle);
                        registered = Some(rotated.bundle);
                    }
                    (authority.period(), None)
                }
                Err(error) => {
                    let error = reason(error.as_ref());
                    warn!(error, "certificates can't be kept up");
                    (RETRY_INTERVAL, Some(error))
                }
            };
            self.verify(registered.as_ref(), clocks, failure);
            sleep(pause).await;
        }
    }

    /// Reads the clocks. Records their difference in a metric, and logs why no certificate is written.
    async fn clocks(&self) -> Clocks {
        let clocks = Clocks::read(&self.asking).await;
        if let Some(difference) = clocks.difference() {
            self.metrics.clock_difference(difference.as_secs());
        }
        if let Some(why) = clocks.objection() {
            warn!(why, "this process writes no certificate");
        }
        clocks
    }

    /// Verifies the served chain against the registered bundle, if any. A failed rotation makes the process unready
    /// only if there is no certificate or the API server rejects the served one.
    fn verify(&self, registered: Option<&CaBundle>, clocks: Clocks, failure: Option<String>) {
        let chain = self.live.chain();
        let refused = registered.and_then(|bundle| refusal(&chain, bundle, &self.server_name, clocks.verifying()));
        self.metrics.certificate_refused(refused.is_some());
        if let Some(why) = &refused {
            warn!(why, "the API server refuses the served certificate");
        }
        match (refused, failure) {
            (Some(why), Some(failure)) => self.readiness.misses(Need::Certificate, format!("{why}; {failure}")),
            (Some(why), None) => self.readiness.misses(Need::Certificate, why),
            (None, Some(failure)) if chain.is_empty() => self.readiness.misses(Need::Certificate, failure),
            (None, _) => self.readiness.has(Need::Certificate),
        }
    }

    /// Registers the bundle; whether that succeeded.
    async fn publish(&self, bundle: &CaBundle) -> bool {
        let Some(registration) = &self.registration else { return true };
        match publish(&self.asking, registration, bundle).await {
            Ok(()) => {
                self.readiness.has(Need::Registration);
                true
            }
            Err(error) => {
                let error = reason(error.as_ref());
                warn!(error, "webhooks can't be registered");
                self.readiness.misses(Need::Registration, error);
                false
            }
        }
    }
}

//! The process of the webhooks from its start to its end: certificates, registration, server.

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Client;
use kube::api::Api;
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::{info, warn};

use super::AdmissionArguments;
use super::garden::Garden;
use super::metrics::Metrics;
use super::reviewers::{Court, Mutator, Validator};
use super::webhooks::{MUTATE, VALIDATE, webhooks};
use crate::provider::Providers;
use crate::runtime::logs::LogSwitch;
use crate::runtime::operations_server::{self, Operations, listen};
use crate::runtime::process::stop_signal;
use crate::runtime::readiness::{Need, Readiness};
use crate::runtime::seed;
use crate::runtime::webhook::{
    Authority, Bundle, CertificateFiles, LiveCertificate, Registration, Reviewer, Routes, publish, serve,
};

/// How often given certificates are published anew, and failures are tried again.
const PERIOD: Duration = Duration::from_secs(10);
/// How soon a failure is tried again.
const RETRY: Duration = Duration::from_secs(2);

/// Runs until the process is told to stop.
pub(super) async fn run(arguments: &AdmissionArguments, providers: Providers, logs: LogSwitch) -> anyhow::Result<()> {
    let mut stop = pin!(stop_signal()?);
    let metrics = Arc::new(Metrics::default());
    let needs = [Some(Need::Certificate), (!arguments.webhook_config_unmanaged).then_some(Need::Registration)];
    let readiness = Readiness::waiting_for(needs.into_iter().flatten());
    let operations = Operations { readiness: readiness.clone(), metrics: metrics.clone(), logs };
    let servers = operations_server::serve(arguments.health_port, arguments.metrics_port, operations);
    let mut servers = pin!(servers.await?);
    let listener = listen(arguments.webhook_config_server_port).await.context("--webhook-config-server-port")?;
    info!(address = %listener.local_addr().context("no address")?, "listening");

    let cluster = arguments.cluster.client().await?;
    let garden = match &arguments.garden_kubeconfig {
        None => cluster.clone(),
        Some(file) => {
            let config = seed::config(Some(file), None).await.context("--garden-kubeconfig")?;
            Client::try_from(config).context("no client for the garden")?
        }
    };
    let live = LiveCertificate::default();
    let registration = registration(arguments, providers, &garden).await?;
    let upkeep =
        Upkeep { registration, garden: garden.clone(), live: live.clone(), readiness, metrics: metrics.clone() };
    let mut upkeep = pin!(keep_up(arguments, upkeep, cluster)?);

    let court = Court { providers, garden: Garden::new(garden) };
    let routes: Routes = [
        (VALIDATE, Arc::new(Validator(court.clone())) as Arc<dyn Reviewer>),
        (MUTATE, Arc::new(Mutator(court)) as Arc<dyn Reviewer>),
    ]
    .into();
    let (stopping, stopped) = watch::channel(false);
    let mut server = pin!(serve(listener, &live, routes, metrics, stopped));
    let result = tokio::select! {
        result = &mut server => return result,
        error = &mut servers => Err(error),
        error = &mut upkeep => Err(error),
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

/// What is registered; `None` when somebody else does it.
async fn registration(
    arguments: &AdmissionArguments,
    providers: Providers,
    garden: &Client,
) -> anyhow::Result<Option<Registration>> {
    let known: Vec<&str> = providers.profile_formats().map(|format| format.provider_type()).collect();
    let wanted: Vec<&str> = arguments.provider_types.iter().map(String::as_str).collect();
    if let Some(unknown) = wanted.iter().find(|wanted| !known.contains(wanted)) {
        anyhow::bail!("--provider-type {unknown}: there are {}", known.join(", "));
    }
    if arguments.webhook_config_unmanaged {
        return Ok(None);
    }
    let owner = match &arguments.webhook_config_owner_namespace {
        None => None,
        Some(namespace) => Some(owner(namespace, garden).await?),
    };
    let exclude = ("remediation.webhook.shoot.gardener.cloud/exclude".to_owned(), "true".to_owned());
    Ok(Some(Registration {
        name: arguments.webhook_config_name.clone(),
        labels: [exclude].into(),
        owner,
        address: arguments.address()?,
        webhooks: webhooks(if wanted.is_empty() { known } else { wanted }.into_iter()),
    }))
}

async fn owner(namespace: &str, garden: &Client) -> anyhow::Result<OwnerReference> {
    let api: Api<Namespace> = Api::all(garden.clone());
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

/// What is kept up while the server runs.
struct Upkeep {
    registration: Option<Registration>,
    garden: Client,
    live: LiveCertificate,
    readiness: Readiness,
    metrics: Arc<Metrics>,
}

/// Keeps certificate and registration up; ends only with an error, if the arguments are wrong.
fn keep_up(
    arguments: &AdmissionArguments,
    upkeep: Upkeep,
    cluster: Client,
) -> anyhow::Result<futures::future::BoxFuture<'static, anyhow::Error>> {
    if let Some(files) = arguments.certificate_files() {
        let trusted = arguments.tls_ca_file.clone();
        return Ok(Box::pin(async move { upkeep.given(&files, trusted.as_deref()).await }));
    }
    let namespace =
        arguments.namespace().context("--webhook-config-namespace is needed for a certificate of our own")?;
    let names = arguments.address()?.names();
    let api: Api<Secret> = Api::namespaced(cluster, namespace);
    let authority = Authority::new(api, &arguments.webhook_config_name, names, arguments.lifetimes()?);
    Ok(Box::pin(async move { upkeep.own(authority).await }))
}

impl Upkeep {
    /// Given certificates.
    async fn given(self, files: &CertificateFiles, trusted: Option<&Path>) -> anyhow::Error {
        if let Err(error) = files.load(&self.live) {
            return error;
        }
        self.readiness.has(Need::Certificate);
        let publishing = async {
            loop {
                match trusted.map_or(Ok(String::new()), std::fs::read_to_string) {
                    Ok(bundle) => drop(self.publish(&Bundle(bundle)).await),
                    Err(error) => warn!(%error, "--tls-ca-file can't be read"),
                }
                sleep(PERIOD).await;
            }
        };
        tokio::select! {
            () = files.follow(&self.live) => {}
            () = publishing => {}
        }
        anyhow::anyhow!("the certificate is not kept up any more")
    }

    /// Certificates of our own.
    async fn own(self, mut authority: Authority) -> anyhow::Error {
        loop {
            let pause = match authority.tend(&self.live).await {
                Ok((bundle, expires)) => {
                    self.metrics.certificate_expires(expires);
                    self.readiness.has(Need::Certificate);
                    if self.publish(&bundle).await {
                        authority.has_published(&bundle);
                    }
                    authority.period()
                }
                Err(error) => {
                    let error = format!("{error:#}");
                    warn!(error, "certificates can't be kept up");
                    if !self.live.is_there() {
                        self.readiness.misses(Need::Certificate, error);
                    }
                    RETRY
                }
            };
            sleep(pause).await;
        }
    }

    /// Whether the API server knows whom to trust.
    async fn publish(&self, bundle: &Bundle) -> bool {
        let Some(registration) = &self.registration else { return true };
        match publish(&self.garden, registration, bundle).await {
            Ok(()) => {
                self.readiness.has(Need::Registration);
                true
            }
            Err(error) => {
                let error = format!("{error:#}");
                warn!(error, "webhooks can't be registered");
                self.readiness.misses(Need::Registration, error);
                false
            }
        }
    }
}

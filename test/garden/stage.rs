//! Gardens for these tests, each started by the first test that needs it, and commands whose results are compared with
//! them.

use std::process::{Output, Stdio};

use anyhow::{Context as _, Result};
use kube::Client;
use kube::api::PostParams;
use serde_json::Value;
use test_support::cluster::{ADMIN, ControlPlane, GardenServers};
use test_support::program;
use test_support::webhooks::Webhooks;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::sync::OnceCell;

/// A control plane with Gardener's servers, and our webhooks or none.
pub(crate) struct Stage {
    webhooks: Option<Webhooks>,
    servers: GardenServers,
    pub(crate) control_plane: ControlPlane,
}

/// A garden without webhooks.
pub(crate) async fn bare() -> Result<&'static Stage> {
    static SHARED: OnceCell<Stage> = OnceCell::const_new();
    running(SHARED.get_or_try_init(|| Stage::start(false)).await?)
}

/// A garden with our webhooks.
pub(crate) async fn with_webhooks() -> Result<&'static Stage> {
    static SHARED: OnceCell<Stage> = OnceCell::const_new();
    running(SHARED.get_or_try_init(|| Stage::start(true)).await?)
}

fn running(stage: &'static Stage) -> Result<&'static Stage> {
    stage.servers.ensure_running()?;
    stage.webhooks.as_ref().map_or(Ok(()), |webhooks| webhooks.process().ensure_running())?;
    Ok(stage)
}

impl Stage {
    async fn start(has_webhooks: bool) -> Result<Self> {
        let control_plane = ControlPlane::start().await?;
        let servers = GardenServers::start(&control_plane).await?;
        let mut stage = Self { webhooks: None, servers, control_plane };
        if has_webhooks {
            stage.install_webhooks().await?;
        }
        Ok(stage)
    }

    /// A garden for one test, for objects that are stored before the webhooks are installed.
    pub(crate) async fn without_webhooks() -> Result<Self> {
        Self::start(false).await
    }

    /// Installs webhooks that review all later writes.
    pub(crate) async fn install_webhooks(&mut self) -> Result<()> {
        let webhooks = Webhooks::start(&self.control_plane, "admission", |program| program).await?;
        webhooks.ready().await?;
        self.webhooks = Some(webhooks);
        Ok(())
    }

    /// A client with all permissions.
    pub(crate) async fn client(&self) -> Result<Client> {
        self.control_plane.client(ADMIN).await
    }
}

/// The API server's verdict on a document that a user applies.
#[derive(Debug)]
pub(crate) enum Verdict {
    Accepted,
    Refused(String),
}

impl Verdict {
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self, Self::Refused(_))
    }

    /// The verdict as a user reads it.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Accepted => "accepted",
            Self::Refused(message) => message,
        }
    }
}

/// Validates a document as `kubectl create --dry-run=server` does.
pub(crate) async fn verdict(client: &Client, document: &Value) -> Result<Verdict> {
    let plural = format!("{}s", document["kind"].as_str().unwrap_or_default().to_lowercase());
    let path = match document["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("/apis/core.gardener.cloud/v1beta1/namespaces/{namespace}/{plural}"),
        None => format!("/apis/core.gardener.cloud/v1beta1/{plural}"),
    };
    let mut request = kube::core::Request::new(&path).create(&PostParams::default(), serde_json::to_vec(document)?)?;
    *request.uri_mut() = format!("{path}?dryRun=All&fieldValidation=Strict").parse()?;
    match client.request_text(request).await {
        Ok(_) => Ok(Verdict::Accepted),
        Err(kube::Error::Api(status)) => Ok(Verdict::Refused(status.message.clone())),
        Err(error) => Err(error).context("no answer of the API server"),
    }
}

/// Runs a command with a document on standard input.
pub(crate) async fn command(arguments: &[&str], input: &str) -> Result<Output> {
    let mut command = Command::from(program::command());
    command.args(arguments).env("NO_COLOR", "1").env_remove("KUBECONFIG").kill_on_drop(true);
    command.current_dir(test_support::repository());
    let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut stdin = process.stdin.take().context("no standard input")?;
    // A command that fails early reads no input, so the write may fail.
    let _ = stdin.write_all(input.as_bytes()).await;
    drop(stdin);
    process.wait_with_output().await.context("running the binary")
}

/// The components that refuse a profile according to `lint`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Refusals {
    /// Gardener itself.
    pub(crate) by_gardener: bool,
    /// The provider, with our webhooks.
    pub(crate) by_provider: bool,
    /// Gardener, unless the provider's webhooks fill in members.
    pub(crate) without_webhooks: bool,
    /// The output of `lint`.
    pub(crate) text: String,
}

/// Runs `lint` on a document.
pub(crate) async fn lint(document: &Value, arguments: &[&str]) -> Result<Refusals> {
    let arguments = [&["cloudprofile", "lint", "-", "-o", "json"], arguments].concat();
    let output = command(&arguments, &document.to_string()).await?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut refusals = Refusals::default();
    let Ok(found) = serde_json::from_str::<Value>(&text) else {
        // Every garden refuses a document that is no profile.
        refusals.text = String::from_utf8_lossy(&output.stderr).into_owned();
        refusals.by_gardener = !output.status.success();
        return Ok(refusals);
    };
    let profiles = found["profiles"].as_array().context("no profiles")?;
    for finding in profiles.iter().flat_map(|profile| profile["findings"].as_array().into_iter().flatten()) {
        let of = |member: &str| finding[member].as_str().unwrap_or_default();
        let is_read_wrongly = ["unreadable", "unknown-member"].contains(&of("rule"));
        let is_refused = of("severity") == "error" && (is_read_wrongly || of("reason").starts_with("Refused by "));
        let by_provider =
            of("path").starts_with("spec.providerConfig") || of("reason").starts_with("Refused by the provider");
        if of("severity") == "error" || of("rule") == "filled-in" {
            refusals.text += &format!("{} {}: {}\n", of("rule"), of("path"), of("reason"));
        }
        refusals.by_provider |= is_refused && by_provider;
        refusals.by_gardener |= is_refused && !by_provider;
        refusals.without_webhooks |= of("rule") == "filled-in";
    }
    Ok(refusals)
}

/// Number of random cases: the value of the environment variable, or `usual`.
pub(crate) fn number_of(variable: &str, usual: usize) -> Result<usize> {
    match std::env::var(variable) {
        Ok(number) => number.parse().with_context(|| format!("{variable} is {number:?}")),
        Err(_) => Ok(usual),
    }
}

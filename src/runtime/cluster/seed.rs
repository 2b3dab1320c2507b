//! The seed cluster, for every command that connects to one.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use crate::cluster::client::client;
use crate::cluster::client_config::completed;
use crate::cluster::config_files::ConfigFiles;

/// Arguments that select the seed.
#[derive(Clone, Debug, Default, Args)]
pub struct Seed {
    /// Kubeconfig of the seed. By default, `KUBECONFIG`, the default file, or the pod's service account.
    // clap doesn't read the environment here, because `KUBECONFIG` may name several files, which kube merges.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context in the kubeconfig. By default, the current one.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl Seed {
    /// A seed by kubeconfig and context.
    #[must_use]
    pub fn new(kubeconfig: Option<PathBuf>, context: Option<String>) -> Self {
        Self { kubeconfig, context }
    }

    /// Whether the command line selects a cluster.
    #[must_use]
    pub fn is_named(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }

    /// The files that configure the connection.
    #[must_use]
    pub fn files(&self) -> ConfigFiles {
        ConfigFiles::of(self.kubeconfig.as_deref())
    }

    /// Loads the client configuration.
    ///
    /// # Errors
    /// If there is neither a kubeconfig nor a service account, or it is invalid.
    pub async fn config(&self) -> anyhow::Result<Config> {
        config(self.kubeconfig.as_deref(), self.context.as_deref()).await
    }

    /// Creates a client.
    ///
    /// # Errors
    /// If there is neither a kubeconfig nor a service account, or it is invalid.
    pub async fn client(&self) -> anyhow::Result<Client> {
        self.client_as(None).await
    }

    /// Creates a client, which impersonates `user` if given.
    ///
    /// # Errors
    /// As [`client`](Self::client).
    pub async fn client_as(&self, user: Option<&str>) -> anyhow::Result<Client> {
        let mut config = self.config().await?;
        if let Some(user) = user {
            config.auth_info.impersonate = Some(user.to_owned());
        }
        client(config).await.context("no client for the seed")
    }
}

/// Describes why a kubeconfig is invalid. The error already names its causes. Only its first line is used, because the
/// others contain the content of the file.
fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    let innermost = std::iter::successors(Some(error), |error| error.source()).last();
    let text = innermost.map(ToString::to_string).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

/// The error of a list of Workers. A cluster that does not serve them is not a seed.
pub fn workers_unlisted(error: kube::Error) -> anyhow::Error {
    match error {
        kube::Error::Api(status) if status.code == 404 => anyhow!(
            "this cluster is not a seed: it does not serve Workers (extensions.gardener.cloud); name the kubeconfig of the seed with --kubeconfig"
        ),
        error => anyhow::Error::new(error).context("Workers can't be listed"),
    }
}

/// Loads the client configuration of a kubeconfig and one of its contexts.
pub async fn config(kubeconfig: Option<&Path>, context: Option<&str>) -> anyhow::Result<Config> {
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let config = match kubeconfig {
        Some(path) => {
            let failed = |what: &str, error: KubeconfigError| {
                anyhow!("kubeconfig {} can't be {what}: {}", path.display(), reason(&error))
            };
            let kubeconfig = Kubeconfig::read_from(path).map_err(|error| failed("read", error))?;
            Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| failed("used", error))?
        }
        None if context.is_some() => Config::from_kubeconfig(&options).await.context("the kubeconfig can't be used")?,
        None => Config::infer().await.map_err(|error| {
            anyhow!("no cluster to read from: name a kubeconfig with --kubeconfig or KUBECONFIG ({})", reason(&error))
        })?,
    };
    Ok(completed(config))
}

#[cfg(test)]
mod tests {
    use std::fs::write;

    use super::*;

    #[test]
    fn kubeconfig_or_context_selects_seed() {
        let is_named = |kubeconfig: Option<&str>, context: Option<&str>| {
            Seed { kubeconfig: kubeconfig.map(PathBuf::from), context: context.map(str::to_owned) }.is_named()
        };
        assert!(is_named(Some("a"), None) && is_named(None, Some("a")) && is_named(Some("a"), Some("a")));
        assert!(!is_named(None, None));
    }

    #[tokio::test]
    async fn uses_cluster_of_kubeconfig_context() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "current-context: a
contexts: [{name: a, context: {cluster: a, user: u}}, {name: b, context: {cluster: b, user: u}}]
clusters: [{name: a, cluster: {server: \"https://a.example\"}}, {name: b, cluster: {server: \"https://b.example\"}}]
users: [{name: u, user: {token: planted-secret}}]
";
        write(file.path(), text).unwrap();
        let host =
            async |context| config(Some(file.path()), context).await.map(|config| config.cluster_url.to_string());
        assert_eq!(host(None).await.unwrap(), "https://a.example/");
        assert_eq!(host(Some("b")).await.unwrap(), "https://b.example/");
        let error = host(Some("c")).await.unwrap_err().to_string();
        let beginning = format!("kubeconfig {} can't be used: ", file.path().display());
        assert!(error.starts_with(&beginning) && error.ends_with("context: c"), "{error}");
    }

    #[tokio::test]
    async fn kubeconfig_error_has_reason_without_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        let failed = async || config(Some(&path), None).await.unwrap_err().to_string();
        let not_found = std::io::Error::from_raw_os_error(2);
        assert_eq!(failed().await, format!("kubeconfig {} can't be read: {not_found}", path.display()));
        write(&path, "users:\n- name: u\n  user:\n    token: [planted-secret\n").unwrap();
        let error = failed().await;
        assert!(!error.contains("planted-secret") && error.lines().count() == 1, "{error}");
    }

    #[tokio::test]
    async fn context_alone_uses_default_kubeconfig() {
        let error = config(None, Some("a context that nobody has")).await.unwrap_err().to_string();
        assert_eq!(error, "the kubeconfig can't be used");
        // The developer who runs the tests may have a kubeconfig.
        let inferred = config(None, None).await.map(drop).map_err(|error| error.to_string());
        assert!(
            inferred.as_ref().err().is_none_or(|error| error.starts_with("no cluster to read from: name a kubeconfig")),
            "{inferred:?}"
        );
    }
}

//! Creates clients. The client runs the credential plugin of the kubeconfig, which may never end.

use std::thread;
use std::time::Duration;

use anyhow::bail;
use kube::{Client, Config};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Time limit for a credential plugin. A user may have to log in with a browser.
const PLUGIN_TIMEOUT: Duration = Duration::from_secs(180);

/// Creates a client and waits a limited time for the credential plugin of the kubeconfig.
///
/// # Errors
/// If the configuration is invalid, or its plugin fails or does not end in time.
pub async fn client(config: Config) -> anyhow::Result<Client> {
    client_within(config, PLUGIN_TIMEOUT).await
}

async fn client_within(config: Config, limit: Duration) -> anyhow::Result<Client> {
    let Some(exec) = &config.auth_info.exec else { return Ok(Client::try_from(config)?) };
    let plugin = exec.command.clone().unwrap_or_default();
    let (sender, receiver) = oneshot::channel();
    let runtime = Handle::current();
    // Not a thread of the runtime, because the runtime waits for its threads when it ends.
    thread::spawn(move || {
        let _runtime = runtime.enter();
        // Without a receiver, the time limit has passed.
        let _ = sender.send(Client::try_from(config));
    });
    match timeout(limit, receiver).await {
        Ok(Ok(client)) => Ok(client?),
        // The thread has panicked, or the limit has passed.
        Ok(Err(_)) | Err(_) => {
            bail!("the credential plugin {plugin:?} of the kubeconfig has not ended after {} s", limit.as_secs())
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Uri;
    use kube::config::ExecConfig;

    use super::*;

    async fn client_of(script: &str) -> Result<Client, String> {
        let exec = serde_json::json!({
            "apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", script],
            "interactiveMode": "Never",
        });
        let mut config = Config::new(Uri::from_static("http://api.example"));
        config.auth_info.exec = Some(serde_json::from_value::<ExecConfig>(exec).unwrap());
        client_within(config, Duration::from_secs(2)).await.map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn plugins_have_a_time_limit() {
        let credential =
            r#"{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "t"}}"#;
        assert!(client_of(&format!("echo '{credential}'")).await.is_ok());
        let Err(error) = client_of("sleep 20").await else { panic!("it waits for the plugin") };
        assert_eq!(error, "the credential plugin \"sh\" of the kubeconfig has not ended after 2 s");
    }
}

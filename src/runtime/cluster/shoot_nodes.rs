//! I/O: counts the nodes of a shoot, with the kubeconfig that gardenlet keeps in the shoot namespace.
//!
//! The first request lists a table, as `kubectl get nodes` does, with a few words per node. Only if the count
//! differs from the target, a second one adds metadata to exclude nodes that machine-controller-manager does not
//! manage. Each count uses a new client, because gardenlet rotates the kubeconfig and connections to hundreds of shoots
//! would be costly.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::HeaderValue;
use axum::http::header::ACCEPT;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ListParams, Request};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde::Deserialize;

use crate::cluster::client_config::completed;
use crate::process::failure_reason::reason;
use decisions::worker::machines::node_count::{MachineCount, NodeCount};
use wire::api::bounded_text::shortened;
use wire::api::gotext::json::null_as_default;

/// Secrets with a kubeconfig for the shoot: the one with the address inside the seed is preferred.
const SECRETS: [&str; 2] = ["gardener-internal", "gardener"];
const KUBECONFIG: &str = "kubeconfig";
/// Timeout of a whole count.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Page size, maximum number of pages, and maximum size of a page in bytes.
const PAGE_SIZE: u32 = 500;
const MAX_PAGES: u32 = 40;
const MAX_PAGE_BYTES: usize = 8 << 20;
/// Longest error text of an API server in bytes.
const MAX_ERROR_BYTES: usize = 300;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const NOT_MANAGED: &str = "node.machine.sapcloud.io/not-managed-by-mcm";

/// Why counting failed. Errors never contain parts of the kubeconfig.
#[derive(Debug, thiserror::Error)]
pub enum NodesError {
    #[error("Secret {name:?} can't be read: {reason}")]
    Secret { name: &'static str, reason: String },
    #[error("there is neither Secret {:?} nor {:?} with a kubeconfig of the shoot", SECRETS[0], SECRETS[1])]
    NoSecret,
    #[error("the kubeconfig of the shoot can't be used: {0}")]
    Kubeconfig(&'static str),
    #[error("failed to list shoot nodes: {0}")]
    List(String),
}

/// Counts the nodes of the shoot. The count excludes unmanaged nodes only if it would not match `wanted` otherwise.
///
/// # Errors
/// When there is no usable kubeconfig, or no response in time.
pub async fn count_nodes(seed: &Client, namespace: &str, target: MachineCount) -> Result<NodeCount, NodesError> {
    let count = async {
        let client = shoot_client(&kubeconfig(seed, namespace).await?).await?;
        let all = counted(&client, Include::Nothing).await?;
        if target.is_met_by(all) { Ok(all) } else { counted(&client, Include::Metadata).await }
    };
    let slow = |_| NodesError::List(format!("no answer within {} s", TIMEOUT.as_secs()));
    tokio::time::timeout(TIMEOUT, count).await.map_err(slow)?
}

/// Reads the kubeconfig from its Secret.
async fn kubeconfig(seed: &Client, namespace: &str) -> Result<String, NodesError> {
    let secrets: Api<Secret> = Api::namespaced(seed.clone(), namespace);
    for name in SECRETS {
        let failed = |error: kube::Error| NodesError::Secret { name, reason: bounded(&error) };
        let Some(secret) = secrets.get_opt(name).await.map_err(failed)? else { continue };
        let text = secret.data.unwrap_or_default().remove(KUBECONFIG).ok_or(NodesError::Kubeconfig("it is missing"))?;
        return String::from_utf8(text.0).map_err(|_| NodesError::Kubeconfig("it is no text"));
    }
    Err(NodesError::NoSecret)
}

/// Creates a client from the kubeconfig. Programs and local files in it are rejected, so it can't run code or leak
/// files.
async fn shoot_client(text: &str) -> Result<Client, NodesError> {
    let unusable = NodesError::Kubeconfig;
    let kubeconfig = Kubeconfig::from_yaml(text).map_err(|_| unusable("it is no kubeconfig"))?;
    let users = kubeconfig.auth_infos.iter().filter_map(|user| user.auth_info.as_ref());
    for user in users {
        if user.exec.is_some() || user.auth_provider.is_some() {
            return Err(unusable("it names a program"));
        }
        if user.token_file.is_some() || user.client_certificate.is_some() || user.client_key.is_some() {
            return Err(unusable("it names a file"));
        }
    }
    let mut clusters = kubeconfig.clusters.iter().filter_map(|cluster| cluster.cluster.as_ref());
    if clusters.any(|cluster| cluster.certificate_authority.is_some()) {
        return Err(unusable("it names a file"));
    }
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let mut config = completed(config.map_err(|_| unusable("context, cluster or user is missing"))?);
    config.connect_timeout = Some(TIMEOUT);
    config.read_timeout = Some(TIMEOUT);
    Client::try_from(config).map_err(|_| unusable("no client can be made of it"))
}

/// Content of table rows in addition to the printed columns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Include {
    Nothing,
    Metadata,
}

async fn counted(client: &Client, include: Include) -> Result<NodeCount, NodesError> {
    let mut count = NodeCount::default();
    let mut token = String::new();
    for _ in 0..MAX_PAGES {
        let table = page(client, include, &token).await?;
        let status = table.status_column()?;
        for row in table.rows.iter().filter(|row| !row.is_unmanaged()) {
            count.registered += 1;
            count.ready += usize::from(row.cells.get(status).is_some_and(|cell| cell == "Ready"));
        }
        token = table.metadata.continue_;
        if token.is_empty() {
            return Ok(count);
        }
    }
    Err(NodesError::List(format!("there are more than {}", PAGE_SIZE * MAX_PAGES)))
}

async fn page(client: &Client, include: Include, token: &str) -> Result<Table, NodesError> {
    let list = NodesError::List;
    let include = match include {
        Include::Nothing => "None",
        Include::Metadata => "Metadata",
    };
    let token = (!token.is_empty()).then(|| token.to_owned());
    let parameters = ListParams { limit: Some(PAGE_SIZE), continue_token: token, ..ListParams::default() };
    let request = Request::new("/api/v1/nodes").list(&parameters).map_err(|error| list(error.to_string()))?;
    let (mut head, _) = request.into_parts();
    let uri = format!("{}&includeObject={include}", head.uri);
    head.uri = uri.parse().map_err(|_| list("a token of the list can't be used".to_owned()))?;
    head.headers.insert(ACCEPT, HeaderValue::from_static(TABLE));
    let request = axum::http::Request::from_parts(head, kube::client::Body::empty());
    let response = client.send(request).await.map_err(|error| list(bounded(&error)))?;
    let code = response.status();
    if !code.is_success() {
        return Err(list(format!("the API server answers {}", code.as_u16())));
    }
    let body = to_bytes(Body::new(response.into_body()), MAX_PAGE_BYTES).await;
    let body = body.map_err(|_| list(format!("the answer breaks off or has more than {MAX_PAGE_BYTES} bytes")))?;
    serde_json::from_slice(&body).map_err(|_| list("the answer is no table".to_owned()))
}

/// Escaped and bounded error text.
fn bounded(error: &kube::Error) -> String {
    shortened(&reason(error), MAX_ERROR_BYTES)
}

/// A list in table format.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Table {
    #[serde(default)]
    metadata: TableMetadata,
    column_definitions: Vec<Column>,
    #[serde(default, deserialize_with = "null_as_default")]
    rows: Vec<Row>,
}

#[derive(Default, Deserialize)]
struct TableMetadata {
    #[serde(rename = "continue", default, deserialize_with = "null_as_default")]
    continue_: String,
}

#[derive(Deserialize)]
struct Column {
    name: String,
}

#[derive(Deserialize)]
struct Row {
    cells: Vec<serde_json::Value>,
    object: Option<RowObject>,
}

#[derive(Deserialize)]
struct RowObject {
    #[serde(default)]
    metadata: RowMetadata,
}

#[derive(Default, Deserialize)]
struct RowMetadata {
    #[serde(default, deserialize_with = "null_as_default")]
    annotations: std::collections::BTreeMap<String, String>,
}

impl Table {
    /// Index of the status column. Its value is exactly `Ready` only for schedulable nodes.
    fn status_column(&self) -> Result<usize, NodesError> {
        let column = self.column_definitions.iter().position(|column| column.name == "Status");
        column.ok_or_else(|| NodesError::List("the answer has no column Status".to_owned()))
    }
}

impl Row {
    fn is_unmanaged(&self) -> bool {
        let annotations = self.object.as_ref().map(|object| &object.metadata.annotations);
        annotations.is_some_and(|annotations| annotations.get(NOT_MANAGED).is_some_and(|value| value == "1"))
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Response;
    use serde_json::{Value, json};

    use super::*;
    use crate::cluster::test_support::{ApiServer, document, refusal};

    fn kubeconfig(user: &str, cluster: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             clusters: [{{name: c, cluster: {{server: \"https://192.0.2.1\"{cluster}}}}}]\nusers: [{{name: u, user: {{{user}}}}}]\n"
        )
    }

    #[tokio::test]
    async fn rejects_kubeconfig_with_programs_or_files() {
        let refused = async |user: &str, cluster: &str| match shoot_client(&kubeconfig(user, cluster)).await {
            Ok(_) => None,
            Err(error) => Some(error.to_string()),
        };
        assert_eq!(refused("token: planted-secret", "").await, None);
        for (user, cluster) in [
            ("exec: {apiVersion: client.authentication.k8s.io/v1, command: planted-secret}", ""),
            ("auth-provider: {name: planted-secret}", ""),
            ("tokenFile: /planted-secret", ""),
            ("client-certificate: /planted-secret, client-key: /planted-secret", ""),
            ("client-certificate: /planted-secret", ""),
            ("client-key: /planted-secret", ""),
            ("token: planted-secret", ", certificate-authority: /planted-secret"),
        ] {
            let reason = refused(user, cluster).await.unwrap();
            assert!(reason.contains("it names a") && !reason.contains("planted-secret"), "{user}: {reason}");
        }
        for broken in ["planted-secret", "clusters: planted-secret", "{"] {
            let error = shoot_client(broken).await.err().unwrap().to_string();
            assert!(!error.contains("planted-secret"), "{error}");
        }
    }

    /// A page of a node list, with the annotation of machine-controller-manager if given.
    fn table(columns: &[&str], rows: &[(&str, Option<&str>)], next: &str) -> Value {
        let columns: Vec<Value> = columns.iter().map(|name| json!({"name": name, "type": "string"})).collect();
        let row = |(status, not_managed): &(&str, Option<&str>)| {
            let mut cells = vec![""; columns.len()];
            if let Some(cell) = cells.last_mut() {
                *cell = status;
            }
            let annotations = not_managed.map(|value| json!({"node.machine.sapcloud.io/not-managed-by-mcm": value}));
            json!({"cells": cells, "object": {"metadata": {"name": "n", "annotations": annotations}}})
        };
        let rows: Vec<Value> = rows.iter().map(row).collect();
        json!({"kind": "Table", "metadata": {"continue": next}, "columnDefinitions": columns, "rows": rows})
    }

    #[tokio::test]
    async fn counts_nodes_on_all_pages() {
        let server = ApiServer::new(|requested| {
            document(&match requested.query.contains("continue=more") {
                false => {
                    let rows =
                        [("Ready", None), ("Ready,SchedulingDisabled", None), ("NotReady", None), ("Ready", Some("1"))];
                    table(&["Name", "Status"], &rows, "more")
                }
                true => table(&["Name", "Roles", "Status"], &[("NotReady", Some("0")), ("Ready", None)], ""),
            })
        });
        for (include, target) in [(Include::Nothing, "None"), (Include::Metadata, "Metadata")] {
            let count = counted(&server.client, include).await.unwrap();
            assert_eq!(count, NodeCount { registered: 5, ready: 2 });
            let requested = server.requested();
            assert_eq!(requested.len(), 2);
            for requested in requested {
                assert_eq!((&*requested.line, &*requested.accept), ("GET /api/v1/nodes", TABLE));
                let parameters: Vec<&str> = requested.query.split('&').collect();
                let include = format!("includeObject={target}");
                assert!(parameters.contains(&"limit=500") && parameters.contains(&&*include), "{parameters:?}");
            }
        }
    }

    #[tokio::test]
    async fn reports_why_counting_failed() {
        type Reply = fn() -> Response<Body>;
        let cases: [(Reply, &str); 4] = [
            (|| refusal(403, "Forbidden"), "the API server answers 403"),
            (|| Response::new(Body::from("<html>Please log in</html>")), "the answer is no table"),
            (|| document(&table(&["Name", "Age"], &[], "")), "the answer has no column Status"),
            (|| document(&table(&["Status"], &[("Ready", None)], "more")), "there are more than 20000"),
        ];
        for (response, expected) in cases {
            let server = ApiServer::new(move |_| response());
            let error = counted(&server.client, Include::Nothing).await.unwrap_err().to_string();
            assert_eq!(error, format!("failed to list shoot nodes: {expected}"));
        }
    }

    #[tokio::test]
    async fn prefers_internal_kubeconfig() {
        let of = async |there: &'static [&'static str]| {
            let server = ApiServer::new(move |requested| match there.contains(&requested.last()) {
                true => document(&json!({"metadata": {"name": requested.last()},
                    "data": {"kubeconfig": k8s_openapi::ByteString(requested.last().into())}})),
                false => refusal(404, "NotFound"),
            });
            super::kubeconfig(&server.client, "ns").await.map_err(|error| error.to_string())
        };
        assert_eq!(of(&["gardener", "gardener-internal"]).await.as_deref(), Ok("gardener-internal"));
        assert_eq!(of(&["gardener"]).await.as_deref(), Ok("gardener"));
        assert!(of(&[]).await.unwrap_err().starts_with("there is neither Secret"));
    }

    #[tokio::test]
    async fn escapes_and_bounds_seed_errors() {
        let message = format!("\u{202e}{}", "never ".repeat(100));
        let status =
            json!({"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": message});
        let server =
            ApiServer::new(move |_| Response::builder().status(403).body(Body::from(status.to_string())).unwrap());
        let error = super::kubeconfig(&server.client, "ns").await.unwrap_err().to_string();
        let beginning =
            r#"Secret "gardener-internal" can't be read: the API server answers 403 Forbidden: \u{202e}never"#;
        assert!(error.starts_with(beginning) && error.len() < MAX_ERROR_BYTES + 100, "{error}");
    }
}

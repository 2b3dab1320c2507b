//! Reads from kube-apiserver's audit log which requests a user made.

use std::collections::HashSet;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use serde::Deserialize;

use super::eventually;

pub struct AuditLog {
    file: PathBuf,
    client: Client,
}

/// A position in the log from which requests are counted.
#[derive(Clone, Copy, Debug)]
pub struct Mark(u64);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Empty if the API server did not authenticate the request, for example because the client disconnected first.
    pub user: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` …
    pub verb: String,
    /// Plural and subresource, such as `workers/status`. Empty for non-resource requests such as discovery.
    pub resource: String,
    /// Empty if cluster-scoped.
    pub namespace: String,
    /// Empty for lists and watches.
    pub name: String,
    /// HTTP status of the response. For a watch, when it started.
    pub code: u16,
    /// Path and query.
    pub uri: String,
}

impl Request {
    pub fn writes(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch" | "head")
    }
}

impl AuditLog {
    /// Logs each request when it is answered, and a watch also when it starts. Omits bodies.
    pub const POLICY: &'static str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
";

    pub fn new(file: PathBuf, client: Client) -> Self {
        Self { file, client }
    }

    /// The current position, after all earlier responses.
    pub async fn mark(&self) -> Result<Mark> {
        self.probe().await
    }

    /// The requests of a user since a mark, in the order of their responses.
    pub async fn requests(&self, user: &str, since: Mark) -> Result<Vec<Request>> {
        let mut requests = self.all_requests(since).await?;
        requests.retain(|request| request.user == user);
        Ok(requests)
    }

    /// Same as [`Self::requests`] for all users.
    pub async fn all_requests(&self, since: Mark) -> Result<Vec<Request>> {
        self.probe().await?;
        let (lines, _) = self.read(since)?;
        let mut seen = HashSet::new();
        let mut requests = Vec::new();
        for line in lines.lines() {
            let event: Event = serde_json::from_str(line).with_context(|| format!("reading audit event {line}"))?;
            if seen.insert(event.audit_id.clone()) {
                requests.push(event.into_request());
            }
        }
        Ok(requests)
    }

    /// Number of requests of a user since a mark, by verb and resource (`workers/status`).
    pub async fn count(&self, user: &str, verb: &str, resource: &str, since: Mark) -> Result<usize> {
        let requests = self.requests(user, since).await?;
        Ok(requests.iter().filter(|request| request.verb == verb && request.resource == resource).count())
    }

    /// Ensures that the log contains all earlier responses: makes a recognizable request and waits for it. Returns the
    /// position after it.
    async fn probe(&self) -> Result<Mark> {
        static PROBES: AtomicU64 = AtomicU64::new(0);
        let name = format!("audit-probe-{}-", PROBES.fetch_add(1, Ordering::Relaxed));
        let start =
            Mark(std::fs::metadata(&self.file).with_context(|| format!("looking at {}", self.file.display()))?.len());
        Api::<Namespace>::all(self.client.clone()).get_opt(&name).await?;
        eventually(Duration::from_secs(10), "the audit log is written", async || {
            let (lines, end) = self.read(start)?;
            ensure!(lines.contains(&name), "it does not hold the request for namespace {name}");
            Ok(end)
        })
        .await
    }

    /// The complete lines since a mark, and the position after them.
    fn read(&self, from: Mark) -> Result<(String, Mark)> {
        let mut file = std::fs::File::open(&self.file).with_context(|| format!("opening {}", self.file.display()))?;
        file.seek(SeekFrom::Start(from.0))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).context("reading the audit log")?;
        bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1));
        let end = Mark(from.0 + bytes.len() as u64);
        Ok((String::from_utf8_lossy(&bytes).into_owned(), end))
    }
}

/// The used fields of audit.k8s.io/v1 Event.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    #[serde(rename = "auditID")]
    audit_id: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    verb: String,
    user: User,
    #[serde(default)]
    object_ref: ObjectRef,
    #[serde(default)]
    response_status: ResponseStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct User {
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ObjectRef {
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponseStatus {
    code: u16,
}

impl Event {
    fn into_request(self) -> Request {
        let ObjectRef { mut resource, subresource, namespace, name } = self.object_ref;
        if !subresource.is_empty() {
            resource = format!("{resource}/{subresource}");
        }
        let (verb, code, uri) = (self.verb, self.response_status.code, self.request_uri);
        Request { user: self.user.username, verb, resource, namespace, name, code, uri }
    }
}

//! Which requests a user made, as kube-apiserver itself tells it.

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

/// kube-apiserver's audit log.
pub struct AuditLog {
    file: PathBuf,
    client: Client,
}

/// A place in the log, from which on requests are counted.
#[derive(Clone, Copy, Debug)]
pub struct Mark(u64);

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Who asked. Empty where the API server did not find out, as of a client that was gone before it had looked.
    pub user: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` …
    pub verb: String,
    /// The plural, with the sub-resource if there is one: `workers/status`. Empty for discovery and the like.
    pub resource: String,
    /// Empty for what is cluster-scoped.
    pub namespace: String,
    /// Empty for lists and watches.
    pub name: String,
    /// The HTTP status of the answer; of a watch, when it began.
    pub code: u16,
    /// Path and query.
    pub uri: String,
}

impl Request {
    /// Whether it changes anything.
    pub fn writes(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch" | "head")
    }
}

impl AuditLog {
    /// Each request once it is answered, and a watch when it begins too; no bodies.
    pub const POLICY: &'static str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
";

    pub fn new(file: PathBuf, client: Client) -> Self {
        Self { file, client }
    }

    /// Now: what was answered before is not counted.
    pub async fn mark(&self) -> Result<Mark> {
        self.probe().await
    }

    /// The requests of a user since a mark, in the order of their answers.
    pub async fn requests(&self, user: &str, since: Mark) -> Result<Vec<Request>> {
        let mut requests = self.all_requests(since).await?;
        requests.retain(|request| request.user == user);
        Ok(requests)
    }

    /// Those of all users.
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

    /// How many requests a user made since a mark, of a verb and a resource (`workers/status`).
    pub async fn count(&self, user: &str, verb: &str, resource: &str, since: Mark) -> Result<usize> {
        let requests = self.requests(user, since).await?;
        Ok(requests.iter().filter(|request| request.verb == verb && request.resource == resource).count())
    }

    /// Sees to it that what was answered until now is in the log: makes a request that can be recognised and waits for it.
    /// Returns the place behind it.
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

    /// The complete lines from a mark on, and the place behind them.
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

/// The part of audit.k8s.io/v1 Event that is of interest.
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

//! HTTP requests and responses, and the handles of tests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderName, StatusCode, header};
use axum::response::Response;
use serde_json::{Value, json};

use super::calls::Call;
use super::faults::Fault;
use super::galleries::{self, Gallery};
use super::operations::Operations;
use super::scale_sets::{Naming, ResourceGroup, ScaleSet};
use super::tokens::{TokenRequest, Tokens};
use crate::cloud_server::CloudServer;
use crate::form::{pairs, percent_decoded};

/// State of the fake.
#[derive(Debug, Default)]
struct Azure {
    tokens: Tokens,
    groups: Vec<ResourceGroup>,
    galleries: Vec<Gallery>,
    requests: usize,
}

/// The fake Azure. It stops when its last handle is dropped.
pub struct Arm {
    server: CloudServer,
    azure: Arc<Mutex<Azure>>,
}

impl Arm {
    /// Listens on a free local port.
    pub fn start() -> Result<Self> {
        let azure = Arc::new(Mutex::new(Azure::default()));
        let server = CloudServer::start("arm", router(&azure))?;
        Ok(Self { server, azure })
    }

    /// A router without a socket, and a resource group.
    pub fn in_process(subscription: &str, name: &str) -> (Router, Group) {
        let azure = Arc::default();
        let group = Group { azure: Arc::clone(&azure), subscription: subscription.to_owned(), name: name.to_owned() };
        group.with(|_| ());
        (router(&azure), group)
    }

    /// The URL of the resource manager and of the authority.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// A resource group, created on first use.
    pub fn group(&self, subscription: &str, name: &str) -> Group {
        let group =
            Group { azure: Arc::clone(&self.azure), subscription: subscription.to_owned(), name: name.to_owned() };
        group.with(|_| ());
        group
    }

    /// Adds a gallery.
    pub fn has_gallery(&self, gallery: Gallery) {
        lock(&self.azure).galleries.push(gallery);
    }

    /// All token requests, in order.
    pub fn token_requests(&self) -> Vec<TokenRequest> {
        lock(&self.azure).tokens.requests.clone()
    }

    /// Rejects the client's token requests with this `AADSTS` number and text.
    pub fn refuse_client(&self, client: &str, code: u32, text: &str) {
        lock(&self.azure).tokens.refused.insert(client.to_owned(), (code, text.to_owned()));
    }

    /// Accepts the client's token requests again.
    pub fn accept_client(&self, client: &str) {
        lock(&self.azure).tokens.refused.remove(client);
    }

    /// Fails the next token requests with these statuses.
    pub fn fail_tokens(&self, statuses: &[u16]) {
        lock(&self.azure).tokens.failures.extend_from_slice(statuses);
    }

    /// Invalidates all issued tokens.
    pub fn revoke_tokens(&self) {
        lock(&self.azure).tokens.revoke_all();
    }

    /// Number of all requests, including tokens and polls.
    pub fn request_count(&self) -> usize {
        lock(&self.azure).requests
    }
}

/// A test's handle to a resource group.
#[derive(Clone)]
pub struct Group {
    azure: Arc<Mutex<Azure>>,
    subscription: String,
    name: String,
}

impl Group {
    fn with<T>(&self, act: impl FnOnce(&mut ResourceGroup) -> T) -> T {
        let mut azure = lock(&self.azure);
        if azure.group(&self.subscription, &self.name).is_none() {
            azure.groups.push(ResourceGroup::new(&self.subscription, &self.name));
        }
        // `Azure::group` adds missing groups.
        act(azure.group(&self.subscription, &self.name).expect("the group is there"))
    }

    /// Adds a scale set without a recorded call.
    pub fn has(&self, mut scale_set: ScaleSet) {
        self.with(|group| {
            if scale_set.id.is_empty() {
                scale_set.id = group.id_of(&scale_set.name);
            }
            group.scale_sets.push(scale_set);
        });
    }

    /// Removes a scale set without a recorded call.
    pub fn lose(&self, name: &str) {
        self.with(|group| group.scale_sets.retain(|set| set.name != name));
    }

    /// The current scale sets.
    pub fn scale_sets(&self) -> Vec<ScaleSet> {
        self.with(|group| group.scale_sets.clone())
    }

    /// Names of the current scale sets.
    pub fn names(&self) -> Vec<String> {
        self.scale_sets().into_iter().map(|set| set.name).collect()
    }

    /// All recorded calls, in order.
    pub fn calls(&self) -> Vec<Call> {
        self.with(|group| group.calls.clone())
    }

    /// Clears the recorded calls.
    pub fn forget_calls(&self) {
        self.with(|group| group.calls.clear());
    }

    /// Injects a fault.
    pub fn fail(&self, fault: Fault) {
        self.with(|group| group.faults.push(fault));
    }

    /// Removes all faults.
    pub fn heal(&self) {
        self.with(|group| {
            group.faults.clear();
            group.fails_to_make = None;
        });
    }

    /// Accepts new scale sets, but fails their operations later.
    pub fn fail_to_make(&self, code: &str, message: &str) {
        self.with(|group| group.fails_to_make = Some((code.to_owned(), message.to_owned())));
    }

    /// Sets the duration of operations.
    pub fn operations(&self, pace: Operations) {
        self.with(|group| group.pace = pace);
    }

    /// Completes all running operations.
    pub fn complete_operations(&self) {
        self.with(ResourceGroup::complete_operations);
    }

    /// Sets the host of URLs in responses.
    pub fn links_to(&self, origin: &str) {
        self.with(|group| group.links_to = Some(origin.to_owned()));
    }

    /// Sets how new scale sets are named.
    pub fn naming(&self, naming: Naming) {
        self.with(|group| group.naming = naming);
    }

    /// Numbers for names, recorded from sequential creation. Concurrent creation would number them at random.
    pub fn measured_names(&self, names: Vec<String>) {
        self.with(|group| group.measured_names = names);
    }

    /// Sets the page size of lists.
    pub fn page(&self, size: usize) {
        self.with(|group| group.page = size);
    }

    /// Deletes the group with all scale sets.
    pub fn vanish(&self) {
        self.with(|group| {
            group.exists = false;
            group.scale_sets.clear();
        });
    }
}

impl Azure {
    fn group(&mut self, subscription: &str, name: &str) -> Option<&mut ResourceGroup> {
        self.groups.iter_mut().find(|group| {
            group.subscription.eq_ignore_ascii_case(subscription) && group.name.eq_ignore_ascii_case(name)
        })
    }

    fn response(&mut self, requested: &Requested) -> Reply {
        self.requests += 1;
        let segments: Vec<&str> = requested.path.trim_matches('/').split('/').collect();
        if let ("POST", [tenant, "oauth2", "v2.0", "token"]) = (requested.method.as_str(), segments.as_slice()) {
            return self.tokens.response(tenant, &requested.form);
        }
        if !self.tokens.accepts(requested.authorization.as_deref()) {
            return match requested.authorization {
                None => Reply::error(401, "AuthenticationFailed", "The 'Authorization' header is missing."),
                Some(_) => Reply::error(401, "InvalidAuthenticationToken", "The access token is invalid."),
            };
        }
        if !requested.query.contains_key("api-version") {
            let text = "The api-version query parameter (?api-version=) is required for all requests.";
            return Reply::error(400, "MissingApiVersionParameter", text);
        }
        let lower: Vec<String> = segments.iter().map(|segment| segment.to_lowercase()).collect();
        let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
        match lower.as_slice() {
            [
                "subscriptions",
                _,
                "resourcegroups",
                _,
                "providers",
                "microsoft.compute",
                "virtualmachinescalesets",
                ..,
            ] if segments.len() <= 8 => match self.group(segments[1], segments[3]) {
                Some(group) => group.response(requested, segments.get(7).copied()),
                None => Reply::error(404, "ResourceGroupNotFound", "The resource group could not be found."),
            },
            [
                "subscriptions",
                _,
                "providers",
                "microsoft.compute",
                "locations",
                _,
                "communitygalleries" | "sharedgalleries",
                ..,
            ] => galleries::response(&self.galleries, requested, &segments[5..]),
            ["subscriptions", _, "providers", "microsoft.compute", "locations", _, "operations", _] => {
                let is_location = requested.query.contains_key("monitor");
                let polled = self.groups.iter_mut().find_map(|group| group.poll(segments[7], is_location));
                polled.unwrap_or_else(|| Reply::error(404, "NotFound", "The operation was not found."))
            }
            _ => Reply::error(404, "InvalidResourceType", "The resource type could not be found."),
        }
    }
}

/// A decoded request.
#[derive(Debug)]
pub(super) struct Requested {
    pub(super) method: String,
    /// Scheme and host that the request was sent to.
    pub(super) origin: String,
    pub(super) path: String,
    pub(super) query: BTreeMap<String, String>,
    pub(super) body: Value,
    form: BTreeMap<String, String>,
    authorization: Option<String>,
}

/// A response before serialization.
#[derive(Debug)]
pub(super) struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Option<Value>,
    broken: bool,
}

impl Reply {
    pub(super) fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: None, broken: false }
    }

    pub(super) fn json(status: u16, body: Value) -> Self {
        Self { body: Some(body), ..Self::empty(status) }
    }

    pub(super) fn error(status: u16, code: &str, message: &str) -> Self {
        Self::json(status, json!({"error": {"code": code, "message": message}}))
    }

    /// A connection that breaks in the middle of the response.
    pub(super) fn broken() -> Self {
        Self { broken: true, ..Self::empty(200) }
    }

    pub(super) fn header(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    fn write(self) -> Response {
        let mut response = Response::new(match (self.broken, self.body) {
            (true, _) => Body::from_stream(futures::stream::once(async {
                Err::<&[u8], _>(std::io::Error::other("the connection breaks"))
            })),
            (false, None) => Body::empty(),
            (false, Some(body)) => Body::from(body.to_string()),
        });
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json; charset=utf-8"));
        for (name, value) in self.headers {
            if let Ok(value) = value.parse() {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        response
    }
}

fn router(azure: &Arc<Mutex<Azure>>) -> Router {
    Router::new().fallback(response).with_state(Arc::clone(azure))
}

async fn response(State(azure): State<Arc<Mutex<Azure>>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let bytes = to_bytes(body, 1 << 20).await.unwrap_or_default();
    let text = |name: header::HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let is_form = text(header::CONTENT_TYPE).is_some_and(|kind| kind.contains("x-www-form-urlencoded"));
    let requested = Requested {
        method: parts.method.to_string(),
        origin: format!("http://{}", text(header::HOST).unwrap_or_default()),
        path: percent_decoded(parts.uri.path()),
        query: pairs(parts.uri.query().unwrap_or_default()),
        form: if is_form { pairs(&String::from_utf8_lossy(&bytes)) } else { BTreeMap::new() },
        body: serde_json::from_slice(&bytes).unwrap_or_default(),
        authorization: text(header::AUTHORIZATION).map(str::to_owned),
    };
    let reply = lock(&azure).response(&requested);
    reply.write()
}

fn lock(azure: &Mutex<Azure>) -> MutexGuard<'_, Azure> {
    azure.lock().unwrap_or_else(PoisonError::into_inner)
}

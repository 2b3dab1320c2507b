//! A fake OpenStack over real HTTP or HTTPS: Keystone v3, the server groups of Nova, and the images of Glance. Each test uses its own
//! project, with its own URLs:
//!
//! ```text
//! let openstack = OpenStack::start()?;
//! let project = openstack.project("shoot--foo--bar");    // project.auth_url() is for the credentials
//! project.set(|state| state.fails.push(Fault::of("create", 429, "slow down")));
//! …
//! assert_eq!(project.calls(), ["authenticate", "list", "create"]);
//! ```
//!
//! It follows the API references of Keystone v3, Nova 2.1 and Glance v2:
//!
//! * `POST /v3/auth/tokens` returns 201 with `X-Subject-Token` and a catalog: services with endpoints by interface and
//!   region.
//! * Calls of Nova with a token other than the latest get 401; unknown ids get 404 `itemNotFound`.
//! * Lists are paged by `offset`, those of images by `marker`; POST returns 200, DELETE 204.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State as Shared};
use axum::http::request::Parts;
use axum::response::Response;
use serde_json::{Value, json};

use crate::cloud_server::CloudServer;
use crate::leaks::SECRETS;
use crate::shoot::pool;

/// The fake OpenStack. Dropping it stops it.
pub struct OpenStack {
    server: CloudServer,
    cloud: Arc<Mutex<Cloud>>,
}

#[derive(Default)]
struct Cloud {
    url: String,
    projects: BTreeMap<String, State>,
}

/// A test's handle to a project.
#[derive(Clone)]
pub struct Project {
    cloud: Arc<Mutex<Cloud>>,
    name: String,
}

/// Creates the id of a new group from its name and the number of groups created.
pub type IdOf = Box<dyn Fn(&str, u32) -> String + Send>;

/// State of a project, and its recorded calls.
pub struct State {
    /// Server groups: `id`, `name`, `policies`.
    pub groups: Vec<Value>,
    /// Images of Glance, of all projects.
    pub images: Vec<Value>,
    /// Body of the last token request.
    pub identity: Value,
    /// Injected faults.
    pub fails: Vec<Fault>,
    /// Groups per page.
    pub page: usize,
    /// Delay of each response.
    pub delay: Duration,
    /// Creates the ids of new groups.
    pub id_of: IdOf,
    /// Regions with a compute endpoint.
    pub regions: Vec<String>,
    calls: Vec<Call>,
    tokens: u32,
    made: u32,
}

/// A fault for one kind of call.
#[derive(Clone, Debug)]
pub struct Fault {
    call: String,
    status: u16,
    body: String,
    times: Option<u32>,
}

#[derive(Clone, Debug)]
pub struct Call {
    /// `authenticate`, `list`, `get`, `create`, `delete`, or `images`.
    pub kind: &'static str,
    /// The id in the path.
    id: Option<String>,
    query: String,
    microversion: Option<String>,
    body: Value,
    responded: u16,
}

impl OpenStack {
    /// Listens on a free local port.
    pub fn start() -> Result<Self> {
        Self::with(|router| CloudServer::start("openstack", router))
    }

    /// Same as [`Self::start`] with TLS and a newly created CA.
    pub fn start_tls() -> Result<Self> {
        Self::with(|router| CloudServer::start_tls("openstack", router))
    }

    /// A router without a socket, and a project of that name.
    pub fn in_process(project: &str) -> (Router, Project) {
        let cloud = Cloud { url: "http://openstack".to_owned(), ..Cloud::default() };
        let cloud = Arc::new(Mutex::new(cloud));
        lock(&cloud).projects.entry(project.to_owned()).or_default();
        (router(&cloud), Project { cloud, name: project.to_owned() })
    }

    fn with(start: impl FnOnce(Router) -> Result<CloudServer>) -> Result<Self> {
        let cloud = Arc::new(Mutex::new(Cloud::default()));
        let server = start(router(&cloud))?;
        lock(&cloud).url = server.url();
        Ok(Self { server, cloud })
    }

    /// The CA certificate, as PEM.
    pub fn certificate(&self) -> &str {
        self.server.certificate()
    }

    /// A project, created on first use.
    pub fn project(&self, name: &str) -> Project {
        lock(&self.cloud).projects.entry(name.to_owned()).or_default();
        Project { cloud: Arc::clone(&self.cloud), name: name.to_owned() }
    }
}

impl Project {
    /// The URL of Keystone.
    pub fn auth_url(&self) -> String {
        format!("{}/{}/identity", lock(&self.cloud).url, self.name)
    }

    /// Reads or changes the state.
    pub fn set<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(lock(&self.cloud).projects.entry(self.name.clone()).or_default())
    }

    /// The calls since the last invocation.
    pub fn take_calls(&self) -> Vec<Call> {
        self.set(|state| std::mem::take(&mut state.calls))
    }

    /// Same as [`Self::take_calls`], as short texts.
    pub fn calls(&self) -> Vec<String> {
        self.take_calls().iter().map(Call::to_string).collect()
    }

    /// Names of all groups.
    pub fn names(&self) -> Vec<String> {
        let name = |group: &Value| group["name"].as_str().unwrap_or_default().to_owned();
        self.set(|state| state.groups.iter().map(name).collect())
    }
}

impl Default for State {
    fn default() -> Self {
        Self {
            groups: Vec::new(),
            images: Vec::new(),
            identity: Value::Null,
            fails: Vec::new(),
            page: 1000,
            delay: Duration::ZERO,
            id_of: Box::new(|_, number| made(number)),
            regions: vec!["region-1".to_owned()],
            calls: Vec::new(),
            tokens: 0,
            made: 0,
        }
    }
}

impl Fault {
    /// Fails calls of that kind.
    pub fn of(call: &str, status: u16, body: &str) -> Self {
        Self { call: call.to_owned(), status, body: body.to_owned(), times: None }
    }

    /// Limits the number of failures.
    pub fn times(self, times: u32) -> Self {
        Self { times: Some(times), ..self }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, id, query, microversion, .. } = self;
        let words = [Some(*kind), id.as_deref(), Some(query), microversion.as_deref()];
        let words: Vec<&str> = words.into_iter().flatten().filter(|word| !word.is_empty()).collect();
        formatter.write_str(&words.join(" "))
    }
}

impl Call {
    /// In the form of `openstackCalls` in the measured cases, without the address.
    pub fn in_cases(&self) -> Value {
        let mut call = json!({"call": self.kind, "answered": self.responded});
        let members = [("id", json!(self.id)), ("microversion", json!(self.microversion)), ("body", self.body.clone())];
        for (member, value) in members.into_iter().filter(|(_, value)| !value.is_null()) {
            call[member] = value;
        }
        call
    }
}

/// Changes the OpenStack Worker in these documents to use server groups of a project, by policy for each pool.
pub fn enable_groups(documents: &mut [Value], project: &Project, policies: &[(&str, &str)]) {
    for document in documents {
        if document["metadata"]["name"] == "cloudprovider" {
            document["stringData"]["authURL"] = json!(project.auth_url());
            document["stringData"]["password"] = json!(SECRETS[1]);
        }
        if document["kind"] == "Worker" {
            policies.iter().for_each(|(name, policy)| set_policy(document, name, policy));
        }
    }
}

/// Sets the server group policy of a pool of an OpenStack Worker.
pub fn set_policy(worker: &mut Value, name: &str, policy: &str) {
    let config = &mut pool(worker, name)["providerConfig"];
    config["apiVersion"] = json!("openstack.provider.extensions.gardener.cloud/v1alpha1");
    config["kind"] = json!("WorkerConfig");
    config["serverGroup"] = json!({ "policy": policy });
}

/// The default id of a project's n-th group, counted from one.
#[must_use]
pub fn made(number: u32) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

fn router(cloud: &Arc<Mutex<Cloud>>) -> Router {
    Router::new().fallback(response).with_state(Arc::clone(cloud))
}

async fn response(Shared(cloud): Shared<Arc<Mutex<Cloud>>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = serde_json::from_slice(&to_bytes(body, 1 << 20).await.unwrap_or_default()).unwrap_or_default();
    let path = parts.uri.path().trim_start_matches('/').to_owned();
    let (project, path) = path.split_once('/').unwrap_or((&path, ""));
    let delay = lock(&cloud).projects.get(project).map(|state| state.delay);
    tokio::time::sleep(delay.unwrap_or_default()).await;
    let mut cloud = lock(&cloud);
    let origin = format!("{}/{project}", cloud.url);
    match cloud.projects.get_mut(project) {
        Some(state) => state.response(&origin, path, &parts, body),
        None => respond(404, "no such project"),
    }
}

impl State {
    fn response(&mut self, origin: &str, path: &str, parts: &Parts, body: Value) -> Response {
        let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let (kind, id) = match (parts.method.as_str(), path.split('/').collect::<Vec<_>>().as_slice()) {
            ("POST", ["identity", "v3", "auth", "tokens"]) => ("authenticate", None),
            ("GET", ["compute", "v2.1", "os-server-groups"]) => ("list", None),
            ("POST", ["compute", "v2.1", "os-server-groups"]) => ("create", None),
            ("GET", ["compute", "v2.1", "os-server-groups", id]) => ("get", Some((*id).to_owned())),
            ("DELETE", ["compute", "v2.1", "os-server-groups", id]) => ("delete", Some((*id).to_owned())),
            ("GET", ["image", "v2", "images"]) => ("images", None),
            _ => return respond(404, "no such call"),
        };
        let microversion = header("openstack-api-version").and_then(|version| version.strip_prefix("compute "));
        let mut call = Call {
            kind,
            id,
            query: parts.uri.query().unwrap_or_default().to_owned(),
            microversion: microversion.map(str::to_owned),
            body: if kind == "create" { body.clone() } else { Value::Null },
            responded: 0,
        };
        let token_is_good = kind == "authenticate" || header("x-auth-token") == Some(&format!("token-{}", self.tokens));
        let response = match self.fails.iter_mut().find(|fault| fault.call == kind && fault.times != Some(0)) {
            Some(Fault { status, body, times, .. }) => {
                *times = times.map(|times| times - 1);
                respond(*status, body)
            }
            None if !token_is_good => respond(401, r#"{"error":{"code":401,"message":"expired"}}"#),
            None if kind == "authenticate" => self.authenticate(origin, body),
            None if kind == "images" => self.images(&call.query),
            None => self.server_groups(&call),
        };
        call.responded = response.status().as_u16();
        self.calls.push(call);
        response
    }

    fn authenticate(&mut self, origin: &str, body: Value) -> Response {
        self.identity = body;
        self.tokens += 1;
        let endpoint = |interface: &str, region: &str, path: &str| json!({"interface": interface, "region": region, "url": format!("{origin}/{path}")});
        let endpoints = |path: &str| {
            let of_region = |region: &String| [endpoint("admin", region, "no"), endpoint("public", region, path)];
            let mut endpoints = vec![endpoint("public", "elsewhere", "no")];
            endpoints.extend(self.regions.iter().flat_map(of_region));
            json!(endpoints)
        };
        let catalog = json!([
            {"type": "volumev3", "endpoints": []},
            {"type": "compute", "endpoints": endpoints("compute/v2.1")},
            {"type": "image", "endpoints": endpoints("image")},
        ]);
        let mut response = respond(201, &json!({"token": {"catalog": catalog}}).to_string());
        if let Ok(token) = format!("token-{}", self.tokens).parse() {
            response.headers_mut().insert("x-subject-token", token);
        }
        response
    }

    /// A page of images after the marker, as Glance v2 sends them.
    fn images(&self, query: &str) -> Response {
        let parameter = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        let is_owned = |image: &&Value| parameter("owner").is_none_or(|owner| image["owner"] == owner);
        let owned: Vec<&Value> = self.images.iter().filter(is_owned).collect();
        let marked = parameter("marker").and_then(|marker| owned.iter().position(|image| image["id"] == marker));
        let page: Vec<&&Value> = owned.iter().skip(marked.map_or(0, |marked| marked + 1)).take(self.page).collect();
        respond(200, &json!({ "images": page }).to_string())
    }

    fn server_groups(&mut self, call: &Call) -> Response {
        let location = self.groups.iter().position(|group| group["id"].as_str() == call.id.as_deref());
        match (call.kind, location) {
            ("list", _) => {
                let offset = call.query.strip_prefix("offset=").and_then(|offset| offset.parse().ok()).unwrap_or(0);
                let page: Vec<&Value> = self.groups.iter().skip(offset).take(self.page).collect();
                respond(200, &json!({ "server_groups": page }).to_string())
            }
            ("create", _) => {
                self.made += 1;
                let mut group = call.body["server_group"].clone();
                group["id"] = json!((self.id_of)(group["name"].as_str().unwrap_or_default(), self.made));
                self.groups.push(group.clone());
                respond(200, &json!({ "server_group": group }).to_string())
            }
            ("get", Some(location)) => respond(200, &json!({"server_group": self.groups[location]}).to_string()),
            ("delete", Some(location)) => {
                self.groups.remove(location);
                respond(204, "")
            }
            _ => respond(404, r#"{"itemNotFound":{"code":404,"message":"no such group"}}"#),
        }
    }
}

fn respond(status: u16, text: &str) -> Response {
    let mut response = Response::new(Body::from(text.to_owned()));
    *response.status_mut() = axum::http::StatusCode::from_u16(status).unwrap_or_default();
    response
}

fn lock(cloud: &Mutex<Cloud>) -> MutexGuard<'_, Cloud> {
    cloud.lock().unwrap_or_else(PoisonError::into_inner)
}

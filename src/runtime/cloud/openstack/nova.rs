//! Requests to Keystone v3 and Nova for server groups.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Method, Request, Response, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use serde_with::apply;
use tracing::info;

use crate::cloud::{WriteAccess, WriteCheck};
use decisions::provider::DependencyFailure;
use decisions::provider::openstack::credentials::{Credentials, Identity};
use decisions::provider::openstack::error_codes::response_failure;
use decisions::provider::openstack::server_groups::{PoolNeed, ServerGroup, ServerGroupScope, TargetGroup};
use wire::api::gotext::json::null_as_default;

/// Time limit for a response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of a response.
const MOST_BYTES: usize = 8 * 1024 * 1024;
/// Maximum number of pages of a list.
const MOST_PAGES: usize = 100;
/// Nova supports other policies from version 2.15 on.
const PLAIN_POLICIES: [&str; 2] = ["affinity", "anti-affinity"];
const VERSION_OF_SOFT_POLICIES: ApiVersion = ApiVersion { of_nova: "2.15", of_compute: "compute 2.15" };
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TOKEN: HeaderName = HeaderName::from_static("x-auth-token");
const NEW_TOKEN: HeaderName = HeaderName::from_static("x-subject-token");
const API_VERSION: HeaderName = HeaderName::from_static("openstack-api-version");
const NOVA_API_VERSION: HeaderName = HeaderName::from_static("x-openstack-nova-api-version");

/// Sends a request and returns its response.
pub type Transport = Arc<dyn Fn(Request) -> BoxFuture<'static, anyhow::Result<Response>> + Send + Sync>;

/// Client of Nova in one region. Logs in with the first request.
pub struct Nova {
    transport: Transport,
    scope: ServerGroupScope,
    write_check: WriteCheck,
    login: Option<Login>,
}

/// A token and the address of Nova.
#[derive(Clone)]
struct Login {
    /// Marked as sensitive, so that it is not printed.
    token: HeaderValue,
    compute: Url,
}

/// A version of Nova's API, as the values of its two headers.
#[derive(Clone, Copy)]
struct ApiVersion {
    of_nova: &'static str,
    of_compute: &'static str,
}

/// A request without authentication.
struct Call<'a> {
    doing: &'a str,
    method: Method,
    id: Option<&'a str>,
    offset: usize,
    body: Option<Value>,
    version: Option<ApiVersion>,
}

/// A response with any status.
struct Reply {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Deserialize)]
struct Listed {
    server_groups: Vec<ServerGroup>,
}

#[derive(Deserialize)]
struct Observed {
    server_group: ServerGroup,
}

#[derive(Deserialize)]
struct Tokens {
    token: Token,
}

#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Deserialize)]
struct Token {
    catalog: Vec<Service>,
}

#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Deserialize)]
struct Service {
    #[serde(rename = "type")]
    service_type: String,
    endpoints: Vec<Endpoint>,
}

#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Deserialize)]
struct Endpoint {
    interface: String,
    region: String,
    url: String,
}

/// Sends requests over the network, with the trusted certificates of the credentials.
///
/// # Errors
/// If the certificates are invalid.
pub(super) fn transport(credentials: &Credentials) -> Result<Transport, DependencyFailure> {
    // A redirect would forward the token.
    let mut client = Client::builder().timeout(REQUEST_TIMEOUT).redirect(Policy::none());
    let unusable = |error: reqwest::Error| DependencyFailure::of_configuration(format!("caCert: {error}"));
    if let Some(pem) = &credentials.ca_certificates {
        client = client.tls_certs_only(Certificate::from_pem_bundle(pem.as_bytes()).map_err(unusable)?);
    }
    let client = client.tls_danger_accept_invalid_certs(credentials.insecure).build().map_err(unusable)?;
    Ok(Arc::new(move |request| {
        let reply = client.execute(request);
        // Without the address, which may contain a password.
        async { Ok(reply.await.map_err(reqwest::Error::without_url)?) }.boxed()
    }))
}

impl Nova {
    /// Creates a client. Sends no request yet.
    pub(super) fn new(transport: Transport, scope: ServerGroupScope, write_check: WriteCheck) -> Self {
        Self { transport, scope, write_check, login: None }
    }

    /// Lists all server groups of the project.
    pub(super) async fn list(&mut self) -> Result<Vec<ServerGroup>, DependencyFailure> {
        let mut groups: Vec<ServerGroup> = Vec::new();
        for _ in 0..MOST_PAGES {
            let call = Call { offset: groups.len(), ..Call::of("listing server groups", Method::GET) };
            let page = self.query(&call).await?.read::<Listed>(call.doing)?.server_groups;
            let is_cached = |group: &ServerGroup| groups.iter().any(|cached| cached.id == group.id);
            if page.first().is_none_or(is_cached) {
                return Ok(groups);
            }
            groups.extend(page);
        }
        Err(DependencyFailure::without_code(format!("listing server groups: more than {MOST_PAGES} pages")))
    }

    /// Reads a server group; `None` if it does not exist.
    pub(super) async fn get(&mut self, id: &str) -> Result<Option<ServerGroup>, DependencyFailure> {
        let call = Call { id: Some(id), ..Call::of("reading its server group", Method::GET) };
        let reply = self.query(&call).await?;
        if reply.is_not_found() {
            return Ok(None);
        }
        Ok(Some(reply.read::<Observed>(call.doing)?.server_group))
    }

    /// Creates the group of a pool.
    pub(super) async fn create(&mut self, need: &PoolNeed) -> Result<ServerGroup, DependencyFailure> {
        let (TargetGroup { name, policy, .. }, pool) = (&need.target, &need.pool);
        info!(pool, server_group = name, "creating a server group");
        if !self.may_write()? {
            return Ok(ServerGroup { id: name.clone(), name: name.clone(), policies: vec![policy.clone()] });
        }
        let is_plain = PLAIN_POLICIES.contains(&policy.as_str());
        let call = Call {
            body: Some(json!({"server_group": {"name": name, "policies": [policy]}})),
            version: (!is_plain).then_some(VERSION_OF_SOFT_POLICIES),
            ..Call::of("creating its server group", Method::POST)
        };
        let group = self.query(&call).await?.read::<Observed>(call.doing)?.server_group;
        if group.id.is_empty() {
            return Err(DependencyFailure::without_code(format!("{}: the answer has no id", call.doing)));
        }
        Ok(group)
    }

    /// Deletes a group. Succeeds if it does not exist.
    pub(super) async fn delete(&mut self, id: &str) -> Result<(), DependencyFailure> {
        info!(server_group = id, "deleting a server group");
        if !self.may_write()? {
            return Ok(());
        }
        let call = Call { id: Some(id), ..Call::of("deleting a server group", Method::DELETE) };
        let reply = self.query(&call).await?;
        if reply.is_not_found() { Ok(()) } else { reply.succeeded(call.doing)?.without_content(call.doing) }
    }

    /// Whether changes are made; false if they are only simulated.
    fn may_write(&self) -> Result<bool, DependencyFailure> {
        match (self.write_check)() {
            WriteAccess::Allowed => Ok(true),
            WriteAccess::DryRun => Ok(false),
            WriteAccess::Denied => Err(DependencyFailure::without_code("not changed: this process doesn't lead")),
        }
    }

    /// Sends a call. Logs in again once if the token is refused.
    async fn query(&mut self, call: &Call<'_>) -> Result<Reply, DependencyFailure> {
        let login = self.log_in().await?;
        let reply = self.send_call(call, &login).await?;
        if reply.status != 401 {
            return Ok(reply);
        }
        self.login = None;
        let login = self.log_in().await?;
        self.send_call(call, &login).await
    }

    async fn send_call(&self, call: &Call<'_>, login: &Login) -> Result<Reply, DependencyFailure> {
        let mut url = login.compute.clone();
        let invalid = |()| DependencyFailure::of_configuration("the compute endpoint of the region can't have a path");
        url.path_segments_mut().map_err(invalid)?.pop_if_empty().push("os-server-groups").extend(call.id);
        if call.offset > 0 {
            url.query_pairs_mut().append_pair("offset", &call.offset.to_string());
        }
        let mut request = Request::new(call.method.clone(), url);
        request.headers_mut().insert(TOKEN, login.token.clone());
        if let Some(ApiVersion { of_nova, of_compute }) = call.version {
            request.headers_mut().insert(NOVA_API_VERSION, HeaderValue::from_static(of_nova));
            request.headers_mut().insert(API_VERSION, HeaderValue::from_static(of_compute));
        }
        self.send(call.doing, request, call.body.as_ref()).await
    }

    async fn send(&self, doing: &str, mut request: Request, body: Option<&Value>) -> Result<Reply, DependencyFailure> {
        let no_response = |error: anyhow::Error| DependencyFailure::without_code(format!("{doing}: {error:#}"));
        request.headers_mut().insert(ACCEPT, JSON);
        if let Some(body) = body {
            request.headers_mut().insert(CONTENT_TYPE, JSON);
            *request.body_mut() = Some(body.to_string().into());
        }
        let mut response = (self.transport)(request).await.map_err(no_response)?;
        let mut content = Vec::new();
        // Without the address, which may contain a password.
        while let Some(chunk) = response.chunk().await.map_err(|error| no_response(error.without_url().into()))? {
            if content.len() + chunk.len() > MOST_BYTES {
                return Err(DependencyFailure::without_code(format!("{doing}: the answer is too large")));
            }
            content.extend_from_slice(&chunk);
        }
        Ok(Reply { status: response.status().as_u16(), headers: response.headers().clone(), body: content })
    }

    async fn log_in(&mut self) -> Result<Login, DependencyFailure> {
        if let Some(login) = &self.login {
            return Ok(login.clone());
        }
        let doing = "asking Keystone for a token";
        let request = Request::new(Method::POST, tokens_url(&self.scope.identity_url)?);
        let identity = identity(&self.scope.credentials.identity);
        let reply = self.send(doing, request, Some(&identity)).await?.succeeded(doing)?;
        let no_token = || DependencyFailure::without_code(format!("{doing}: the answer has no token"));
        let mut token = reply.headers.get(NEW_TOKEN).cloned().ok_or_else(no_token)?;
        token.set_sensitive(true);
        let catalog = reply.read::<Tokens>(doing)?.token.catalog;
        let region = &self.scope.region;
        let endpoints = catalog.into_iter().filter(|service| service.service_type == "compute");
        let mut endpoints = endpoints.flat_map(|service| service.endpoints);
        let endpoint = endpoints.find(|cached| cached.interface == "public" && cached.region == *region);
        let compute = endpoint.and_then(|endpoint| web_address(&endpoint.url)).ok_or_else(|| {
            let message = format!("the catalog of OpenStack has no compute endpoint for region {region:?}");
            DependencyFailure::of_configuration(message)
        })?;
        Ok(self.login.insert(Login { token, compute }).clone())
    }
}

impl<'a> Call<'a> {
    fn of(doing: &'a str, method: Method) -> Self {
        Self { doing, method, id: None, offset: 0, body: None, version: None }
    }
}

impl Reply {
    /// Whether OpenStack itself reports this, with a JSON object. The page of a proxy proves nothing about the
    /// resource.
    fn is_not_found(&self) -> bool {
        self.status == 404 && serde_json::from_slice::<Map<String, Value>>(&self.body).is_ok()
    }

    fn succeeded(self, doing: &str) -> Result<Self, DependencyFailure> {
        match self.status {
            200..300 => Ok(self),
            status => Err(response_failure(doing, status, &String::from_utf8_lossy(&self.body))),
        }
    }

    /// OpenStack sends no content after a deletion; a proxy might.
    fn without_content(self, doing: &str) -> Result<(), DependencyFailure> {
        match self.body.trim_ascii() {
            [] => Ok(()),
            _ => Err(DependencyFailure::without_code(format!("{doing}: the answer is not OpenStack's"))),
        }
    }

    fn read<T: DeserializeOwned>(self, doing: &str) -> Result<T, DependencyFailure> {
        // The content may be anything, so the error does not quote it.
        let unreadable = |error| DependencyFailure::without_code(format!("{doing}: unreadable answer: {error}"));
        serde_json::from_slice(&self.succeeded(doing)?.body).map_err(unreadable)
    }
}

/// Body of a token request. An application credential implies its project.
fn identity(identity: &Identity) -> Value {
    let by_domain = |name: &str, domain: &str| json!({"name": name, "domain": {"name": domain}});
    match identity {
        Identity::Password { user, password, domain, project } => {
            let mut of_user = by_domain(user, domain);
            of_user["password"] = password.expose().into();
            json!({"auth": {
                "identity": {"methods": ["password"], "password": {"user": of_user}},
                "scope": {"project": by_domain(project, domain)},
            }})
        }
        Identity::ApplicationCredential { id, secret } => application(json!({"id": id, "secret": secret.expose()})),
        Identity::NamedApplicationCredential { name, secret, user, domain } => {
            application(json!({"name": name, "secret": secret.expose(), "user": by_domain(user, domain)}))
        }
    }
}

fn application(credential: Value) -> Value {
    json!({"auth": {"identity": {"methods": ["application_credential"], "application_credential": credential}}})
}

/// Address for token requests: below version 3 of the URL, whether or not the URL includes the version.
fn tokens_url(identity_url: &str) -> Result<Url, DependencyFailure> {
    let invalid = || DependencyFailure::of_configuration("the Keystone URL is no http or https address");
    let mut url = web_address(identity_url.trim()).ok_or_else(invalid)?;
    let has_version = url.path().trim_end_matches('/').ends_with("/v3");
    let mut path = url.path_segments_mut().map_err(|()| invalid())?;
    path.pop_if_empty().extend((!has_version).then_some("v3")).extend(["auth", "tokens"]);
    drop(path);
    Ok(url)
}

fn web_address(text: &str) -> Option<Url> {
    Url::parse(text).ok().filter(|url| ["http", "https"].contains(&url.scheme()))
}

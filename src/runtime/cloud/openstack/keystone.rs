//! Requests to Keystone v3 for tokens, and to a service of its catalog.

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

use decisions::provider::DependencyFailure;
use decisions::provider::openstack::credentials::{Credentials, Identity};
use decisions::provider::openstack::error_codes::response_failure;
use wire::api::gotext::json::null_as_default;

/// Time limit for a response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of a response.
const MOST_BYTES: usize = 8 * 1024 * 1024;
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TOKEN: HeaderName = HeaderName::from_static("x-auth-token");
const NEW_TOKEN: HeaderName = HeaderName::from_static("x-subject-token");

/// Sends a request and returns its response.
pub type Transport = Arc<dyn Fn(Request) -> BoxFuture<'static, anyhow::Result<Response>> + Send + Sync>;

/// A service of the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServiceType {
    Compute,
    Image,
}

impl ServiceType {
    /// Its type in the catalog.
    fn as_str(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Image => "image",
        }
    }
}

/// Client of a service in one region. Logs in with the first request.
pub(super) struct ServiceClient {
    transport: Transport,
    service: ServiceType,
    identity: Identity,
    identity_url: String,
    region: String,
    login: Option<Login>,
}

/// A token and the address of the service.
#[derive(Clone)]
struct Login {
    /// Marked as sensitive, so that it is not printed.
    token: HeaderValue,
    address: Url,
}

/// A response with any status.
pub(super) struct Reply {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

#[derive(Deserialize)]
struct Tokens {
    token: Token,
}

#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Deserialize)]
struct Token {
    catalog: Vec<CatalogService>,
}

#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Deserialize)]
struct CatalogService {
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

impl ServiceClient {
    /// Creates a client. Sends no request yet.
    pub(super) fn new(
        transport: Transport,
        service: ServiceType,
        identity: Identity,
        identity_url: String,
        region: String,
    ) -> Self {
        Self { transport, service, identity, identity_url, region, login: None }
    }

    /// Sends the request that `request` creates for the address of the service. Logs in again once if the token is
    /// refused.
    pub(super) async fn query(
        &mut self,
        doing: &str,
        request: impl Fn(&Url) -> Result<Request, DependencyFailure>,
        body: Option<&Value>,
    ) -> Result<Reply, DependencyFailure> {
        let reply = self.send_with_token(doing, &request, body).await?;
        if reply.status != 401 {
            return Ok(reply);
        }
        self.login = None;
        self.send_with_token(doing, &request, body).await
    }

    async fn send_with_token(
        &mut self,
        doing: &str,
        request: impl Fn(&Url) -> Result<Request, DependencyFailure>,
        body: Option<&Value>,
    ) -> Result<Reply, DependencyFailure> {
        let Login { token, address } = self.log_in().await?;
        let mut request = request(&address)?;
        request.headers_mut().insert(TOKEN, token);
        self.send(doing, request, body).await
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
        let request = Request::new(Method::POST, tokens_url(&self.identity_url)?);
        let identity = identity(&self.identity);
        let reply = self.send(doing, request, Some(&identity)).await?.succeeded(doing)?;
        let no_token = || DependencyFailure::without_code(format!("{doing}: the answer has no token"));
        let mut token = reply.headers.get(NEW_TOKEN).cloned().ok_or_else(no_token)?;
        token.set_sensitive(true);
        let catalog = reply.read::<Tokens>(doing)?.token.catalog;
        let name = self.service.as_str();
        let region = &self.region;
        let endpoints = catalog.into_iter().filter(|service| service.service_type == name);
        let mut endpoints = endpoints.flat_map(|service| service.endpoints);
        let endpoint = endpoints.find(|cached| cached.interface == "public" && cached.region == *region);
        let address = endpoint.and_then(|endpoint| web_address(&endpoint.url)).ok_or_else(|| {
            let message = format!("the catalog of OpenStack has no {name} endpoint for region {region:?}");
            DependencyFailure::of_configuration(message)
        })?;
        Ok(self.login.insert(Login { token, address }).clone())
    }
}

impl Reply {
    /// Whether OpenStack itself reports this, with a JSON object. The page of a proxy proves nothing about the
    /// resource.
    pub(super) fn is_not_found(&self) -> bool {
        self.status == 404 && serde_json::from_slice::<Map<String, Value>>(&self.body).is_ok()
    }

    pub(super) fn succeeded(self, doing: &str) -> Result<Self, DependencyFailure> {
        match self.status {
            200..300 => Ok(self),
            status => Err(response_failure(doing, status, &String::from_utf8_lossy(&self.body))),
        }
    }

    /// OpenStack sends no content after a deletion; a proxy might.
    pub(super) fn without_content(self, doing: &str) -> Result<(), DependencyFailure> {
        match self.body.trim_ascii() {
            [] => Ok(()),
            _ => Err(DependencyFailure::without_code(format!("{doing}: the answer is not OpenStack's"))),
        }
    }

    pub(super) fn read<T: DeserializeOwned>(self, doing: &str) -> Result<T, DependencyFailure> {
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

//! Requests to Nova for server groups.

use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Method, Request, Url};
use serde::Deserialize;
use serde_json::{Value, json};
use serde_with::apply;
use tracing::info;

use super::keystone::{Reply, ServiceClient, ServiceType, Transport};
use crate::cloud::{WriteAccess, WriteCheck};
use decisions::provider::DependencyFailure;
use decisions::provider::openstack::server_groups::{PoolNeed, ServerGroup, ServerGroupScope, TargetGroup};
use wire::api::gotext::json::null_as_default;

/// Maximum number of pages of a list.
const MOST_PAGES: usize = 100;
/// Nova supports other policies from version 2.15 on.
const PLAIN_POLICIES: [&str; 2] = ["affinity", "anti-affinity"];
const VERSION_OF_SOFT_POLICIES: ApiVersion = ApiVersion { of_nova: "2.15", of_compute: "compute 2.15" };
const API_VERSION: HeaderName = HeaderName::from_static("openstack-api-version");
const NOVA_API_VERSION: HeaderName = HeaderName::from_static("x-openstack-nova-api-version");

/// Client of Nova in one region. Logs in with the first request.
pub struct Nova {
    client: ServiceClient,
    write_check: WriteCheck,
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

#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Deserialize)]
struct Listed {
    server_groups: Vec<ServerGroup>,
}

#[derive(Deserialize)]
struct Observed {
    server_group: ServerGroup,
}

impl Nova {
    /// Creates a client. Sends no request yet.
    pub(super) fn new(transport: Transport, scope: ServerGroupScope, write_check: WriteCheck) -> Self {
        let ServerGroupScope { credentials, identity_url, region, .. } = scope;
        let client = ServiceClient::new(transport, ServiceType::Compute, credentials.identity, identity_url, region);
        Self { client, write_check }
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

    async fn query(&mut self, call: &Call<'_>) -> Result<Reply, DependencyFailure> {
        self.client.query(call.doing, |compute| call.request(compute), call.body.as_ref()).await
    }
}

impl<'a> Call<'a> {
    fn of(doing: &'a str, method: Method) -> Self {
        Self { doing, method, id: None, offset: 0, body: None, version: None }
    }

    /// The request to the address of Nova, without a token.
    fn request(&self, compute: &Url) -> Result<Request, DependencyFailure> {
        let mut url = compute.clone();
        let invalid = |()| DependencyFailure::of_configuration("the compute endpoint of the region can't have a path");
        url.path_segments_mut().map_err(invalid)?.pop_if_empty().push("os-server-groups").extend(self.id);
        if self.offset > 0 {
            url.query_pairs_mut().append_pair("offset", &self.offset.to_string());
        }
        let mut request = Request::new(self.method.clone(), url);
        if let Some(ApiVersion { of_nova, of_compute }) = self.version {
            request.headers_mut().insert(NOVA_API_VERSION, HeaderValue::from_static(of_nova));
            request.headers_mut().insert(API_VERSION, HeaderValue::from_static(of_compute));
        }
        Ok(request)
    }
}

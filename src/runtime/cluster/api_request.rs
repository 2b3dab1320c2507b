//! Attributes of a request to the API server in terms of RBAC: verb, API group, resource and subresource.

use axum::http::{Method, Uri};

/// RBAC attributes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiRequest<'a> {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub(crate) verb: &'static str,
    /// API group; empty for the core group.
    pub(crate) group: &'a str,
    /// Plural resource, without its subresource.
    pub(crate) resource: &'a str,
    /// Empty without a subresource.
    pub(crate) subresource: &'a str,
}

impl<'a> ApiRequest<'a> {
    /// Parses a request; `None` for non-resource URLs such as discovery.
    pub(crate) fn of(method: &Method, uri: &'a Uri) -> Option<Self> {
        let mut segments = uri.path().trim_matches('/').split('/');
        let group = match segments.next()? {
            "api" => "",
            "apis" => segments.next()?,
            _ => return None,
        };
        segments.next()?;
        let mut resource = segments.next().filter(|resource| !resource.is_empty())?;
        let mut name = segments.next();
        // `namespaces/NAME/RESOURCE` is a resource in a namespace; `namespaces/NAME` and `namespaces/NAME/status` are
        // the namespace itself.
        let mut subresource = segments.next();
        if let ("namespaces", Some(namespaced)) = (resource, subresource.filter(|name| !is_of_namespaces(name))) {
            resource = namespaced;
            name = segments.next();
            subresource = segments.next();
        }
        let is_watch = uri
            .query()
            .is_some_and(|query| query.split('&').any(|parameter| parameter == "watch=true" || parameter == "watch=1"));
        let verb = match (method.as_str(), name) {
            ("GET", _) if is_watch => "watch",
            ("GET", Some(_)) => "get",
            ("GET", None) => "list",
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            ("DELETE", Some(_)) => "delete",
            ("DELETE", None) => "deletecollection",
            _ => return None,
        };
        Some(Self { verb, group, resource, subresource: subresource.unwrap_or_default() })
    }

    pub(crate) fn is_write(&self) -> bool {
        !matches!(self.verb, "get" | "list" | "watch")
    }
}

/// Whether this is a subresource of namespaces.
fn is_of_namespaces(subresource: &str) -> bool {
    matches!(subresource, "status" | "finalize")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_rbac_attributes() {
        for (method, uri, expected) in [
            ("GET", "/api/v1/namespaces/a/secrets/b", Some(("get", "", "secrets", ""))),
            ("GET", "/api/v1/namespaces/a/secrets?labelSelector=x", Some(("list", "", "secrets", ""))),
            ("GET", "/api/v1/namespaces/a", Some(("get", "", "namespaces", ""))),
            ("PUT", "/api/v1/namespaces/a/status", Some(("update", "", "namespaces", "status"))),
            (
                "GET",
                "/apis/extensions.gardener.cloud/v1alpha1/workers?&watch=true&resourceVersion=1",
                Some(("watch", "extensions.gardener.cloud", "workers", "")),
            ),
            (
                "PATCH",
                "/apis/extensions.gardener.cloud/v1alpha1/namespaces/a/workers/b/status?",
                Some(("patch", "extensions.gardener.cloud", "workers", "status")),
            ),
            (
                "DELETE",
                "/apis/machine.sapcloud.io/v1alpha1/namespaces/a/machineclasses",
                Some(("deletecollection", "machine.sapcloud.io", "machineclasses", "")),
            ),
            (
                "PATCH",
                "/apis/apps/v1/namespaces/a/deployments/b/scale",
                Some(("patch", "apps", "deployments", "scale")),
            ),
            ("GET", "/api", None),
            ("GET", "/apis/apps/v1", None),
            ("GET", "/version", None),
            ("OPTIONS", "/api/v1/pods", None),
        ] {
            let (method, uri): (Method, Uri) = (method.parse().unwrap(), uri.parse().unwrap());
            let expected =
                expected.map(|(verb, group, resource, subresource)| ApiRequest { verb, group, resource, subresource });
            assert_eq!(ApiRequest::of(&method, &uri), expected, "{method} {uri}");
        }
    }
}

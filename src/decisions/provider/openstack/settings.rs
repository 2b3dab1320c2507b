//! Validates the settings of an OpenStack CloudProfile other than images.

use core::net::IpAddr;

use super::documents::CloudProfileConfig;
use wire::api::gotext::field::{FieldErrors, FieldPath};

/// Validates the settings. Load balancer classes and duplicates are validated only by the Go extension.
pub(super) fn validate(config: &CloudProfileConfig, path: FieldPath<'_>, errors: &mut FieldErrors) {
    let constraints = path.child("constraints");
    let pools = config.constraints.floating_pools.iter().map(|pool| pool.name.as_str());
    validate_names(pools, "floating pool", constraints.child("floatingPools"), errors);
    let providers = config.constraints.load_balancer_providers.iter().map(|provider| provider.name.as_str());
    validate_names(providers, "load balancer provider", constraints.child("loadBalancerProviders"), errors);
    if config.keystone_url.is_empty() && config.keystone_urls.is_empty() {
        errors.required(path.child("keystoneURL"), "must provide the URL of Keystone, for all regions or for each");
    }
    let urls = path.child("keystoneURLs");
    for (index, keystone) in config.keystone_urls.iter().enumerate() {
        let path = urls.index(index);
        if keystone.region.is_empty() {
            errors.required(path.child("region"), "must provide a region");
        }
        if keystone.url.is_empty() {
            errors.required(path.child("url"), "must provide a URL");
        }
    }
    let servers = path.child("dnsServers");
    for (index, server) in config.dns_servers.iter().enumerate() {
        if server.parse::<IpAddr>().is_err() {
            errors.invalid(servers.index(index), server, "must provide a valid IP");
        }
    }
}

fn validate_names<'a>(
    names: impl ExactSizeIterator<Item = &'a str>,
    what: &str,
    path: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if names.len() == 0 {
        errors.required(path, format!("must provide at least one {what}"));
    }
    for (index, name) in names.enumerate() {
        if name.is_empty() {
            errors.required(path.index(index).child("name"), "must provide a name");
        }
    }
}

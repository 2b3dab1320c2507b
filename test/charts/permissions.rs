//! Compares the permissions of roles with the requests of a program.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use serde_json::Value;

use test_support::cluster::Request;

/// A resource (group, subresource, and the name to which the rule is limited) and a verb.
pub(crate) type Permission = (String, String);

/// Fails if a request was denied, a permission is unused, or a used permission is missing. `rarely` lists permissions
/// that a run can't be forced to use: resource, verb, and the case that needs it.
pub(crate) fn ensure_exact(
    allowed: &BTreeSet<Permission>,
    requests: &[Request],
    rarely: &[(&str, &str, &str)],
) -> Result<()> {
    ensure_not_refused(requests)?;
    let mut used = used(requests, allowed);
    used.extend(rarely.iter().map(|(resource, verb, _)| ((*resource).to_owned(), (*verb).to_owned())));
    let unused: BTreeSet<_> = allowed.difference(&used).collect();
    ensure!(unused.is_empty(), "allowed, but nothing needs it: {unused:?}");
    let missing: BTreeSet<_> = used.difference(allowed).collect();
    ensure!(missing.is_empty(), "needed, but not allowed: {missing:?}");
    Ok(())
}

/// Fails if a request was denied.
pub(crate) fn ensure_not_refused(requests: &[Request]) -> Result<()> {
    let refused = requests.iter().filter(|request| [401, 403].contains(&request.code));
    let refused: BTreeSet<_> = refused.map(|request| (&request.verb, &request.resource)).collect();
    ensure!(refused.is_empty(), "refused: {refused:?}");
    Ok(())
}

/// The permissions of roles: every combination in their rules.
pub(crate) fn allowed(objects: &[Value]) -> Result<BTreeSet<Permission>> {
    let mut allowed = BTreeSet::new();
    let roles = objects.iter().filter(|object| ["Role", "ClusterRole"].iter().any(|kind| object["kind"] == *kind));
    for rule in roles.flat_map(|role| role["rules"].as_array().into_iter().flatten()) {
        let [groups, resources, verbs, mut names] =
            ["apiGroups", "resources", "verbs", "resourceNames"].map(|member| texts(&rule[member]));
        if names.is_empty() {
            names.push("");
        }
        for (group, resource) in pairs(&groups, &resources) {
            for (name, verb) in pairs(&names, &verbs) {
                ensure!(![group, resource, verb].contains(&"*"), "a rule without bounds: {rule}");
                let pair = (permission(group, resource, name), verb.to_owned());
                ensure!(allowed.insert(pair.clone()), "{pair:?} is allowed twice");
            }
        }
    }
    Ok(allowed)
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn pairs<'a>(these: &[&'a str], those: &[&'a str]) -> Vec<(&'a str, &'a str)> {
    these.iter().flat_map(|this| those.iter().map(move |that| (*this, *that))).collect()
}

fn permission(group: &str, resource: &str, name: &str) -> String {
    let separator = if group.is_empty() { "" } else { "/" };
    let name = if name.is_empty() { String::new() } else { format!(" {name}") };
    format!("{group}{separator}{resource}{name}")
}

/// The permissions that requests used. Includes the name if a rule is limited to it.
fn used(requests: &[Request], allowed: &BTreeSet<Permission>) -> BTreeSet<Permission> {
    let mut used = BTreeSet::new();
    for request in requests.iter().filter(|request| !request.resource.is_empty()) {
        let mut path = request.uri.split(['/', '?']).skip(1);
        let group = match path.next() {
            Some("apis") => path.next().unwrap_or_default(),
            _ => "",
        };
        let named = (permission(group, &request.resource, &request.name), request.verb.clone());
        let any = (permission(group, &request.resource, ""), request.verb.clone());
        let needed = if allowed.contains(&named) { named } else { any };
        used.insert(needed);
    }
    used
}

//! Warns users about the effect of a Shoot edit on nodes, without denying it.
//!
//! The Shoot under review contains all inputs of its class names, so the check reads neither garden nor seed. Nodes are
//! replaced if the class name of their pool changes.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::Value;

use super::subject::Subject;
use super::zone_by_zone::setting_warnings;
use decisions::pool::hash::{HashItems, in_place_items, node_agent_items, pool_hash};
use decisions::provider::{Provider, Providers};
use profiles::shoot::{Surroundings, member_of_input, worker};
use runtime::webhook::Verdict;
use wire::api::bounded_text::{escaped, shortened};
use wire::api::gardener::{ProfileSpec, Shoot, UpdateStrategy, WorkerPool, WorkerSpec};
use wire::api::gotext::json::{decode_lenient, to_go_json};

/// Maximum number of warnings; further pools are only counted.
const MOST: usize = 10;
/// Maximum bytes of a name, and of all causes.
const NAME: usize = 63;
const CAUSES: usize = 200;

/// Adds warnings about nodes, and about a setting without effect, if the verdict allows the Shoot.
pub(crate) fn warn_of_nodes(mut verdict: Verdict, subject: Subject<'_>, providers: Providers) -> Verdict {
    let Verdict::Allowed { warnings, .. } = &mut verdict else { return verdict };
    warnings.extend(setting_warnings(subject));
    if let Some(old) = subject.old {
        warnings.extend(node_warnings(old, subject.object, providers));
    }
    verdict
}

/// The effect on the nodes of each pool; empty if it cannot be determined.
fn node_warnings(old: &str, new: &str, providers: Providers) -> Vec<String> {
    let sides = [old, new].map(|text| Side::read(text, providers));
    let [Some(old), Some(new)] = sides else { return Vec::new() };
    if old.shoot.should_hibernate() {
        return Vec::new();
    }
    let mut warnings: Vec<String> = old.pools.iter().flat_map(|before| of_pool(before, &new.pools)).collect();
    if let Some(more) = warnings.len().checked_sub(MOST).filter(|more| *more > 0) {
        warnings.truncate(MOST - 1);
        warnings.push(format!("{} further pools: their nodes are replaced, updated or deleted too", more + 1));
    }
    warnings
}

/// The Shoot before or after the edit.
struct Side {
    shoot: Shoot,
    pools: Vec<Pool>,
}

/// A pool with the inputs of its class name.
struct Pool {
    worker: WorkerPool,
    class_hash: String,
    items: HashItems,
}

impl Side {
    fn read(text: &str, providers: Providers) -> Option<Self> {
        let document: Value = serde_json::from_str(text).ok()?;
        // Class names do not depend on the values that a CloudProfile adds to a Worker.
        let written = worker(&document, &ProfileSpec::default(), &Surroundings::default()).ok()?;
        let spec: WorkerSpec = decode_lenient(&to_go_json(&written["spec"])).ok()?;
        let shoot: Shoot = decode_lenient(text).ok()?;
        let provider = providers.for_worker_type(&spec.worker_type).ok()?;
        let pools = spec.pools.into_iter().map(|pool| Pool::read(pool, &shoot, provider)).collect::<Option<_>>()?;
        Some(Self { shoot, pools })
    }
}

impl Pool {
    fn read(worker: WorkerPool, shoot: &Shoot, provider: &dyn Provider) -> Option<Self> {
        let of_provider = provider.pool_items(&worker).ok()?;
        let class_hash = pool_hash(&worker, shoot, &of_provider).ok()?.hash.0;
        let (mut items, added) = match worker.update_strategy.is_some_and(UpdateStrategy::is_in_place) {
            true => (in_place_items(&worker, shoot), of_provider.in_place),
            false => (node_agent_items(&worker, shoot), of_provider.with_node_agent_secret),
        };
        items.as_mut().ok()?.extend(&added);
        Some(Self { worker, class_hash, items: items.ok()? })
    }

    fn title(&self) -> String {
        format!("pool {}", shortened(&escaped(&self.worker.name), NAME))
    }

    /// The possible number of nodes according to the pool's bounds.
    fn nodes(&self) -> String {
        let WorkerPool { minimum, maximum, .. } = self.worker;
        if minimum == maximum { format!("{minimum} nodes") } else { format!("{minimum} to {maximum} nodes") }
    }

    /// The Shoot fields that change the class hash.
    fn causes(&self, before: &Self) -> String {
        let has = |items: &HashItems, input: &str, value: &str| {
            items.iter().any(|item| item.input == input && item.value == value)
        };
        let deleted = before.items.iter().filter(|item| !has(&self.items, &item.input, &item.value));
        let come = self.items.iter().filter(|item| !has(&before.items, &item.input, &item.value));
        let mut members: Vec<&str> = Vec::new();
        for item in deleted.chain(come) {
            let member = member_of_input(&item.input);
            if !members.contains(&member) {
                members.push(member);
            }
        }
        if members.is_empty() { "updateStrategy".to_owned() } else { members.join(", ") }
    }
}

fn number(bound: &IntOrString) -> String {
    match bound {
        IntOrString::Int(number) => number.to_string(),
        IntOrString::String(share) => shortened(&escaped(share), NAME),
    }
}

fn of_pool(before: &Pool, pools: &[Pool]) -> Vec<String> {
    let [title, nodes] = [before.title(), before.nodes()];
    if before.worker.maximum == 0 {
        return Vec::new();
    }
    let Some(after) = pools.iter().find(|pool| pool.worker.name == before.worker.name) else {
        return vec![format!("{title}: its {nodes} are deleted")];
    };
    if after.class_hash != before.class_hash {
        let causes = shortened(&escaped(&after.causes(before)), CAUSES);
        let WorkerPool { max_surge, max_unavailable, update_strategy, .. } = &after.worker;
        let at_a_time = |number: String| format!("{number} at a time");
        let is_none = |number: &str| ["0", "0%"].contains(&number);
        let [surge, missing] = [max_surge, max_unavailable].map(number);
        let (what, pace) = match update_strategy {
            Some(UpdateStrategy::ManualInPlaceUpdate) => ("are updated in place", "those that you select".to_owned()),
            Some(UpdateStrategy::AutoInPlaceUpdate) => ("are updated in place", at_a_time(missing)),
            _ if is_none(&surge) => ("roll", at_a_time(missing)),
            _ if is_none(&missing) => ("roll", at_a_time(surge)),
            _ => ("roll", format!("{surge} more and {missing} fewer at a time")),
        };
        return vec![format!("{title}: its {nodes} {what}, because {causes} changed; {pace}")];
    }
    let deleted = before.worker.zones.iter().filter(|zone| !after.worker.zones.contains(zone));
    deleted.map(|zone| format!("{title}: its nodes in zone {} are deleted", shortened(&escaped(zone), NAME))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shoot() -> Value {
        let pool = |name: &str, zones: Value| {
            json!({
                "name": name, "minimum": 2, "maximum": 9, "maxSurge": 3, "maxUnavailable": 0, "zones": zones,
                "updateStrategy": "AutoRollingUpdate", "cri": {"name": "containerd"},
                "machine": {"type": "m5.large", "image": {"name": "gardenlinux", "version": "1.2.3"}},
                "volume": {"type": "gp3", "size": "50Gi"},
                "dataVolumes": [{"name": "d", "type": "gp3", "size": "50Gi"}],
            })
        };
        json!({
            "kind": "Shoot", "metadata": {"name": "s", "namespace": "garden-p"},
            "spec": {
                "region": "eu", "kubernetes": {"version": "1.34.3"},
                "provider": {"type": "aws", "workers": [pool("web", json!(["a", "b"])), pool("\u{1b}[2Jevil", json!(["a"]))]},
            },
        })
    }

    fn warnings(edits: &[(&str, Value)]) -> Vec<String> {
        let mut new = shoot();
        for (pointer, value) in edits {
            let (parent, member) = pointer.rsplit_once('/').unwrap();
            match member.parse::<usize>() {
                Ok(index) if value.is_null() => {
                    drop(new.pointer_mut(parent).unwrap().as_array_mut().unwrap().remove(index))
                }
                _ => new.pointer_mut(parent).unwrap()[member] = value.clone(),
            }
        }
        node_warnings(&shoot().to_string(), &new.to_string(), Providers::SHIPPED)
    }

    #[test]
    fn warns_of_rolling_pools_with_the_cause() {
        let web = "/spec/provider/workers/0";
        let at = |member: &str| format!("{web}/{member}");
        let none: [&str; 0] = [];
        assert_eq!(warnings(&[]), none);
        assert_eq!(warnings(&[(&at("maximum"), json!(10)), (&at("labels"), json!({"a": "b"}))]), none);
        assert_eq!(warnings(&[("/spec/kubernetes/version", json!("1.34.6"))]), none);
        let image = (&*at("machine/image/version"), json!("1.2.4"));
        assert_eq!(
            warnings(std::slice::from_ref(&image)),
            ["pool web: its 2 to 9 nodes roll, because machine.image changed; 3 at a time"]
        );
        assert_eq!(
            warnings(&[image, (&at("maxUnavailable"), json!("10%"))]),
            ["pool web: its 2 to 9 nodes roll, because machine.image changed; 3 more and 10% fewer at a time"]
        );
        assert_eq!(
            warnings(&[(&at("dataVolumes/0/size"), json!("60Gi"))]),
            ["pool web: its 2 to 9 nodes roll, because dataVolumes[d].size changed; 3 at a time"]
        );
        assert_eq!(warnings(&[(&at("zones"), json!(["a"]))]), ["pool web: its nodes in zone b are deleted"]);
        assert_eq!(warnings(&[("/spec/provider/workers/0", Value::Null)]), ["pool web: its 2 to 9 nodes are deleted"]);
        let both = warnings(&[("/spec/kubernetes/version", json!("1.35.1"))]);
        assert_eq!(both.len(), 2, "{both:?}");
        assert!(
            both[1].starts_with("pool \\u{1b}[2Jevil: its 2 to 9 nodes roll, because kubernetes.version"),
            "{both:?}"
        );
    }

    #[test]
    fn many_pools_take_at_most_ten_lines() {
        let pools = |version: &str| {
            let mut shoot = shoot();
            let pool = shoot["spec"]["provider"]["workers"][0].clone();
            shoot["spec"]["provider"]["workers"] = (0..30)
                .map(|index| {
                    let mut pool = pool.clone();
                    pool["name"] = format!("p{index}").into();
                    pool
                })
                .collect();
            shoot["spec"]["kubernetes"]["version"] = version.into();
            shoot.to_string()
        };
        let warnings = node_warnings(&pools("1.34.3"), &pools("1.35.1"), Providers::SHIPPED);
        assert_eq!(warnings.len(), 10);
        assert_eq!(warnings[9], "21 further pools: their nodes are replaced, updated or deleted too");
    }
}

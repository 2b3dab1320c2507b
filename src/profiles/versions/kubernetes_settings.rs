//! Settings that a Kubernetes update removes from a Shoot: fields that the new version no longer has, and feature gates
//! and admission plugins that it does not support (docs/versions.md#what-else-changes).
//!
//! The tables next to this file are facts about Kubernetes: each line has the minors `FROM-TO` of 1.x, with `TO`
//! excluded, and names.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use wire::api::gotext::version::Version;

/// A field that is removed when the control plane reaches a minor of Kubernetes 1.
struct Removal {
    minor: u64,
    path: &'static [&'static str],
    /// The rest of the text about the removal, after the path.
    reason: &'static str,
}

const UNSUPPORTED: &str =
    "was removed. Reason: The field is no longer supported for Shoot clusters using Kubernetes version 1.35+";

/// Fields in the order of the texts. `[]` is each item of a list. The SecretBinding comes between the third and fourth.
const REMOVALS: [Removal; 7] = [
    Removal {
        minor: 33,
        path: &["kubernetes", "kubeControllerManager", "podEvictionTimeout"],
        reason: "is set to nil. Reason: The field was deprecated in favour of \
                 `spec.kubernetes.kubeAPIServer.defaultNotReadyTolerationSeconds` and \
                 `spec.kubernetes.kubeAPIServer.defaultUnreachableTolerationSeconds` and can no longer be enabled for Shoot \
                 clusters using Kubernetes version 1.33+",
    },
    Removal {
        minor: 33,
        path: &["kubernetes", "clusterAutoscaler", "maxEmptyBulkDelete"],
        reason: "is set to nil. Reason: The field was deprecated in favour of \
                 `.spec.kubernetes.clusterAutoscaler.maxScaleDownParallelism` and can no longer be enabled for Shoot clusters \
                 using Kubernetes version 1.33+",
    },
    Removal { minor: 35, path: &["kubernetes", "kubeAPIServer", "enableAnonymousAuthentication"], reason: UNSUPPORTED },
    Removal {
        minor: 35,
        path: &["kubernetes", "kubeScheduler", "kubeMaxPDVols"],
        reason: "was removed. Reason: kubeMaxPDVols is deprecated and not respected by the kube-scheduler",
    },
    Removal {
        minor: 35,
        path: &["kubernetes", "kubeAPIServer", "watchCacheSizes", "default"],
        reason: "was removed. Reason: the default size configuration is deprecated and not respected by the kube-apiserver",
    },
    Removal {
        minor: 35,
        path: &["addons"],
        reason: "was removed. Reason: addons are not supported anymore for Kubernetes versions 1.35+",
    },
    Removal { minor: 35, path: &["dns", "providers", "[]", "secretName"], reason: UNSUPPORTED },
];

/// Number of removals before the SecretBinding in the order of the texts.
const BEFORE_BINDING: usize = 3;

/// Components with feature gates.
const COMPONENTS: [&str; 5] = ["kubeAPIServer", "kubeControllerManager", "kubeScheduler", "kubeProxy", "kubelet"];

/// The fields in a Shoot's `spec` that a Kubernetes update may remove.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KubernetesSettings(Map<String, Value>);

/// An update from one minor to another.
#[derive(Clone, Copy, Debug)]
pub struct Crossing {
    from: (u64, u64),
    to: (u64, u64),
}

impl Crossing {
    /// From one version to another, without prereleases.
    #[must_use]
    pub fn new(from: &Version, to: &Version) -> Self {
        Self { from: (from.major, from.minor), to: (to.major, to.minor) }
    }

    /// Whether the update reaches this minor of Kubernetes 1.
    #[must_use]
    pub fn reaches(self, minor: u64) -> bool {
        self.from < (1, minor) && self.to >= (1, minor)
    }
}

impl KubernetesSettings {
    /// The relevant fields of a Shoot; `None` if there are none.
    #[must_use]
    pub fn of(spec: &Value) -> Option<Self> {
        let mut kept = Map::new();
        for removal in &REMOVALS {
            copy(spec, removal.path, &mut kept);
        }
        for component in COMPONENTS {
            copy(spec, &["kubernetes", component, "featureGates"], &mut kept);
        }
        copy(spec, &["kubernetes", "kubeAPIServer", "admissionPlugins"], &mut kept);
        let workers = spec["provider"]["workers"].as_array().map(Vec::as_slice).unwrap_or_default();
        let gates = |worker: &Value| worker["kubernetes"]["kubelet"]["featureGates"].clone();
        if workers.iter().any(|worker| gates(worker).is_object()) {
            kept.insert("workers".to_owned(), workers.iter().map(gates).collect());
        }
        (!kept.is_empty()).then_some(Self(kept))
    }

    /// Writes the remaining fields back into the `spec` that `original` was read from.
    pub fn write(&self, original: &Self, spec: &mut Value) {
        for path in original.leaves() {
            let steps: Vec<&str> = path.iter().map(String::as_str).collect();
            let left = steps.iter().try_fold(None::<&Value>, |at, step| {
                Some(Some(match at {
                    None => self.0.get(*step)?,
                    Some(at) => at.get(*step)?,
                }))
            });
            set(spec, &steps, left.flatten().cloned());
        }
        let gates = self.0.get("workers").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for (index, gates) in gates.iter().enumerate() {
            if let Some(kubelet) = spec.pointer_mut(&format!("/provider/workers/{index}/kubernetes/kubelet")) {
                set(kubelet, &["featureGates"], gates.is_object().then(|| gates.clone()));
            }
        }
    }

    /// The path of each field in the `spec`.
    fn leaves(&self) -> Vec<Vec<String>> {
        let mut leaves = Vec::new();
        for (name, value) in self.0.iter().filter(|(name, _)| *name != "workers") {
            match value {
                Value::Object(components) if name == "kubernetes" => {
                    leaves.extend(components.iter().flat_map(|(component, members)| {
                        let members = members.as_object().into_iter().flat_map(Map::keys);
                        members.map(|member| vec![name.clone(), component.clone(), member.clone()])
                    }));
                }
                _ => leaves.push(vec![name.clone()]),
            }
        }
        leaves
    }

    /// Removes the fields that the control plane's update removes. Returns the texts before and after that of the
    /// SecretBinding.
    pub fn cross(&mut self, crossing: Crossing) -> [Vec<String>; 2] {
        let mut texts = [Vec::new(), Vec::new()];
        for (position, removal) in REMOVALS.iter().enumerate().filter(|(_, removal)| crossing.reaches(removal.minor)) {
            let [before, behind] = &mut texts;
            let texts = if position < BEFORE_BINDING { before } else { behind };
            remove(&mut self.0, removal.path, ".spec", &mut |path| texts.push(format!("{path} {}", removal.reason)));
        }
        texts
    }

    /// Removes feature gates and admission plugins that the versions do not support, and returns the texts. `pools` has
    /// the version of each pool's kubelets.
    pub fn keep_existing(&mut self, control_plane: &str, pools: &[&str]) -> Vec<String> {
        let mut texts = Vec::new();
        for component in COMPONENTS {
            let members = self.0.get_mut("kubernetes").and_then(|kubernetes| kubernetes.get_mut(component));
            let path = format!("spec.kubernetes.{component}.featureGates");
            texts.extend(
                members.and_then(Value::as_object_mut).and_then(|members| keep_gates(members, control_plane, &path)),
            );
        }
        let workers =
            self.0.get_mut("workers").and_then(Value::as_array_mut).map(Vec::as_mut_slice).unwrap_or_default();
        for (index, (gates, version)) in workers.iter_mut().zip(pools).enumerate() {
            let path = format!("spec.provider.workers[{index}].kubernetes.kubelet.featureGates");
            let mut members = Map::from_iter([("featureGates".to_owned(), gates.take())]);
            texts.extend(keep_gates(&mut members, version, &path));
            *gates = members.remove("featureGates").unwrap_or_default();
        }
        texts.extend(self.keep_plugins(control_plane));
        texts
    }

    fn keep_plugins(&mut self, version: &str) -> Option<String> {
        let server = self.0.get_mut("kubernetes")?.get_mut("kubeAPIServer")?.as_object_mut()?;
        let plugins = server.get_mut("admissionPlugins")?.as_array_mut()?;
        let name = |plugin: &Value| plugin["name"].as_str().unwrap_or_default().to_owned();
        let unknown = plugins.iter().map(name).filter(|name| !is_known(&ADMISSION_PLUGINS, name, version)).collect();
        plugins.retain(|plugin| is_known(&ADMISSION_PLUGINS, &name(plugin), version));
        if plugins.is_empty() {
            server.remove("admissionPlugins");
        }
        removed_text("admission plugins", "spec.kubernetes.kubeAPIServer.admissionPlugins", version, unknown)
    }

    /// Disables the nginx ingress if it is enabled, and returns the text.
    pub fn disable_nginx_ingress(&mut self) -> Option<String> {
        let ingress = self.0.get_mut("addons")?.get_mut("nginxIngress")?;
        if ingress["enabled"] != true {
            return None;
        }
        ingress["enabled"] = false.into();
        Some(
            ".spec.addons.nginxIngress was disabled. Reason: nginx ingress addon disallowed by landscape operator"
                .to_owned(),
        )
    }
}

fn keep_gates(members: &mut Map<String, Value>, version: &str, path: &str) -> Option<String> {
    let gates = members.get_mut("featureGates")?.as_object_mut()?;
    let unknown: Vec<String> = gates.keys().filter(|gate| !is_known(&FEATURE_GATES, gate, version)).cloned().collect();
    gates.retain(|gate, _| !unknown.contains(gate));
    if gates.is_empty() {
        members.remove("featureGates");
    }
    removed_text("feature gates", path, version, unknown)
}

fn removed_text(what: &str, path: &str, version: &str, mut unknown: Vec<String>) -> Option<String> {
    unknown.sort();
    (!unknown.is_empty()).then(|| {
        format!(
            "Removed {what} from \"{path}\" because they are not supported in Kubernetes version \"{version}\": {}",
            unknown.join(", ")
        )
    })
}

/// Removes a field, in each item if the path contains a list, and reports its path to `removed`.
fn remove(members: &mut Map<String, Value>, path: &[&str], at: &str, removed: &mut impl FnMut(&str)) {
    let Some((first, rest)) = path.split_first() else { return };
    let at = format!("{at}.{first}");
    match rest {
        [] => {
            if members.remove(*first).is_some_and(|member| !member.is_null()) {
                removed(&at);
            }
        }
        ["[]", rest @ ..] => {
            let items =
                members.get_mut(*first).and_then(Value::as_array_mut).map(Vec::as_mut_slice).unwrap_or_default();
            for (index, item) in items.iter_mut().enumerate() {
                item.as_object_mut()
                    .into_iter()
                    .for_each(|item| remove(item, rest, &format!("{at}[{index}]"), removed));
            }
        }
        rest => {
            let member = members.get_mut(*first).and_then(Value::as_object_mut);
            member.into_iter().for_each(|member| remove(member, rest, &at, removed));
        }
    }
}

/// Copies a field with its parent objects, and a list as a whole.
fn copy(from: &Value, path: &[&str], to: &mut Map<String, Value>) {
    let Some((first, rest)) = path.split_first() else { return };
    let Some(member) = from.get(first).filter(|member| !member.is_null()) else { return };
    if rest.is_empty() || rest.contains(&"[]") || rest == ["default"] {
        to.insert((*first).to_owned(), member.clone());
        return;
    }
    let mut inner = to.get(*first).and_then(Value::as_object).cloned().unwrap_or_default();
    copy(member, rest, &mut inner);
    if !inner.is_empty() {
        to.insert((*first).to_owned(), inner.into());
    }
}

/// Sets or removes a field of an existing object.
fn set(object: &mut Value, path: &[&str], value: Option<Value>) {
    let Some((last, parents)) = path.split_last() else { return };
    let parent = parents.iter().try_fold(object, |object, step| object.get_mut(*step));
    let Some(members) = parent.and_then(Value::as_object_mut) else { return };
    match value {
        Some(value) => drop(members.insert((*last).to_owned(), value)),
        None => drop(members.remove(*last)),
    }
}

type Known = HashMap<&'static str, (u64, u64)>;

static FEATURE_GATES: LazyLock<Known> = LazyLock::new(|| table(include_str!("feature_gates.txt")));
static ADMISSION_PLUGINS: LazyLock<Known> = LazyLock::new(|| table(include_str!("admission_plugins.txt")));

fn table(text: &'static str) -> Known {
    let line = |line: &'static str| {
        let mut words = line.split(' ');
        let (from, to) = words.next().and_then(|range| range.split_once('-')).unwrap_or_default();
        let range = (from.parse().unwrap_or(0), to.parse().unwrap_or(u64::MAX));
        words.map(move |name| (name, range))
    };
    text.lines().flat_map(line).collect()
}

/// Whether a version of Kubernetes supports a name.
fn is_known(known: &Known, name: &str, version: &str) -> bool {
    let Ok(version) = Version::parse(super::candidates::numbers(version)) else { return false };
    let in_range = |(from, to): &(u64, u64)| {
        (version.major, version.minor) >= (u64::from(*from > 0), *from)
            && (*to == u64::MAX || (version.major, version.minor) < (1, *to))
    };
    known.get(name).is_some_and(in_range)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn removes_names_that_kubernetes_1_37_lacks() {
        let spec = json!({"kubernetes": {"kubeAPIServer": {
            "featureGates": {"EvictionRequestAPI": true, "SidecarContainers": true, "APIServerTracing": true},
            "admissionPlugins": [{"name": "JobValidation"}, {"name": "PodGroupProtection"}],
        }}});
        let remaining = |version: &str| {
            let mut settings = KubernetesSettings::of(&spec).unwrap();
            settings.keep_existing(version, &[]);
            let server = settings.0["kubernetes"]["kubeAPIServer"].clone();
            let gates: Vec<String> = server["featureGates"].as_object().unwrap().keys().cloned().collect();
            let plugins = server["admissionPlugins"].as_array().unwrap();
            let plugins: Vec<String> =
                plugins.iter().map(|plugin| plugin["name"].as_str().unwrap().to_owned()).collect();
            (gates.join(" "), plugins.join(" "))
        };
        let words = |gates: &str, plugins: &str| (gates.to_owned(), plugins.to_owned());
        assert_eq!(
            remaining("1.36.4"),
            words("APIServerTracing SidecarContainers", "JobValidation PodGroupProtection")
        );
        assert_eq!(remaining("1.37.0"), words("EvictionRequestAPI", "PodGroupProtection"));
    }
}

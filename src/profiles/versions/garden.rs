//! Parts of a garden, other than profile and Shoot, that affect maintenance: credentials bindings and feature gates.

use serde_json::Value;

/// The garden of a shoot.
#[derive(Clone, Debug, Default)]
pub struct Garden {
    /// SecretBindings and CredentialsBindings. If `None`, all are assumed to exist.
    pub bindings: Option<Vec<Value>>,
    /// Gardener's feature gate `DisableNginxIngressInShoot`.
    pub is_nginx_ingress_disabled: bool,
    /// Which updates the API server rejects.
    pub validation: Validation,
}

/// Which updates the API server rejects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Validation {
    /// None, to simulate only the controller.
    #[default]
    Off,
    /// Those with invalid fields.
    OfShoot,
    /// Also those that contradict the CloudProfile, like the admission plugin `ShootValidator`, which is enabled by
    /// default.
    WithProfile,
}

impl Garden {
    fn binding(&self, kind: &str, namespace: &str, name: &str) -> Option<&Value> {
        self.of_kind(kind, namespace).into_iter().find(|binding| binding["metadata"]["name"] == name)
    }

    fn of_kind(&self, kind: &str, namespace: &str) -> Vec<&Value> {
        let bindings = self.bindings.iter().flatten();
        bindings.filter(|binding| binding["kind"] == kind && binding["metadata"]["namespace"] == namespace).collect()
    }

    /// The CredentialsBinding that replaces a SecretBinding. It is a new one if none has the same Secret and quotas.
    ///
    /// # Errors
    /// If the SecretBinding does not exist, or the CredentialsBinding of an earlier migration differs.
    pub fn migrate(&mut self, namespace: &str, name: &str) -> Result<String, String> {
        let migrated = format!("force-migrated-{name}");
        if self.bindings.is_none() {
            return Ok(migrated);
        }
        let missing = || {
            format!(
                "failed to get SecretBinding {namespace}/{name}: secretbindings.core.gardener.cloud \"{name}\" not found"
            )
        };
        let old = self.binding("SecretBinding", namespace, name).ok_or_else(missing)?;
        if let Some(earlier) = self.binding("CredentialsBinding", namespace, &migrated) {
            let differs = |what: &str| {
                format!(
                    "existing CredentialsBinding {namespace}/{migrated} does not {what} SecretBinding {namespace}/{name}"
                )
            };
            if !has_same_secret(earlier, old) {
                return Err(differs("reference the same Secret as"));
            }
            if quotas(earlier) != quotas(old) {
                return Err(differs("have the same Quotas as"));
            }
            return Ok(migrated);
        }
        let same = self.of_kind("CredentialsBinding", namespace).into_iter();
        let same = same.filter(|binding| has_same_secret(binding, old) && quotas(binding) == quotas(old));
        let first = same.filter_map(|binding| binding["metadata"]["name"].as_str()).min();
        Ok(first.map_or(migrated, str::to_owned))
    }
}

fn has_same_secret(new: &Value, old: &Value) -> bool {
    let new = &new["credentialsRef"];
    let old = &old["secretRef"];
    new["kind"] == "Secret"
        && new["apiVersion"] == "v1"
        && ["name", "namespace"].iter().all(|part| new[part] == old[part])
}

/// The quotas of a binding, sorted.
fn quotas(binding: &Value) -> Vec<String> {
    let quotas = binding["quotas"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut texts: Vec<String> = quotas.iter().map(Value::to_string).collect();
    texts.sort();
    texts
}

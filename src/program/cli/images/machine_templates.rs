//! Machine templates for the Cluster API provider AWS: one with a pinned image per flavor.

use std::collections::BTreeSet;

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::cli::terminal::yaml;
use profiles::images::lock::Lock;
use profiles::images::record::fact;
use profiles::images::resolution::{FlavorKey, Resolved};

/// Maximum length of an object name.
const LONGEST_NAME: usize = 253;
/// Length of the digest in a name.
const DIGEST: usize = 10;

/// The templates as YAML documents, with the locked image, or the newest if none is locked.
pub(super) fn machine_templates(resolved: &[Resolved<'_>], lock: &Lock) -> anyhow::Result<String> {
    let mut texts = Vec::new();
    let mut taken = BTreeSet::new();
    for resolved in resolved.iter().filter(|resolved| resolved.key.provider == "aws") {
        let key = &resolved.key;
        let locked = lock.images.get(key).map(|locked| locked.reference.value.as_str());
        let Some(id) = locked.or_else(|| resolved.chosen().map(|image| image.reference.value.as_str())) else {
            continue;
        };
        texts.push(yaml(&json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSMachineTemplate",
            "metadata": {"name": name(key, &mut taken), "labels": {"topology.kubernetes.io/region": key.region}},
            "spec": {"template": {"spec": {"ami": {"id": id}}}},
        }))?);
    }
    Ok(texts.join("---\n"))
}

/// The name of a template, derived from its key. A digest of the key is appended if the name loses information, is too
/// long, or is already taken. Only the last case depends on other templates.
fn name(key: &FlavorKey, taken: &mut BTreeSet<String>) -> String {
    // `flavor_text` omits secure boot.
    let secure = key.flavor.values(fact::SECURE_BOOT).is_some_and(|known| known == ["true"]);
    let flavor = format!("{}{}", key.flavor_text(), if secure { " secure-boot" } else { "" });
    let text = format!("{} {flavor} {} {}", key.image, key.version, key.place());
    let name = object_name(&text);
    let is_whole = name == text.replace([' ', '/'], "-").to_lowercase() && name.len() <= LONGEST_NAME;
    if is_whole && taken.insert(name.clone()) {
        return name;
    }
    let flavor: Vec<_> = key.flavor.0.iter().collect();
    let digest = Sha256::digest(json!([key.realm, key.image, key.version, flavor, key.region]).to_string());
    let digest = hex::encode(digest).chars().take(DIGEST).collect();
    let beginning: String = name.chars().take(LONGEST_NAME - DIGEST - 1).collect();
    let parts = [beginning.trim_end_matches(['-', '.']).to_owned(), digest];
    let name = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
    taken.insert(name.clone());
    name
}

/// Converts a text to an object name: dot-separated parts that begin and end with a letter or digit.
fn object_name(text: &str) -> String {
    let allowed = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let parts = text.split('.').map(|part| part.chars().map(allowed).collect::<String>().trim_matches('-').to_owned());
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use profiles::images::record::PUBLIC;
    use wire::api::gardener::Capabilities;

    use super::*;

    fn key(image: &str, version: &str) -> FlavorKey {
        let flavor: Capabilities = serde_json::from_value(json!({"architecture": ["amd64"]})).unwrap();
        FlavorKey {
            provider: "aws",
            realm: PUBLIC.to_owned(),
            image: image.to_owned(),
            version: version.to_owned(),
            flavor: flavor.into(),
            region: Some("eu-1".to_owned()),
        }
    }

    #[test]
    fn each_template_has_a_name_of_its_own_that_an_api_server_takes() {
        let mut taken = BTreeSet::new();
        assert_eq!(name(&key("Ubuntu", "24.04"), &mut taken), "ubuntu-amd64-24.04-eu-1");
        let keys = [
            key("a+b", "1.0"),
            key("a b", "1.0"),
            key("A_B", "1.0"),
            key(&"x".repeat(300), "1.0"),
            key(&"x".repeat(301), "1.0"),
            key("ö.-.", "1.-.0"),
            key(&format!("{}..", "y".repeat(241)), "1"),
        ];
        let alone = name(&keys[0], &mut BTreeSet::new());
        let names: BTreeSet<String> = keys.iter().map(|key| name(key, &mut taken)).collect();
        assert!(names.contains(&alone), "what else there is does not change it");
        assert_eq!(names.len(), keys.len(), "{names:?}");
        for name in names {
            assert!(name.len() <= LONGEST_NAME, "{name}");
            let is_part = |part: &str| {
                let is_letter = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
                part.starts_with(is_letter)
                    && part.ends_with(is_letter)
                    && part.chars().all(|letter| is_letter(letter) || letter == '-')
            };
            assert!(name.split('.').all(is_part), "{name}");
        }
    }
}

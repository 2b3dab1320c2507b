//! Machine templates for the Cluster API provider AWS: one with a pinned image per flavor, with the objects to point at
//! it.

use std::collections::BTreeSet;

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::cli::terminal::yaml;
use profiles::images::lock::Lock;
use profiles::images::record::fact;
use profiles::images::resolution::{FlavorKey, Resolved};
use profiles::images::template_users::{TemplateUser, TemplateUsers, one_line};

/// Maximum length of an object name.
const LONGEST_NAME: usize = 253;
/// Length of the digest in a name.
const DIGEST: usize = 10;
/// Comment if the users of templates are unknown.
const UNKNOWN_USERS: &str = "\
# Point a MachineDeployment or KubeadmControlPlane at its template. --consumers FILE lists those that use another one.\n";

/// The templates as YAML documents, with the locked image, or the newest if none is locked. Comments list the users of
/// templates that have to change, and those that already use the image.
pub(super) fn machine_templates(
    resolved: &[Resolved<'_>],
    lock: &Lock,
    users: Option<&TemplateUsers>,
) -> anyhow::Result<String> {
    let mut texts = Vec::new();
    let mut taken = BTreeSet::new();
    let mut assigned = BTreeSet::new();
    for resolved in resolved.iter().filter(|resolved| resolved.key.provider == "aws") {
        let key = &resolved.key;
        let locked = lock.images.get(key).map(|locked| locked.reference.value.as_str());
        let Some(id) = locked.or_else(|| resolved.chosen().map(|image| image.reference.value.as_str())) else {
            continue;
        };
        let name = name(key, id, &mut taken);
        let template = yaml(&json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSMachineTemplate",
            "metadata": {"name": name, "labels": {"topology.kubernetes.io/region": key.region}},
            "spec": {"template": {"spec": {"ami": {"id": id}}}},
        }))?;
        let users: Vec<(&TemplateUser, &str)> =
            users.into_iter().flat_map(|users| of_flavor(users, resolved)).collect();
        assigned.extend(users.iter().map(|(user, _)| *user));
        texts.push(format!("{}{template}", comment(&users, id)));
    }
    let templates = texts.join("---\n");
    Ok(match users {
        None => format!("{UNKNOWN_USERS}{templates}"),
        Some(users) => format!("{}{templates}", unassigned(users, &assigned)),
    })
}

/// The users whose template has an image of this flavor, with its id. The image may no longer exist, so the name of the
/// template also counts.
fn of_flavor<'u>(users: &'u TemplateUsers, resolved: &Resolved<'_>) -> Vec<(&'u TemplateUser, &'u str)> {
    let is_candidate = |id: &str| resolved.candidates.iter().any(|candidate| candidate.image.reference.value == id);
    let has_name = |user: &TemplateUser, id: &str| name(&resolved.key, id, &mut BTreeSet::new()) == user.template();
    let known = users.all().filter_map(|(user, id)| Some((user, id?)));
    known.filter(|(user, id)| is_candidate(id) || has_name(user, id)).collect()
}

/// The users of one flavor as comments.
fn comment(users: &[(&TemplateUser, &str)], id: &str) -> String {
    let mut lines = String::new();
    for (user, used) in users {
        let template = user.template_of();
        if *used == id {
            lines.push_str(&format!("# {user} uses {id} with template {template}.\n"));
        } else {
            let used = one_line(used);
            lines.push_str(&format!("# {user} still uses {used} with template {template}:\n"));
            lines.push_str(&format!("#   write the name of this template into {}.\n", user.field()));
        }
    }
    lines
}

/// The users that belong to none of the printed templates, as comments with the reason.
fn unassigned(users: &TemplateUsers, assigned: &BTreeSet<&TemplateUser>) -> String {
    let mut lines = String::new();
    for (user, id) in users.all().filter(|(user, _)| !assigned.contains(user)) {
        let template = user.template_of();
        let reason = match id {
            None => format!("its template {template} was not read"),
            Some("") => format!("its template {template} has no ami.id"),
            Some(id) => format!("{} of its template {template} is an image of none of these flavors", one_line(id)),
        };
        lines.push_str(&format!("# {user}: {reason}.\n"));
    }
    lines
}

/// The name of a template, derived from its key and its image. Templates are immutable, so another image needs another
/// name. A digest is inserted if the name loses information, is too long, or is already taken. Only the last case
/// depends on other templates.
fn name(key: &FlavorKey, id: &str, taken: &mut BTreeSet<String>) -> String {
    // `flavor_text` omits secure boot.
    let secure = key.flavor.values(fact::SECURE_BOOT).is_some_and(|known| known == ["true"]);
    let flavor = format!("{}{}", key.flavor_text(), if secure { " secure-boot" } else { "" });
    let text = format!("{} {flavor} {} {}", key.image, key.version, key.location());
    let beginning = object_name(&text);
    let name = format!("{beginning}-{id}");
    let is_whole = beginning == text.replace([' ', '/'], "-").to_lowercase() && name.len() <= LONGEST_NAME;
    if is_whole && taken.insert(name.clone()) {
        return name;
    }
    let flavor: Vec<_> = key.flavor.0.iter().collect();
    let digest = Sha256::digest(json!([key.realm, key.image, key.version, flavor, key.region]).to_string());
    let digest = hex::encode(digest).chars().take(DIGEST).collect();
    let beginning: String = beginning.chars().take(LONGEST_NAME - DIGEST - id.len() - 2).collect();
    let parts = [beginning.trim_end_matches(['-', '.']).to_owned(), digest, id.to_owned()];
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

    const ID: &str = "ami-0123456789abcdef0";

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
        assert_eq!(name(&key("Ubuntu", "24.04"), ID, &mut taken), "ubuntu-amd64-24.04-eu-1-ami-0123456789abcdef0");
        let keys = [
            key("a+b", "1.0"),
            key("a b", "1.0"),
            key("A_B", "1.0"),
            key(&"x".repeat(300), "1.0"),
            key(&"x".repeat(301), "1.0"),
            key("ö.-.", "1.-.0"),
            key(&format!("{}..", "y".repeat(241)), "1"),
        ];
        let alone = name(&keys[0], ID, &mut BTreeSet::new());
        let names: BTreeSet<String> = keys.iter().map(|key| name(key, ID, &mut taken)).collect();
        assert!(names.contains(&alone), "what else there is does not change it");
        assert_eq!(names.len(), keys.len(), "{names:?}");
        for name in names {
            assert!(name.len() <= LONGEST_NAME && name.ends_with(ID), "{name}");
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

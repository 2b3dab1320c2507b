//! Where a shoot is, for a user with the kubeconfig of the garden: its seed, its namespace there, and what is missing.

use kube::Client;
use serde_json::Value;

use super::names::shoot_of_namespace;
use runtime::cluster::garden_cluster::GardenKind;
use runtime::process::failure_reason::reason;
use wire::api::bounded_text::{Bound, named, shortened};

/// Maximum number of Shoots in an error.
const NAMED: Bound = Bound { items: 6, bytes: 1_000 };
/// Maximum length of a name in an error, in bytes.
const LONGEST_NAME: usize = 128;
/// How namespaces of projects begin, in most landscapes.
const PROJECT_NAMESPACE: &str = "garden-";
const IS_GARDEN: &str = "this cluster is not a seed, but a garden";

/// The error for a command that needs a seed: which one, and the namespace in it.
pub(super) async fn seed_of(client: &Client, names: &[String], namespace: Option<&str>) -> anyhow::Error {
    let Some(name) = names.first() else {
        return anyhow::anyhow!("{IS_GARDEN}: name the kubeconfig of a seed with --kubeconfig");
    };
    let found = match locations(name, namespace) {
        Some((namespaces, shoot)) => first_in(client, &namespaces, &shoot).await,
        None => GardenKind::Shoot.list_named(client, name).await,
    };
    match found {
        Ok(shoots) => anyhow::anyhow!("{IS_GARDEN}. {}", directions(name, &shoots)),
        Err(error) => anyhow::anyhow!(
            "{IS_GARDEN}, and this user may not read the Shoot {:?} in it ({}); ask for the right to get shoots in the project, \
             or name the kubeconfig of the seed with --kubeconfig",
            shortened(name, LONGEST_NAME),
            reason(error.as_ref())
        ),
    }
}

/// The namespaces in which a Shoot can be, and its name; `None` for a name alone.
fn locations(name: &str, namespace: Option<&str>) -> Option<(Vec<String>, String)> {
    let (qualifier, shoot) = match (shoot_of_namespace(name), name.split_once('/'), namespace) {
        (Some(shoot), None, _) => shoot,
        (_, Some((namespace, _)), _) if shoot_of_namespace(namespace).is_some() => shoot_of_namespace(namespace)?,
        (_, Some(qualified), _) => qualified,
        (None, None, Some(namespace)) => shoot_of_namespace(namespace).unwrap_or((namespace, name)),
        (None, None, None) => return None,
    };
    let of_project = format!("{PROJECT_NAMESPACE}{qualifier}");
    let namespaces = if qualifier.starts_with(PROJECT_NAMESPACE) {
        vec![qualifier.to_owned()]
    } else {
        vec![of_project, qualifier.to_owned()]
    };
    Some((namespaces, shoot.to_owned()))
}

async fn first_in(client: &Client, namespaces: &[String], shoot: &str) -> anyhow::Result<Vec<Value>> {
    for namespace in namespaces {
        if let Some(found) = GardenKind::Shoot.get(client, Some(namespace), shoot).await? {
            return Ok(vec![found]);
        }
    }
    Ok(Vec::new())
}

fn text(shoot: &Value, pointer: &str) -> String {
    let text = shoot.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    shortened(text, LONGEST_NAME)
}

fn title(shoot: &Value) -> String {
    format!("{}/{}", text(shoot, "/metadata/namespace"), text(shoot, "/metadata/name"))
}

/// The seed and the namespace with the Worker of a Shoot, in a sentence.
pub(in crate::cli) fn location_of_shoot(shoot: &Value) -> String {
    let title = title(shoot);
    let seed = text(shoot, "/status/seedName");
    let seed = if seed.is_empty() { text(shoot, "/spec/seedName") } else { seed };
    let namespace = text(shoot, "/status/technicalID");
    if seed.is_empty() || namespace.is_empty() {
        return format!("Shoot {title} names no seed or no namespace in it, so its Worker is unknown");
    }
    format!(
        "The Worker of Shoot {title} is in namespace {namespace} of seed {seed}: name the kubeconfig of that seed with \
         --kubeconfig, and {namespace} as the object"
    )
}

fn directions(name: &str, shoots: &[Value]) -> String {
    match shoots {
        [] => format!("It has no Shoot {:?}, or this user may not read it", shortened(name, LONGEST_NAME)),
        [shoot] => location_of_shoot(shoot),
        several => {
            let titles: Vec<String> = several.iter().map(title).collect();
            format!("It has several Shoots of that name ({}): name one with its project", named(&titles, NAMED))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn finds_the_namespaces_of_a_shoot() {
        let both = |project: &str| vec![format!("garden-{project}"), project.to_owned()];
        for (name, namespace, expected) in [
            ("shoot--a--web", None, Some((both("a"), "web"))),
            ("shoot--a--web/web", None, Some((both("a"), "web"))),
            ("a/web", None, Some((both("a"), "web"))),
            ("garden-a/web", None, Some((vec!["garden-a".to_owned()], "web"))),
            ("web", Some("garden-a"), Some((vec!["garden-a".to_owned()], "web"))),
            ("pool", Some("shoot--a--web"), Some((both("a"), "web"))),
            ("web", None, None),
        ] {
            let expected = expected.map(|(namespaces, shoot)| (namespaces, shoot.to_owned()));
            assert_eq!(locations(name, namespace), expected, "{name}");
        }
    }

    #[test]
    fn names_seed_and_namespace() {
        let shoot = json!({"metadata": {"namespace": "garden-a", "name": "web"}, "spec": {"seedName": "eu-1"},
            "status": {"technicalID": "shoot--a--web"}});
        let text = directions("web", std::slice::from_ref(&shoot));
        assert!(text.contains("Shoot garden-a/web is in namespace shoot--a--web of seed eu-1"), "{text}");
        assert!(directions("web", &[]).contains("no Shoot \"web\""));
        assert!(directions("web", &[json!({"metadata": {"name": "web"}})]).contains("names no seed"));
        let hostile = json!({"metadata": {"namespace": "x".repeat(10_000)}});
        assert!(directions("web", &vec![hostile; 1000]).len() < 1500);
    }
}

//! Restrictions that RBAC can't express. Some service accounts may write Secrets, scale Deployments and delete pods,
//! but only the objects that their programs need. Each attempt is allowed by the role alone, and denied with the
//! policies installed.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use axum::http::Request;
use kube::Client;
use serde_json::{Value, json};

use crate::chart::{Chart, merge, render};
use crate::installed::{self, apply, install};
use test_support::cluster::{ADMIN, ControlPlane, eventually, install_files};

const SHOOT: &str = "shoot--p--s";
const SYSTEM: &str = "kube-system";
const MACHINE_CLASSES: (&str, &str) = ("gardener.cloud/purpose", "machineclass");
const TOKEN: &str = "kubernetes.io/service-account-token";

const SECURITY: &str = include_str!("../../../docs/security.md");

/// A request that a program could send. Stores nothing.
struct Attempt {
    what: &'static str,
    method: &'static str,
    path: String,
    body: Value,
    /// The message of the policy, or `None` if the program needs the request.
    refused: Option<&'static str>,
}

impl Attempt {
    fn new(what: &'static str, method: &'static str, path: String, body: Value) -> Self {
        Self { what, method, path, body, refused: None }
    }

    fn refused(self, why: &'static str) -> Self {
        Self { refused: Some(why), ..self }
    }

    /// Returns the API server's error with its code, or nothing if the request is allowed. The alert
    /// `WorkerRequestsForbidden` counts that code.
    async fn refusal(&self, client: &Client) -> Result<Option<String>> {
        let content = if self.method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(self.method).uri(format!("{}?dryRun=All", self.path));
        let request = request.header("content-type", content).body(self.body.to_string().into_bytes())?;
        match client.request_text(request).await {
            Ok(_) => Ok(None),
            Err(kube::Error::Api(status)) => Ok(Some(format!("{}: {}", status.code, status.message))),
            Err(error) => Err(error).with_context(|| self.what),
        }
    }
}

fn secret(namespace: &str, name: &str, kind: &str, labels: &[(&str, &str)]) -> Value {
    let labels: serde_json::Map<String, Value> =
        labels.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    let annotations = if kind == TOKEN { json!({"kubernetes.io/service-account.name": "default"}) } else { json!({}) };
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": kind,
        "metadata": {"name": name, "namespace": namespace, "labels": labels, "annotations": annotations},
    })
}

fn create(what: &'static str, namespace: &str, name: &str, kind: &str, labels: &[(&str, &str)]) -> Attempt {
    let path = format!("/api/v1/namespaces/{namespace}/secrets");
    Attempt::new(what, "POST", path, secret(namespace, name, kind, labels))
}

fn update(what: &'static str, name: &str, labels: &[(&str, &str)]) -> Attempt {
    let path = format!("/api/v1/namespaces/{SHOOT}/secrets/{name}");
    Attempt::new(what, "PUT", path, secret(SHOOT, name, "Opaque", labels))
}

fn delete(what: &'static str, namespace: &str, resource: &str, name: &str) -> Attempt {
    // The API server ignores the query if the request has a body.
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"]});
    Attempt::new(what, "DELETE", format!("/api/v1/namespaces/{namespace}/{resource}/{name}"), options)
}

fn scale(what: &'static str, namespace: &str, name: &str, replicas: usize) -> Attempt {
    let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale");
    Attempt::new(what, "PATCH", path, json!({"spec": {"replicas": replicas}}))
}

/// Requests that the controller's role allows.
fn of_the_controller() -> Vec<Attempt> {
    let labelled: &[(&str, &str)] = &[MACHINE_CLASSES];
    let (elsewhere, foreign) = ("not in the namespace of a shoot", "not the Secret of a machine class");
    let (other, not_opaque) = ("not the Deployment machine-controller-manager", "not a Secret of type Opaque");
    let not_its_pod = "not a pod of machine-controller-manager";
    vec![
        create("a Secret of a class", SHOOT, "new", "Opaque", labelled),
        update("user data of a class", "class", labelled),
        delete("the Secret of a class that is gone", SHOOT, "secrets", "class"),
        scale("hibernation", SHOOT, "machine-controller-manager", 0),
        delete("a stuck machine-controller-manager", SHOOT, "pods", "machine-controller-manager"),
        create("a token of a service account", SHOOT, "new", TOKEN, labelled).refused(not_opaque),
        create("a token where administrators are", SYSTEM, "new", TOKEN, labelled).refused(elsewhere),
        create("a Secret somewhere else", SYSTEM, "new", "Opaque", labelled).refused(elsewhere),
        create("a Secret for somebody else", SHOOT, "new", "Opaque", &[]).refused(foreign),
        update("other credentials", "cloudprovider", &[]).refused(foreign),
        update("credentials that become a class's", "cloudprovider", labelled).refused(foreign),
        update("a Secret that stops being a class's", "class", &[]).refused(foreign),
        delete("the credentials", SHOOT, "secrets", "cloudprovider").refused(foreign),
        delete("a Secret of the system", SYSTEM, "secrets", "class").refused(elsewhere),
        scale("an API server of a shoot", SHOOT, "kube-apiserver", 0).refused(other),
        scale("a Deployment of that name elsewhere", SYSTEM, "machine-controller-manager", 0).refused(elsewhere),
        scale("two that manage the same machines", SHOOT, "machine-controller-manager", 2)
            .refused("more than one replica"),
        delete("a pod of a shoot's API server", SHOOT, "pods", "kube-apiserver").refused(not_its_pod),
        delete("a pod of the system", SYSTEM, "pods", "machine-controller-manager").refused(elsewhere),
    ]
}

/// Requests for Secrets of its namespace that a program with its own certificates could send.
fn of_webhooks(namespace: &str, own: &'static str) -> Vec<Attempt> {
    let foreign = "not the Secret with the certificates of the webhook";
    vec![
        create("its certificates", namespace, own, "Opaque", &[]),
        create("another Secret", namespace, "another", "Opaque", &[]).refused(foreign),
        create("the token of another account", namespace, "another", TOKEN, &[]).refused(foreign),
        create("a token under its name", namespace, own, TOKEN, &[]).refused("not a Secret of type Opaque"),
    ]
}

/// Requests for webhook configurations that a program with webhooks could send. `wider` is the expected error for
/// configurations that cover more than `resources` of `group`.
fn of_registration(own: &'static str, group: &str, resources: &[&str], wider: &'static str) -> Vec<Attempt> {
    let create = |what, name: &str, groups: &[&str], resources: &[&str]| {
        let rule = json!({
            "apiGroups": groups, "apiVersions": ["*"], "operations": ["CREATE"], "resources": resources,
        });
        let webhook = json!({
            "name": "one.example.org", "clientConfig": {"url": "https://example.org"}, "rules": [rule],
            "sideEffects": "None", "admissionReviewVersions": ["v1"],
        });
        let kind = "MutatingWebhookConfiguration";
        let path = format!("/apis/admissionregistration.k8s.io/v1/{}s", kind.to_lowercase());
        let version = "admissionregistration.k8s.io/v1";
        let body = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "webhooks": [webhook]});
        Attempt::new(what, "POST", path, body)
    };
    let foreign = "not the webhook configuration of this extension";
    vec![
        create("its registration", own, &[group], resources),
        create("a registration of its own", "another", &[group], resources).refused(foreign),
        create("a webhook that sees Secrets", own, &[""], &["secrets"]).refused(wider),
        create("a webhook that sees everything", own, &["*"], &["*"]).refused(wider),
        create("a webhook for other objects of the group", own, &[group], &["controllerrevisions"]).refused(wider),
    ]
}

/// Creates the objects that the attempts need.
async fn install_objects(client: &Client) -> Result<()> {
    let labels = json!({"gardener.cloud/role": "shoot"});
    apply(client, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SHOOT, "labels": labels}}))
        .await?;
    apply(client, &secret(SHOOT, "cloudprovider", "Opaque", &[])).await?;
    for namespace in [SHOOT, SYSTEM] {
        apply(client, &secret(namespace, "class", "Opaque", &[MACHINE_CLASSES])).await?;
        for name in ["machine-controller-manager", "kube-apiserver"] {
            let metadata = json!({"name": name, "namespace": namespace, "labels": {"role": name}});
            let pod = json!({"containers": [{"name": "one", "image": "none"}]});
            apply(client, &json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod})).await?;
            let spec = json!({
                "replicas": 1, "selector": {"matchLabels": {"role": name}},
                "template": {"metadata": {"labels": {"role": name}}, "spec": pod},
            });
            apply(client, &json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}))
                .await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn service_accounts_reach_only_what_their_programs_need() -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    let client = control_plane.client(ADMIN).await?;
    install_files(&client, &["seed-crds/10-crd-autoscaling.k8s.io_verticalpodautoscalers.yaml"]).await?;
    install_objects(&client).await?;
    let namespace = control_plane.namespace("extension-worker").await?;
    let (controller, sidecar, admission) =
        ("gardener-extension-worker", "gardener-extension-worker-sidecar", "gardener-extension-worker-admission");
    let images = json!({"sidecarWebhook": {"enabled": true, "images": {"azure": "registry.example.org/sidecar:v1"}}});
    let charts =
        [(Chart::Worker, images), (Chart::AdmissionRuntime, json!({})), (Chart::AdmissionApplication, json!({}))];
    let (of_garden, of_seed) = (
        "a webhook for other resources than profiles and Shoots",
        "a webhook for other resources than Deployments and VerticalPodAutoscalers",
    );
    for enabled in [false, true] {
        for (chart, values) in &charts {
            let mut given = chart.needed();
            merge(&mut given, values);
            merge(&mut given, &json!({"admissionPolicy": {"enabled": enabled}}));
            install(&client, &render(*chart, &given, &namespace).await?, &namespace).await?;
        }
        for (account, attempts) in [
            (controller, of_the_controller()),
            (sidecar, of_webhooks(&namespace, sidecar)),
            (admission, of_webhooks(&namespace, admission)),
            (admission, of_registration(admission, "core.gardener.cloud", &["cloudprofiles", "shoots"], of_garden)),
            (sidecar, of_registration(sidecar, "apps", &["deployments"], of_seed)),
        ] {
            let program = installed::client(&control_plane, &namespace, account).await?;
            for attempt in attempts {
                let expected = if enabled { attempt.refused } else { None };
                // A policy takes effect shortly after it is stored.
                eventually(Duration::from_secs(30), attempt.what, async || {
                    let refusal = attempt.refusal(&program).await?;
                    let is_as_expected = match (&refusal, expected) {
                        (None, None) => true,
                        (Some(text), Some(why)) => {
                            text.starts_with("403: ")
                                && text.contains("ValidatingAdmissionPolicy")
                                && text.contains(why)
                        }
                        _ => false,
                    };
                    ensure!(is_as_expected, "{account}, policies {enabled}: {refusal:?} instead of {expected:?}");
                    Ok(())
                })
                .await?;
            }
        }
    }
    Ok(())
}

/// Every test that the threat model names as evidence exists.
#[test]
fn every_test_that_the_threat_model_names_exists() -> Result<()> {
    let model = SECURITY.split("\n## ").find(|section| section.starts_with("Threat model\n")).context("a section")?;
    let mut sources = String::new();
    for folder in ["src", "test"] {
        read_sources(&test_support::repository().join(folder), &mut sources)?;
    }
    let mut found = 0;
    for row in model.lines().filter(|line| line.starts_with("| ")).skip(1) {
        let tests = row.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default();
        let mut names = tests.split('`').skip(1).step_by(2).peekable();
        ensure!(names.peek().is_some(), "no test in: {row}");
        for name in names {
            ensure!(sources.contains(&format!("fn {name}(")), "docs/security.md names {name}, which is no test");
            found += 1;
        }
    }
    ensure!(found > 20, "{found} tests");
    Ok(())
}

fn read_sources(folder: &Path, text: &mut String) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read_sources(&path, text)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&std::fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

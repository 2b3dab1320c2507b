//! The steps of a takeover as files and commands. Each step has a command that verifies it and commands that undo it.

use anyhow::bail;
use serde_json::{Value, json};

use super::registration::{Change, Form, ObjectPatch, Registration};

/// Name of this extension's registration.
pub(super) const OURS: &str = "gardener-extension-worker";

/// One step.
pub(super) struct Step {
    pub(super) title: &'static str,
    /// Documents to write, by file name.
    pub(super) files: Vec<(String, Value)>,
    pub(super) commands: Vec<String>,
    pub(super) verify: String,
    /// The result of `verify` with which to continue.
    pub(super) expect: &'static str,
    /// Empty if the step changes nothing.
    pub(super) undo: Vec<String>,
}

/// A command that verifies a step, and its expected result.
type Verification = (String, &'static str);

/// Lists the pods of this controller with the differences that their dry run has logged.
fn differences_in_logs() -> String {
    let pods = format!("kubectl get pods --all-namespaces --selector app.kubernetes.io/name={OURS} --no-headers");
    let logs = r#"kubectl logs --namespace "$namespace" "$pod" | grep "dry run:""#;
    format!(r#"{pods} | while read -r namespace pod rest; do echo "$pod"; {logs}; done"#)
}

/// What the steps are made from.
pub(super) struct Landscape<'a> {
    pub(super) registrations: &'a [Registration],
    /// Types of the Workers to take over.
    pub(super) worker_types: &'a [&'a str],
    /// Reference of this extension's chart in a registry.
    pub(super) chart: Option<&'a str>,
    /// The folder of the files as a word of a shell, with a slash.
    pub(super) folder: &'a str,
}

impl Landscape<'_> {
    /// The steps in order.
    pub(super) fn steps(&self) -> anyhow::Result<Vec<Step>> {
        let theirs = self.theirs()?;
        let check = format!("gardener-extension-worker takeover check --worker-type {}", self.worker_types.join(","));
        let first = Step {
            title: "Check that no node would roll",
            files: Vec::new(),
            commands: vec![check.clone()],
            verify: check.clone(),
            expect: "No node would roll.",
            undo: Vec::new(),
        };
        let mut steps = vec![first, self.dry_run(theirs[0])?];
        let [mut off, mut undo] = [Vec::new(), Vec::new()];
        for registration in &theirs {
            off.extend(registration.without_workers(self.worker_types));
            undo.extend(registration.restored());
        }
        let title = "Turn the worker controller of the Go extension off";
        let verify = (check, "The Deployment of the Go extension runs without its worker controller.");
        steps.push(self.patched(title, "3-go-off", [&off, &undo], verify));
        steps.push(self.switched_on(theirs[0]));
        Ok(steps)
    }

    /// The Go extensions that are registered for the Workers.
    fn theirs(&self) -> anyhow::Result<Vec<&Registration>> {
        let mut found: Vec<&Registration> = Vec::new();
        for worker_type in self.worker_types {
            let of_type: Vec<_> = self.registrations.iter().filter(|one| one.has_workers_of(worker_type)).collect();
            let [registration] = of_type.as_slice() else {
                bail!("{} registrations have Workers of {worker_type}, instead of one", of_type.len());
            };
            if registration.name == OURS {
                bail!("Workers of {worker_type} are already taken over: they are registered for {OURS}");
            }
            if found.iter().all(|other| other.name != registration.name) {
                found.push(registration);
            }
        }
        if found.iter().any(|registration| registration.form.is_operator() != found[0].form.is_operator()) {
            bail!(
                "some extensions are registered with gardener-operator and some without; plan one --worker-type at a time"
            );
        }
        Ok(found)
    }

    /// This extension alongside the Go extension, without a resource, on each seed.
    fn dry_run(&self, theirs: &Registration) -> anyhow::Result<Step> {
        let change = self.for_dry_run();
        let title = "Run this controller as a dry run, which can't write";
        let verify =
            (differences_in_logs(), "On each seed the name of a pod and, after ten minutes, no line `dry run:`.");
        if let Some(ours) = self.ours() {
            if ours.has_resources() {
                bail!("{OURS} already serves resources, which a dry run would end: plan with another installation");
            }
            let (there, back) = (ours.patches(&change), ours.patches(&ours.as_before()));
            return Ok(self.patched(title, "2-dry-run", [&there, &back], verify));
        }
        let Some(chart) = self.chart else {
            bail!("{OURS} is not among the registrations: name the reference of its chart with --chart");
        };
        let document = new_registration(&theirs.form, chart, &change);
        let files: Vec<(String, Value)> = numbered("2-dry-run", document);
        let all =
            |verb: &str| files.iter().map(|(name, _)| format!("kubectl {verb} -f {}{name}", self.folder)).collect();
        let (commands, undo) = (all("apply"), all("delete"));
        let (verify, expect) = verify;
        Ok(Step { title, files, commands, verify, expect, undo })
    }

    fn switched_on(&self, theirs: &Registration) -> Step {
        let workers: Vec<Value> =
            self.worker_types.iter().map(|worker_type| json!({"kind": "Worker", "type": worker_type})).collect();
        let values = json!({"shadow": false, "disableControllers": [], "workers": {"types": self.worker_types}});
        let on = Change { resources: json!(workers), policy: Some(json!("OnDemand")), values };
        let ours = self.ours().cloned().unwrap_or_else(|| Registration::of(&theirs.form, OURS));
        let verify = "kubectl get leases --all-namespaces --field-selector \
                      metadata.name=gardener-extension-worker-leader-election";
        let (there, back) = (ours.patches(&on), ours.patches(&self.for_dry_run()));
        let verify = (verify.to_owned(), "On each seed, a pod of this controller holds the lease.");
        self.patched("Turn this controller on", "4-on", [&there, &back], verify)
    }

    /// The change of this extension's registration for a dry run.
    fn for_dry_run(&self) -> Change {
        let values = json!({"shadow": true, "workers": {"types": self.worker_types}});
        Change { resources: json!([]), policy: Some(json!("Always")), values }
    }

    fn ours(&self) -> Option<&Registration> {
        self.registrations.iter().find(|registration| registration.name == OURS)
    }

    /// A step that applies patches, and undoes them in reverse order.
    fn patched(&self, title: &'static str, file: &str, patches: [&[ObjectPatch]; 2], verify: Verification) -> Step {
        let [forward, back] = patches;
        let of = |suffix: &str, patches: &[ObjectPatch]| {
            let documents = patches.iter().map(|patch| patch.patch.clone()).collect();
            let files = numbered(&format!("{file}{suffix}"), documents);
            let commands = files.iter().zip(patches).map(|((name, _), patch)| {
                format!("kubectl patch {} --type merge --patch-file {}{name}", patch.target, self.folder)
            });
            let commands: Vec<String> = commands.collect();
            (files, commands)
        };
        let (mut files, commands) = of("", forward);
        let (undo_files, mut undo) = of("-undo", back);
        files.extend(undo_files);
        undo.reverse();
        let (verify, expect) = verify;
        Step { title, files, commands, verify, expect, undo }
    }
}

/// This extension's registration, as gardener-operator or the garden needs it.
fn new_registration(form: &Form, chart: &str, change: &Change) -> Vec<Value> {
    let metadata = json!({
        "name": OURS, "annotations": {"security.gardener.cloud/pod-security-enforce": "restricted"},
    });
    let helm = json!({"ociRepository": {"ref": chart}});
    match form {
        Form::Operator => {
            let extension =
                json!({"helm": helm, "policy": change.policy, "injectGardenKubeconfig": true, "values": change.values});
            let spec = json!({"resources": change.resources, "deployment": {"extension": extension}});
            vec![json!({
                "apiVersion": "operator.gardener.cloud/v1alpha1", "kind": "Extension", "metadata": metadata, "spec": spec,
            })]
        }
        Form::Garden { .. } => {
            let mut helm = helm;
            helm["values"] = change.values.clone();
            let deployment = json!({"policy": change.policy, "deploymentRefs": [{"name": OURS}]});
            vec![
                json!({
                    "apiVersion": "core.gardener.cloud/v1", "kind": "ControllerDeployment", "metadata": {"name": OURS},
                    "injectGardenKubeconfig": true, "helm": helm,
                }),
                json!({
                    "apiVersion": "core.gardener.cloud/v1beta1", "kind": "ControllerRegistration", "metadata": metadata,
                    "spec": {"resources": change.resources, "deployment": deployment},
                }),
            ]
        }
    }
}

/// Names for the documents of a step: `2-dry-run.yaml`, or `2-dry-run-1.yaml` and so on.
fn numbered(file: &str, documents: Vec<Value>) -> Vec<(String, Value)> {
    let is_only = documents.len() == 1;
    let name = |number: usize| if is_only { format!("{file}.yaml") } else { format!("{file}-{number}.yaml") };
    documents.into_iter().enumerate().map(|(number, document)| (name(number + 1), document)).collect()
}

//! Every command that reads objects of a cluster accepts the same object names and kubectl's flags.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::binary::{Outcome, command, example, outcome, run};

pub(crate) const NAMESPACE: &str = "shoot--garden--prod";
const ZONE_1: &str = "shoot--garden--prod-workers-z1";

/// Every command that reads objects, without a name.
pub(crate) const COMMANDS: [&[&str]; 5] = [&["diagnose"], &["why"], &["explain"], &["preview"], &["takeover", "check"]];

/// An API server with objects, which records its requests.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) objects: Arc<Mutex<Vec<Value>>>,
    requests: Arc<Mutex<Vec<String>>>,
    groups: &'static [&'static str],
}

impl Server {
    pub(crate) fn seed(objects: Vec<Value>) -> Self {
        Self::new(objects, &["extensions.gardener.cloud"])
    }

    fn new(objects: Vec<Value>, groups: &'static [&'static str]) -> Self {
        Self { objects: Arc::new(Mutex::new(objects)), requests: Arc::default(), groups }
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.requests.lock().unwrap())
    }

    /// Serves the objects and returns the kubeconfig.
    pub(crate) fn serve(&self) -> tempfile::NamedTempFile {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let kubeconfig = crate::refused::kubeconfig(listener.local_addr().unwrap().port());
        let server = self.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = server.clone();
                thread::spawn(move || server.respond_to_all(stream));
            }
        });
        kubeconfig
    }

    fn respond_to_all(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut stream, mut path, mut line, mut length) = (stream, String::new(), String::new(), 0);
        while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
            if let Some(bytes) = line.to_lowercase().strip_prefix("content-length: ") {
                length = bytes.trim().parse().unwrap();
            }
            if let Some(requested) = line.strip_prefix("GET ").or_else(|| line.strip_prefix("POST ")) {
                path = requested.split(' ').next().unwrap().to_owned();
            }
            if line == "\r\n" {
                reader.read_exact(&mut vec![0; std::mem::take(&mut length)]).unwrap();
                self.requests.lock().unwrap().push(path.clone());
                let (status, body) = self.result(&path);
                let (body, head) = (body.to_string(), format!("HTTP/1.1 {status}\r\nContent-Type: application/json"));
                let _ = write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            }
            line.clear();
        }
    }

    fn result(&self, path: &str) -> (&'static str, Value) {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        if path == "/apis" {
            let groups: Vec<Value> = self.groups.iter().map(|name| json!({"name": name, "versions": []})).collect();
            return ("200 OK", json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}));
        }
        if path.ends_with("selfsubjectaccessreviews") {
            return ("201 Created", json!({"metadata": {}, "spec": {}, "status": {"allowed": true}}));
        }
        let missing =
            ("404 Not Found", json!({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}));
        let group = path.strip_prefix("/apis/").and_then(|path| path.split('/').next()).unwrap_or_default();
        let is_served = group != "extensions.gardener.cloud" || self.groups.contains(&group);
        let steps: Vec<&str> = path.split('/').skip_while(|step| !step.starts_with('v')).skip(1).collect();
        let (namespace, plural, name) = match steps[..] {
            ["namespaces", namespace, plural] => (Some(namespace), plural, None),
            ["namespaces", namespace, plural, name] => (Some(namespace), plural, Some(name)),
            [plural, name] => (None, plural, Some(name)),
            [plural] => (None, plural, None),
            _ => return missing,
        };
        let objects = self.objects.lock().unwrap();
        let is_it = |object: &&Value| {
            let metadata = &object["metadata"];
            let kind = object["kind"].as_str().unwrap().to_lowercase();
            let plural_of = if kind.ends_with("class") { format!("{kind}es") } else { format!("{kind}s") };
            let has_label =
                query.split('&').find_map(|part| part.strip_prefix("labelSelector=")).is_none_or(|labels| {
                    let (key, value) = labels.split_once("%3D").unwrap();
                    metadata["labels"][key] == value
                });
            plural_of == plural
                && has_label
                && namespace.is_none_or(|namespace| metadata["namespace"] == namespace)
                && name.is_none_or(|name| metadata["name"] == name)
                && query.split("fieldSelector=metadata.name%3D").nth(1).is_none_or(|name| metadata["name"] == name)
        };
        let found: Vec<&Value> = objects.iter().filter(is_it).collect();
        match (name, found.first()) {
            _ if !is_served => missing,
            (Some(_), None) => missing,
            (Some(_), Some(found)) => ("200 OK", (*found).clone()),
            (None, _) => (
                "200 OK",
                json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": found}),
            ),
        }
    }
}

/// The objects of the example as stored in a seed, with machines.
pub(crate) fn seed_objects() -> Vec<Value> {
    let rendered = outcome(command(&["render", "test/cli/azure.yaml", "-o", "json"]), "").json();
    let mut objects = rendered["items"].as_array().unwrap().clone();
    let documents = gardener_extension_worker::reader::objects::objects(&example(&[])).unwrap();
    objects.retain(|object| object["kind"] != "Secret");
    let is_rendered = |kind: &Value| ["MachineDeployment", "MachineClass"].iter().any(|known| kind == known);
    objects.extend(documents.into_iter().filter(|object| !is_rendered(&object["kind"])));
    objects.push(json!({
        "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "Machine",
        "metadata": {"namespace": NAMESPACE, "name": format!("{ZONE_1}-5f7b9-x2x4k"),
            "labels": {"name": ZONE_1, "node": "node-7"}},
        "spec": {"class": {"name": "any"}}, "status": {"currentStatus": {"phase": "Running"}},
    }));
    for object in &mut objects {
        object["metadata"]["resourceVersion"] = json!("1");
        if object["kind"] == "Worker" {
            object["metadata"]["labels"] = json!({"team": "blue"});
        }
    }
    objects
}

fn on_server(server: &tempfile::NamedTempFile, words: &[&str]) -> Outcome {
    outcome(command(&[words, &["--kubeconfig", server.path().to_str().unwrap()]].concat()), "")
}

#[track_caller]
fn assert_completed(words: &[&str], output: &Outcome, expected: &str) {
    assert!(![2, 3].contains(&output.code), "{words:?}: {output:?}");
    assert!(output.stdout.contains(expected), "{words:?} does not show {expected}: {output:?}");
}

#[test]
fn every_command_resolves_every_name() {
    let seed = Server::seed(seed_objects());
    let kubeconfig = seed.serve();
    let machine = format!("{ZONE_1}-5f7b9-x2x4k");
    for words in COMMANDS {
        for name in [
            "prod",
            "garden/prod",
            "garden-garden/prod",
            NAMESPACE,
            "shoot--garden--prod/prod",
            "shoot--garden--prod/workers",
            "workers",
            ZONE_1,
            "shoot--garden--prod/shoot--garden--prod-workers-z1",
            &machine,
            "node-7",
        ] {
            let words = [words, &[name]].concat();
            assert_completed(&words, &on_server(&kubeconfig, &words), "prod");
        }
        let unknown = on_server(&kubeconfig, &[words, &["no-such-name"]].concat());
        assert_eq!(unknown.code, 3, "{words:?}: {unknown:?}");
        assert!(unknown.stderr.contains("there is \"shoot--garden--prod\""), "{words:?}: {unknown:?}");
    }
}

#[test]
fn every_command_names_objects_in_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("seed.json");
    let list = json!({"kind": "List", "apiVersion": "v1", "items": seed_objects()});
    std::fs::write(&file, list.to_string()).unwrap();
    let file = file.to_str().unwrap();
    for words in [&["diagnose"][..], &["why"], &["explain"], &["takeover", "check"]] {
        for name in ["prod", "garden/prod", NAMESPACE, "shoot--garden--prod/prod", "workers", ZONE_1, "node-7"] {
            let words = [words, &[name, "-f", file]].concat();
            assert_completed(&words, &run(&words), "prod");
        }
        let words = [words, &["-f", "-", "-n", NAMESPACE]].concat();
        assert_completed(&words, &outcome(command(&words), &list.to_string()), "prod");
        let none = run(&[&words[..1], &["-f", file, "-n", "none"]].concat());
        assert_ne!(none.code, 0, "{words:?}: {none:?}");
    }
}

#[test]
fn pool_limits_the_result() {
    let kubeconfig = Server::seed(seed_objects()).serve();
    for words in [&["diagnose"][..], &["why"], &["explain"], &["preview"]] {
        let output = on_server(&kubeconfig, &[words, &["shoot--garden--prod/workers", "-o", "json"]].concat());
        assert!(output.stdout.contains("workers-z1"), "{words:?}: {output:?}");
        assert!(!output.stdout.contains("database-z2"), "{words:?}: {output:?}");
    }
}

#[test]
fn an_ambiguous_name_is_refused_with_its_meanings() {
    let mut objects = seed_objects();
    let mut other = objects.iter().find(|object| object["kind"] == "Worker").unwrap().clone();
    other["metadata"]["namespace"] = json!("shoot--other--prod");
    objects.push(other);
    let kubeconfig = Server::seed(objects).serve();
    for words in COMMANDS {
        let output = on_server(&kubeconfig, &[words, &["prod"]].concat());
        assert_eq!(output.code, 3, "{words:?}: {output:?}");
        for meaning in ["shoot--garden--prod/prod", "shoot--other--prod/prod"] {
            assert!(output.stderr.contains(meaning), "{words:?}: {output:?}");
        }
        let named = on_server(&kubeconfig, &[words, &["prod", "-n", NAMESPACE]].concat());
        assert_completed(words, &named, "prod");
    }
}

/// kubectl's flags, each with a text in the resulting output.
const FLAGS: [(&[&str], &str); 11] = [
    (&["-n", NAMESPACE], NAMESPACE),
    (&["--namespace", NAMESPACE], NAMESPACE),
    (&["-A"], "prod"),
    (&["--all-namespaces"], "prod"),
    (&["-A", "--context", "a"], "prod"),
    (&["-A", "-l", "team=blue"], "prod"),
    (&["-n", NAMESPACE, "-o", "table"], "prod"),
    (&["-n", NAMESPACE, "-o", "wide"], "prod"),
    (&["-n", NAMESPACE, "-o", "json"], "{\n  \""),
    (&["-n", NAMESPACE, "-o", "yaml"], "schema: "),
    (&["-n", NAMESPACE, "--color", "always"], "\u{1b}["),
];

#[test]
fn every_command_has_the_flags_of_kubectl() {
    let kubeconfig = Server::seed(seed_objects()).serve();
    for words in COMMANDS {
        for (flags, expected) in FLAGS {
            let words = [words, flags].concat();
            assert_completed(&words, &on_server(&kubeconfig, &words), expected);
        }
        let names = on_server(&kubeconfig, &[words, &["-A", "-o", "name"]].concat());
        let is_name = |line: &str| line.starts_with(NAMESPACE) && !line.contains(' ');
        assert!(names.stdout.lines().all(is_name), "{words:?}: {names:?}");
        let others = on_server(&kubeconfig, &[words, &["-A", "-l", "team=red"]].concat());
        assert!(others.code == 3 || !others.stdout.contains(NAMESPACE), "{words:?}: {others:?}");
        let plain = on_server(&kubeconfig, &[words, &["-n", NAMESPACE, "--color", "never"]].concat());
        assert!(!plain.stdout.contains('\u{1b}'), "{words:?}: {plain:?}");
        for unset in ["-w", "--watch", "-f -", "--filename=-"] {
            let help = run(&[words, &["--help"]].concat()).stdout;
            let flag = unset.split([' ', '=']).next().unwrap();
            assert!(help.contains(flag), "{words:?} has no {flag}");
        }
    }
}

#[test]
fn watch_prints_each_change() {
    let seed = Server::seed(seed_objects());
    let kubeconfig = seed.serve();
    for words in COMMANDS {
        let path = kubeconfig.path().to_str().unwrap();
        let mut watching = command(&[words, &["-n", NAMESPACE, "-w", "-o", "json", "--kubeconfig", path]].concat());
        let mut watching = watching.stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
        let mut documents = 0;
        seed.requests();
        for line in lines.by_ref().map_while(Result::ok) {
            documents += usize::from(line == "}");
            if documents == 1 && line == "}" {
                let mut objects = seed.objects.lock().unwrap();
                // Every command prints whether this object exists.
                objects.retain(|object| object["metadata"]["name"] != "shoot--garden--prod-workers-z2");
            }
            if documents == 2 {
                break;
            }
        }
        watching.kill().unwrap();
        watching.wait().unwrap();
        assert_eq!(documents, 2, "{words:?}");
        *seed.objects.lock().unwrap() = seed_objects();
    }
}

#[test]
fn a_garden_names_the_seed_and_the_namespace() {
    let shoot = json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
        "metadata": {"namespace": "garden-garden", "name": "prod"},
        "spec": {"seedName": "eu-1"}, "status": {"technicalID": NAMESPACE},
    });
    let kubeconfig = Server::new(vec![shoot], &["core.gardener.cloud"]).serve();
    for words in COMMANDS {
        for name in ["prod", "garden/prod", "garden-garden/prod", NAMESPACE, "shoot--garden--prod/prod"] {
            let output = on_server(&kubeconfig, &[words, &[name]].concat());
            assert_eq!(output.code, 3, "{words:?} {name}: {output:?}");
            for part in ["garden-garden/prod", "seed eu-1", NAMESPACE, "--kubeconfig"] {
                assert!(output.stderr.contains(part), "{words:?} {name}: {output:?}");
            }
        }
        let unknown = on_server(&kubeconfig, &[words, &["none/none"]].concat());
        assert!(unknown.stderr.contains("no Shoot \"none/none\""), "{words:?}: {unknown:?}");
    }
}

#[test]
fn content_decides_what_a_file_is() {
    let shoots = "example/how-to/shoot.yaml";
    let plain = run(&["explain", shoots, "--profiles", "example/cloudprofiles/azure.yaml"]).succeeded();
    let flagged = run(&["explain", "--shoot", shoots, "--profiles", "example/cloudprofiles/azure.yaml"]).succeeded();
    assert_eq!(plain.stdout, flagged.stdout);
    assert!(run(&["diagnose", "test/cli/diagnose.yaml"]).stdout.contains("Worker shoot--garden--prod/prod"));
    let shoot = json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"namespace": "garden-a", "name": "web"},
        "spec": {"seedName": "eu-1"}, "status": {"technicalID": "shoot--a--web"},
    });
    let output = outcome(command(&["diagnose", "-"]), &shoot.to_string());
    assert_eq!(output.code, 3, "{output:?}");
    assert!(output.stderr.contains("shoot--a--web of seed eu-1"), "{output:?}");
}

#[test]
fn old_spellings_warn() {
    let kubeconfig = Server::seed(seed_objects()).serve();
    for (words, warning) in [
        (&["explain", "--live", NAMESPACE][..], "--live is not needed"),
        (&["diagnose", "--live", NAMESPACE], "--live is not needed"),
        (&["preview", "--live", "-a"], "-a is called --all now"),
        (&["takeover", "check", "-a"], "-a is called --all now"),
    ] {
        let output = on_server(&kubeconfig, words);
        assert_completed(words, &output, "prod");
        assert!(output.stderr.contains(warning), "{words:?}: {output:?}");
    }
}

#[test]
fn kubectl_completes_names_of_the_cluster() {
    let kubeconfig = Server::seed(seed_objects()).serve();
    let folder = tempfile::tempdir().unwrap();
    let plugin = folder.path().join("kubectl_complete-worker");
    std::os::unix::fs::symlink(test_support::program::command().get_program(), &plugin).unwrap();
    let completed = |words: &[&str]| {
        let path = kubeconfig.path().to_str().unwrap();
        let (last, before) = words.split_last().unwrap();
        let mut command = std::process::Command::new(&plugin);
        command.args(before).args(["--kubeconfig", path, last]);
        outcome(command, "").succeeded().stdout
    };
    assert_eq!(completed(&["diagnose", ""]), "garden/prod\nshoot--garden--prod\n:0\n");
    assert_eq!(completed(&["why", "shoot--garden--prod/w"]), "shoot--garden--prod/workers\n:0\n");
    assert_eq!(completed(&["takeover", "check", "gar"]), "garden/prod\n:0\n");
    assert!(completed(&["diag"]).starts_with("diagnose\n"));
    assert!(completed(&["explain", "--all-n"]).starts_with("--all-namespaces\n:4\n"));
    let mut unreachable = std::process::Command::new(&plugin);
    unreachable.args(["diagnose", "--kubeconfig", "no-such-file", ""]);
    assert_eq!(outcome(unreachable, "").succeeded().stdout, ":0\n");
}

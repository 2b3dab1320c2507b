//! `cloudprofile versions --live` and `images unused --live`: a garden has no Workers, so their images are unknown.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

use gardener_extension_worker::api::gotext::yaml;
use serde_json::{Value, json};

use crate::binary::run;

const PROFILE: &str = "example/versions/cloudprofile.yaml";
const WORKERS: &str = "example/images/landscape.yaml";
const AT: &str = "--at=2026-02-01";

/// The API server of a garden with a profile and one Shoot. Two versions are unused.
#[derive(Clone)]
struct Garden(Vec<Value>);

impl Garden {
    fn new() -> Self {
        let read =
            |path: &str| yaml::documents(&fs::read_to_string(test_support::repository().join(path)).unwrap()).unwrap();
        Self([read(PROFILE), read("example/versions/shoots.yaml").split_off(2)].concat())
    }

    /// Starts the server and returns its kubeconfig.
    fn serve(self) -> tempfile::NamedTempFile {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let kubeconfig = crate::refused::kubeconfig(listener.local_addr().unwrap().port());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let garden = self.clone();
                thread::spawn(move || garden.respond_to_all(stream));
            }
        });
        kubeconfig
    }

    fn respond_to_all(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut stream, mut path, mut line) = (stream, String::new(), String::new());
        while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
            if let Some(requested) = line.strip_prefix("GET ") {
                path = requested.split([' ', '?']).next().unwrap().to_owned();
            }
            if line == "\r\n" {
                let body = self.result(&path).to_string();
                let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json";
                write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
            }
            line.clear();
        }
    }

    fn result(&self, path: &str) -> Value {
        if path == "/apis" {
            let group = json!({"name": "core.gardener.cloud", "versions": []});
            return json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]});
        }
        let plural = path.rsplit('/').next().unwrap();
        let is_of_kind = |object: &&Value| format!("{}s", object["kind"].as_str().unwrap().to_lowercase()) == plural;
        let items: Vec<&Value> = self.0.iter().filter(is_of_kind).collect();
        json!({"kind": "List", "apiVersion": "core.gardener.cloud/v1beta1", "metadata": {}, "items": items})
    }
}

/// The evidence of both commands, each with whether the image versions can be removed.
fn results(kubeconfig: &str, more: [&[&str]; 2]) -> [(Value, Vec<String>); 2] {
    let live = ["--live", "--kubeconfig", kubeconfig, AT, "-o", "json"];
    let versions = run(&[&["cloudprofile", "versions"], &live[..], more[0]].concat()).json();
    let unused = run(&[&["images", "unused", PROFILE], &live[..], more[1]].concat()).json();
    let of_versions = versions["profiles"][0]["versions"].as_array().unwrap().iter();
    let of_versions = of_versions.filter(|version| !version["image"].is_null());
    let of_versions = of_versions.map(|version| version["removable"].as_str().unwrap().to_owned()).collect();
    let is_unused = |version: &Value| version["users"] == 0 && version["kept"].is_null();
    let of_unused = unused["versions"].as_array().unwrap().iter();
    let of_unused = of_unused.map(|version| if is_unused(version) { "yes" } else { "no" }.to_owned()).collect();
    [(versions["evidence"].clone(), of_versions), (unused["evidence"].clone(), of_unused)]
}

fn names_workers(evidence: &Value) -> bool {
    evidence["notGiven"].as_array().unwrap().iter().any(|missing| missing["what"] == "Workers")
}

#[test]
fn images_are_unknown_without_workers() {
    let garden = Garden::new().serve();
    for (evidence, removable) in results(garden.path().to_str().unwrap(), [&[], &[]]) {
        assert!(names_workers(&evidence), "{evidence}");
        assert!(!removable.is_empty() && !removable.contains(&"yes".to_owned()), "{removable:?}");
    }
}

#[test]
fn finds_images_with_workers() {
    let garden = Garden::new().serve();
    let more: [&[&str]; 2] = [&["--shoots", WORKERS], &["--users", WORKERS]];
    for (evidence, removable) in results(garden.path().to_str().unwrap(), more) {
        assert!(!names_workers(&evidence), "{evidence}");
        assert!(removable.contains(&"yes".to_owned()), "{removable:?}");
    }
}

//! Concurrent updates of one lock file by several processes lose no entries.

use std::fs;
use std::process::Stdio;

use serde_json::json;

use crate::binary::command;

const PROCESSES: usize = 6;
const ROUNDS: usize = 5;

#[test]
fn simultaneous_updates_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    for number in 0..PROCESSES {
        let image = json!({"ImageId": format!("ami-0000000{number}"), "Name": format!("node{number}-1.31-v20251106"),
            "State": "available", "Architecture": "x86_64", "OwnerId": "602401143452",
            "CreationDate": "2025-11-06T00:00:00Z"});
        fs::write(path(&format!("images{number}.json")), json!({"Images": [image]}).to_string()).unwrap();
        let lookup = json!({"apiVersion": "gardener-extension-worker/v1alpha1", "kind": "ImageLookup",
            "metadata": {"name": format!("node{number}")}, "spec": {"provider": "aws", "image": format!("node{number}"),
            "imagePrefix": format!("node{number}"), "lookupFormat": "-{{.K8sMinor}}-v*", "arch": ["amd64"],
            "versions": ">=1.30", "owners": ["602401143452"]}});
        fs::write(path(&format!("lookup{number}.yaml")), lookup.to_string()).unwrap();
    }
    for round in 0..ROUNDS {
        let lock = path(&format!("{round}.lock"));
        let processes: Vec<_> = (0..PROCESSES)
            .map(|number| {
                let source = format!("--source=us-east-1={}", path(&format!("images{number}.json")));
                let lookups = path(&format!("lookup{number}.yaml"));
                let mut lock = command(&["images", "lock", &source, "--lookups", &lookups, "--lock", &lock]);
                lock.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
            })
            .collect();
        for process in processes {
            let output = process.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
        }
        let text = fs::read_to_string(&lock).unwrap();
        for number in 0..PROCESSES {
            assert!(text.contains(&format!("ami-0000000{number}")), "round {round}: an update is lost: {text}");
        }
    }
}

//! The rooms of `src/` and their order: a room uses only rooms above it, and pure rooms know no client, runtime or clock.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::{Path, PathBuf};

/// Rooms from the top of the road to its end. A room may use itself and the rooms before it.
const ROOMS: &[&str] = &[
    "api",
    "capabilities",
    "cloud_profile",
    "pool",
    "provider",
    "offer",
    "worker",
    "cloud",
    "explain",
    "preview",
    "runtime",
    "admission",
    "sidecar",
    "cli",
];

/// Places without clients, runtimes and clocks.
const PURE: &[&str] = &[
    "admission/cloud_profile.rs",
    "admission/flavors.rs",
    "admission/image.rs",
    "admission/namespaced.rs",
    "admission/profile_reference.rs",
    "admission/refusal.rs",
    "admission/shoot.rs",
    "admission/subject.rs",
    "api",
    "capabilities",
    "cloud_profile",
    "offer",
    "pool",
    "preview",
    "provider",
    "explain",
    "sidecar/container.rs",
    "sidecar/injection.rs",
    "sidecar/surroundings.rs",
    "worker/changes.rs",
    "worker/class_inputs",
    "worker/conditions.rs",
    "worker/cleanup.rs",
    "worker/decode.rs",
    "worker/deployment.rs",
    "worker/difference.rs",
    "worker/digest.rs",
    "worker/in_place.rs",
    "worker/live.rs",
    "worker/machine_state.rs",
    "worker/needed_classes.rs",
    "worker/operation.rs",
    "worker/outcome.rs",
    "worker/plan.rs",
    "worker/progress",
    "worker/remaining.rs",
    "worker/report.rs",
    "worker/roll.rs",
    "worker/transitions.rs",
];

/// What pure places must not mention.
const IMPURE: &[&str] =
    &["kube::", "tokio::", "std::fs", "std::net", "std::env", "Timestamp::now", "SystemTime", "Instant::now"];

fn sources() -> Vec<(String, String)> {
    fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { walk(&path, files) } else { files.push(path) }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    walk(&root, &mut files);
    let named = files.into_iter().map(|path| {
        let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        (name, code_of(&fs::read_to_string(&path).unwrap()))
    });
    named.collect()
}

/// The source without comments and without its tests, which stand last.
fn code_of(source: &str) -> String {
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether the code mentions a path, and not one that only begins like it.
fn mentions(code: &str, path: &str) -> bool {
    let goes_on = |rest: &str| rest.starts_with(|next: char| next.is_alphanumeric() || next == '_');
    code.match_indices(path).any(|(start, _)| !goes_on(&code[start + path.len()..]))
}

fn room_of(file: &str) -> Option<usize> {
    ROOMS.iter().position(|room| file.strip_prefix(room).is_some_and(|rest| rest.starts_with('/') || rest == ".rs"))
}

#[test]
fn rooms_use_only_rooms_above_them() {
    let sources = sources();
    let mut seen = 0;
    for (file, code) in &sources {
        let Some(room) = room_of(file) else { continue };
        seen += 1;
        for below in &ROOMS[room + 1..] {
            let mention = format!("crate::{below}");
            assert!(!mentions(code, &mention), "src/{file} uses {mention}, a room below its own");
        }
    }
    assert!(seen > 50, "only {seen} files were looked at");
}

#[test]
fn every_file_is_in_a_room() {
    for (file, _) in sources() {
        assert!(room_of(&file).is_some() || ["lib.rs", "main.rs"].contains(&file.as_str()), "src/{file} is in no room");
    }
}

#[test]
fn pure_places_know_no_client_runtime_or_clock() {
    for (file, code) in sources() {
        if !PURE.iter().any(|place| file.starts_with(place)) {
            continue;
        }
        for word in IMPURE {
            assert!(!code.contains(word), "src/{file} mentions {word}");
        }
    }
}

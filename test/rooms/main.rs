//! The crates and rooms of `src/`: pure crates depend on no client or runtime, a room uses only the rooms above it,
//! pure places use no clock, no files of a room use each other in a circle, and functions fit on a screen.

#![allow(clippy::unwrap_used, reason = "a test")]

mod functions;
mod modules;
mod names;
mod sources;

use std::collections::BTreeSet;
use std::process::Command;

use modules::Modules;
use sources::{Source, all};

/// The crates below `src/`, with their rooms from the first to the last. A room may use itself and the rooms before it.
/// Each `Cargo.toml` defines which other crates a crate may use.
const CRATES: &[(&str, &[&str])] = &[
    ("wire", &["api", "capabilities"]),
    ("decisions", &["pool", "provider", "worker"]),
    ("profiles", &["cloud_profile", "versions", "shoot", "resolved_profile", "images"]),
    ("explanations", &["explain", "preview", "diagnose"]),
    ("runtime", &["cloud", "process", "reader", "cluster", "webhook"]),
    ("controllers", &["image_controller", "controller"]),
    ("program", &["admission", "sidecar", "cli", "fuzzing", "simulation"]),
];

/// Crates that must not depend on a client or a runtime, directly or through another crate. The same applies to a
/// provider that depends on them (`example/pebble`).
const PURE_CRATES: &[&str] = &["wire", "decisions", "profiles", "explanations"];
/// Crates that have a client or a runtime.
const IMPURE_CRATES: &[&str] = &["kube", "tokio", "hyper", "reqwest", "axum"];

/// Places without files, network, environment and clocks: pure crates, and pure files in other crates.
const PURE: &[&str] = &[
    "wire/",
    "decisions/",
    "profiles/",
    "explanations/",
    "program/admission/cloud_profile.rs",
    "program/admission/expirations.rs",
    "program/admission/flavors.rs",
    "program/admission/image.rs",
    "program/admission/namespaced.rs",
    "program/admission/node_warnings.rs",
    "program/admission/pool_warnings.rs",
    "program/admission/profile_reference.rs",
    "program/admission/refusal.rs",
    "program/admission/shoot.rs",
    "program/admission/subject.rs",
    "program/admission/zone_by_zone.rs",
    "runtime/process/shard.rs",
    "program/sidecar/container.rs",
    "program/sidecar/injection.rs",
    "program/sidecar/surroundings.rs",
];

/// Terms that pure places must not mention.
const IMPURE: &[&str] =
    &["kube::", "tokio::", "std::fs", "std::net", "std::env", "Timestamp::now", "SystemTime", "Instant::now"];

/// Whether the code mentions a path, and not only a longer name with this prefix.
fn mentions(code: &str, path: &str) -> bool {
    let continues = |rest: &str| rest.starts_with(|next: char| next.is_alphanumeric() || next == '_');
    code.match_indices(path).any(|(start, _)| !continues(&code[start + path.len()..]))
}

/// The rooms of a file's crate, and the index of the file's room.
fn room_of(file: &str) -> Option<(&'static [&'static str], usize)> {
    let (folder, rest) = file.split_once('/')?;
    let (_, rooms) = CRATES.iter().find(|(name, _)| *name == folder)?;
    let room = rest.split(['/', '.']).next()?;
    Some((rooms, rooms.iter().position(|known| *known == room)?))
}

#[test]
fn rooms_use_only_rooms_above_them() {
    let sources = all();
    let mut seen = 0;
    for Source { file, code } in &sources {
        let Some((rooms, room)) = room_of(file) else { continue };
        seen += 1;
        for below in &rooms[room + 1..] {
            let mention = format!("crate::{below}");
            assert!(!mentions(code, &mention), "src/{file} uses {mention}, a room below its own");
        }
    }
    assert!(seen > 50, "only {seen} files were read");
}

#[test]
fn pure_crates_depend_on_no_client_or_runtime() {
    let own = PURE_CRATES.iter().map(|name| format!("gardener-extension-worker-{name}"));
    for package in own.chain(["pebble".to_owned()]) {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let tree = Command::new(cargo)
            .args(["tree", "--locked", "--offline", "--edges", "normal", "--prefix", "none", "--package", &package])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .unwrap();
        assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
        let tree = String::from_utf8(tree.stdout).unwrap();
        let crates: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
        assert!(crates.contains("serde"), "{tree}");
        for impure in IMPURE_CRATES {
            assert!(!crates.contains(impure), "{package} depends on {impure}");
        }
    }
}

/// Ways to print that bypass `process/output.rs`, which escapes everything.
const UNESCAPED: &[&str] = &["println!", "print!", "io::stdout", "io::stderr", "anstream::stdout", "anstream::stderr"];

#[test]
fn one_file_writes_to_stdout_and_stderr() {
    for Source { file, code } in all().iter().filter(|source| source.file != "runtime/process/output.rs") {
        for word in UNESCAPED {
            assert!(!code.contains(word), "src/{file} mentions {word}");
        }
    }
}

#[test]
fn every_file_is_in_a_room() {
    for Source { file, .. } in all() {
        let is_root = file.ends_with("/Cargo.toml") || file.ends_with("/lib.rs") || file == "program/main.rs";
        assert!(room_of(&file).is_some() || is_root, "src/{file} is in no room");
    }
}

#[test]
fn pure_rooms_use_no_client_runtime_or_clock() {
    let sources = all();
    for location in PURE {
        let mut of_location = sources.iter().filter(|source| source.file.starts_with(location)).peekable();
        assert!(of_location.peek().is_some(), "there is no src/{location}");
        for Source { file, code } in of_location {
            for word in IMPURE {
                assert!(!code.contains(word), "src/{file} mentions {word}");
            }
        }
    }
}

#[test]
fn files_of_a_room_do_not_use_each_other_in_a_circle() {
    let sources = all();
    let of_crate = |name: &str| -> Vec<Source> {
        let prefix = format!("{name}/");
        let inside = |source: &Source| Some((source.file.strip_prefix(&prefix)?.to_owned(), source.code.clone()));
        sources.iter().filter_map(inside).map(|(file, code)| Source { file, code }).collect()
    };
    let cycles: Vec<Vec<String>> = CRATES.iter().flat_map(|(name, _)| Modules::of(&of_crate(name)).cycles()).collect();
    let cycles: Vec<String> = cycles.iter().map(|cycle| format!("{} → {}", cycle.join(" → "), cycle[0])).collect();
    assert!(cycles.is_empty(), "cycles:\n{}", cycles.join("\n"));
}

/// Number of lines that fit on a screen.
const SCREEN: usize = 60;
/// Rooms in which every function fits on a screen.
const SHORT: &[&str] = &["runtime/cluster/", "controllers/controller/", "decisions/worker/"];

#[test]
fn functions_fit_on_a_screen() {
    let mut long = Vec::new();
    let mut read = 0;
    for Source { file, code } in all() {
        if SHORT.iter().any(|room| file.starts_with(room)) {
            let functions = functions::functions(&code);
            read += functions.len();
            let too_long = functions.into_iter().filter(|(_, lines)| *lines > SCREEN);
            long.extend(too_long.map(|(name, _)| format!("{file}: {name}")));
        }
    }
    assert!(read > 500, "only {read} functions were found");
    assert!(long.is_empty(), "functions of more than {SCREEN} lines: {long:?}");
}

#[test]
fn names_are_terms_of_the_field() {
    let found = names::other_terms();
    assert!(found.is_empty(), "{} names:\n{}", found.len(), found.join("\n"));
}

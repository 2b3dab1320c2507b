//! The rooms of `src/`: a room uses only rooms above it, pure rooms know no client, runtime or clock, no files of a room use
//! each other in a circle, and functions fit on a screen.

#![allow(clippy::unwrap_used, reason = "a test")]

mod functions;
mod modules;
mod sources;

use modules::Modules;
use sources::{Source, all};

/// Rooms from the first to the last. A room may use itself and the rooms before it.
const ROOMS: &[&str] = &[
    "api",
    "capabilities",
    "cloud_profile",
    "versions",
    "pool",
    "shoot",
    "provider",
    "offer",
    "images",
    "worker",
    "cloud",
    "explain",
    "preview",
    "diagnose",
    "process",
    "reader",
    "cluster",
    "webhook",
    "image_controller",
    "controller",
    "admission",
    "sidecar",
    "cli",
    "fuzzing",
    "simulation",
];

/// Rooms without clients, runtimes and clocks, and files like that in others.
const PURE: &[&str] = &[
    "api/",
    "capabilities/",
    "cloud_profile/",
    "diagnose/",
    "explain/",
    "images/",
    "offer/",
    "pool/",
    "preview/",
    "provider/",
    "shoot/",
    "versions/",
    "worker/",
    "admission/cloud_profile.rs",
    "admission/expirations.rs",
    "admission/flavors.rs",
    "admission/image.rs",
    "admission/namespaced.rs",
    "admission/node_warnings.rs",
    "admission/pool_warnings.rs",
    "admission/profile_reference.rs",
    "admission/refusal.rs",
    "admission/shoot.rs",
    "admission/subject.rs",
    "process/shard.rs",
    "sidecar/container.rs",
    "sidecar/injection.rs",
    "sidecar/surroundings.rs",
];

/// What pure places must not mention.
const IMPURE: &[&str] =
    &["kube::", "tokio::", "std::fs", "std::net", "std::env", "Timestamp::now", "SystemTime", "Instant::now"];

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
    let sources = all();
    let mut seen = 0;
    for Source { file, code } in &sources {
        let Some(room) = room_of(file) else { continue };
        seen += 1;
        for below in &ROOMS[room + 1..] {
            let mention = format!("crate::{below}");
            assert!(!mentions(code, &mention), "src/{file} uses {mention}, a room below its own");
        }
    }
    assert!(seen > 50, "only {seen} files were read");
}

/// What would be printed past `process/output.rs`, where everything is escaped.
const UNESCAPED: &[&str] = &["println!", "print!", "io::stdout", "io::stderr", "anstream::stdout", "anstream::stderr"];

#[test]
fn one_file_writes_to_stdout_and_stderr() {
    for Source { file, code } in all().iter().filter(|source| source.file != "process/output.rs") {
        for word in UNESCAPED {
            assert!(!code.contains(word), "src/{file} mentions {word}");
        }
    }
}

#[test]
fn every_file_is_in_a_room() {
    for Source { file, .. } in all() {
        assert!(room_of(&file).is_some() || ["lib.rs", "main.rs"].contains(&file.as_str()), "src/{file} is in no room");
    }
}

#[test]
fn pure_rooms_know_no_client_runtime_or_clock() {
    let sources = all();
    for place in PURE {
        let mut of_place = sources.iter().filter(|source| source.file.starts_with(place)).peekable();
        assert!(of_place.peek().is_some(), "there is no src/{place}");
        for Source { file, code } in of_place {
            for word in IMPURE {
                assert!(!code.contains(word), "src/{file} mentions {word}");
            }
        }
    }
}

#[test]
fn files_of_a_room_do_not_use_each_other_in_a_circle() {
    let cycles = Modules::of(&all()).cycles();
    let cycles: Vec<String> = cycles.iter().map(|cycle| format!("{} → {}", cycle.join(" → "), cycle[0])).collect();
    assert!(cycles.is_empty(), "cycles:\n{}", cycles.join("\n"));
}

/// Lines that fit on a screen.
const SCREEN: usize = 60;
/// Rooms whose functions do.
const SHORT: &[&str] = &["cluster/", "controller/", "worker/"];

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

//! What each decoder of texts from outside costs in memory, per byte of its input: little that is written must not become
//! much that is held. Every decoder gets the same hostile shapes, inside of the members that it reads.
//!
//! `cargo test --test memory` prints the table of docs/reliability.md.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, and its report is its output")]

use std::hint::black_box;
use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use gardener_extension_worker::api::gardener::{CloudProfile, Cluster, Shoot, Worker};
use gardener_extension_worker::api::gotext::json::decode_lenient;
use gardener_extension_worker::api::machine::{Machine, MachineDeployment};
use gardener_extension_worker::worker::machine_state::MachineState;
use peak_alloc::PeakAlloc;
use serde_json::{Value, json};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Bytes of an input, about what an API server takes.
const SIZE: usize = 1 << 20;

/// Texts of JSON of about [`SIZE`] that are expensive to hold, by name.
fn shapes() -> Vec<(&'static str, String)> {
    let repeated = |item: &str| format!("[{}]", vec![item; SIZE / (item.len() + 1)].join(","));
    let members: Vec<String> = (0..SIZE / 10).map(|member| format!("\"{member:x}\":1")).collect();
    vec![
        ("numbers", repeated("0")),
        ("empty objects", repeated("{}")),
        ("empty texts", repeated("\"\"")),
        ("lists", format!("{}{}", "[".repeat(100), "]".repeat(100))),
        ("members", format!("{{{}}}", members.join(","))),
        ("objects with a null", repeated(r#"{"name":null}"#)),
    ]
}

/// Pools with nothing but what the API server asks for.
fn smallest_pools() -> (&'static str, String) {
    let pool = json!({
        "name": "a", "machineType": "a", "machineImage": {"name": "a", "version": "1"}, "minimum": 0, "maximum": 0,
        "maxSurge": 0, "maxUnavailable": 0,
    });
    let pool = pool.to_string();
    ("smallest pools", format!("[{}]", vec![pool.as_str(); SIZE / pool.len()].join(",")))
}

/// A decoder: documents in which `null` stands for the shape, what reads them, and how many bytes it may hold per byte.
struct Decoder {
    name: &'static str,
    documents: Vec<Value>,
    read: fn(&str),
    most: usize,
}

fn decoders() -> Vec<Decoder> {
    let at = |members: &[&str]| members.iter().rev().fold(Value::Null, |inner, member| json!({ *member: inner }));
    let of = |name, paths: &[&[&str]], read, most| {
        let documents = paths.iter().map(|path| at(path)).collect();
        Decoder { name, documents, read, most }
    };
    vec![
        of(
            "Worker",
            &[
                &["spec", "pools"],
                &["spec", "providerConfig"],
                &["metadata", "annotations"],
                &["status", "conditions"],
                &["status", "providerStatus"],
                &["status", "machineDeployments"],
            ],
            |text| drop(black_box(decode_lenient::<Worker>(text))),
            100,
        ),
        of(
            "Cluster",
            &[&["spec", "shoot", "spec"], &["spec", "cloudProfile", "spec", "machineTypes"]],
            |text| drop(black_box(decode_lenient::<Cluster>(text))),
            100,
        ),
        of("Shoot", &[&["spec", "provider", "workers"]], |text| drop(black_box(decode_lenient::<Shoot>(text))), 100),
        of(
            "CloudProfile",
            &[&["spec", "machineTypes"], &["spec", "machineImages"], &["spec", "providerConfig"]],
            |text| drop(black_box(decode_lenient::<CloudProfile>(text))),
            100,
        ),
        of(
            "Machine",
            &[&["metadata", "labels"], &["spec"]],
            |text| drop(black_box(decode_lenient::<Machine>(text))),
            100,
        ),
        of(
            "MachineDeployment",
            &[&["metadata", "annotations"], &["spec", "template"], &["status", "failedMachines"]],
            |text| drop(black_box(decode_lenient::<MachineDeployment>(text))),
            100,
        ),
    ]
}

/// Bytes that are held at most while `read` reads, per byte of its input.
fn held(input: &str, bytes: usize, read: fn(&str)) -> usize {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    read(input);
    MEMORY.peak_usage().saturating_sub(before) / bytes
}

/// Unpacked bytes of a machine state: few enough to be read in a moment, and many beside what is packed.
const UNPACKED: usize = 16 << 20;

/// A machine state with the content as often as fits into [`UNPACKED`].
fn packed(content: &str) -> String {
    let list = vec![content; UNPACKED / (content.len() + 1)].join(",");
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    write!(encoder, r#"{{"machineDeployments":{{"d":{{"machineSets":[{list}]}}}}}}"#).unwrap();
    json!({ "state": STANDARD.encode(encoder.finish().unwrap()) }).to_string()
}

/// Not one of several tests: what others hold at the same time would count as well.
#[test]
fn little_that_is_written_does_not_become_much_that_is_held() {
    println!("| decoder | worst shape | bytes held per byte |");
    println!("|---|---|---|");
    for Decoder { name, documents, read, most } in decoders() {
        let worst = documents.iter().flat_map(|document| {
            let is_list_of_pools = document["spec"].get("pools").is_some();
            let shapes = if is_list_of_pools { vec![smallest_pools()] } else { shapes() };
            shapes.into_iter().map(move |(shape, text)| {
                let input = document.to_string().replacen("null", &text, 1);
                (held(&input, input.len(), read), shape)
            })
        });
        let (bytes, shape) = worst.max().unwrap();
        println!("| {name} | {shape} | {bytes} |");
        assert!(bytes <= most, "{name}: {bytes} bytes held per byte of {shape}");
    }
    let machine = r#"{"metadata":{"name":"m","labels":{"a":"b"}},"spec":{"list":[0,0,0,0,0,0,0,0,0,0,0,0,0]}}"#;
    for (shape, content) in [("empty objects", "{}"), ("machines", machine), ("numbers", "0")] {
        let document = packed(content);
        let bytes = held(&document, UNPACKED, |document| drop(black_box(MachineState::read(document))));
        println!("| machine state of {} kB, per unpacked byte | {shape} | {bytes} |", document.len() / 1000);
        assert!(bytes <= 4, "{bytes} bytes held per unpacked byte of {shape}");
    }
}

//! Memory of each decoder of external texts, per byte of input: a small input must not occupy much memory. Every
//! decoder reads the same hostile shapes, inside the members that it decodes.
//!
//! `cargo test --test memory` prints the table of docs/reliability-evidence.md.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, and its report is its output")]

use std::hint::black_box;
use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use gardener_extension_worker::api::gardener::{
    CloudProfile, Cluster, NamespacedCloudProfile, OrderedShoot, ProfileObject, ProfileSpec, Shoot, Worker,
};
use gardener_extension_worker::api::gotext::field::FieldErrors;
use gardener_extension_worker::api::gotext::json::decode_lenient;
use gardener_extension_worker::api::machine::{Machine, MachineDeployment};
use gardener_extension_worker::provider::Providers;
use gardener_extension_worker::worker::machines::machine_state::MachineState;
use peak_alloc::PeakAlloc;
use serde_json::{Value, json};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Bytes of an input, about the maximum that an API server accepts.
const SIZE: usize = 1 << 20;

/// JSON texts of about [`SIZE`] bytes that need much memory, by name.
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

/// Pools with only the fields that the API server requires.
fn smallest_pools() -> (&'static str, String) {
    let pool = json!({
        "name": "a", "machineType": "a", "machineImage": {"name": "a", "version": "1"}, "minimum": 0, "maximum": 0,
        "maxSurge": 0, "maxUnavailable": 0,
    });
    let pool = pool.to_string();
    ("smallest pools", format!("[{}]", vec![pool.as_str(); SIZE / pool.len()].join(",")))
}

/// A decoder: documents with `null` in place of the shape, the function that reads them, and the maximum number of
/// bytes held per byte.
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

/// One more error than a review lists.
const LISTED: usize = 21;
/// Maximum number of bytes that a review holds per byte of its objects.
const MOST_OF_REVIEW: usize = 60;

/// Reviews a CloudProfile with more errors than a review lists.
fn review_profile(text: &str) {
    let ProfileObject { spec, .. } = decode_lenient(text).unwrap();
    let format = Providers::SHIPPED.profile_format(&spec.provider_type).unwrap();
    let config = format.open(spec.provider_config.as_deref()).unwrap();
    let mut errors = FieldErrors::at_most(LISTED, None);
    config.validate_into(&spec, &mut errors);
    black_box(config.repeated_flavors(&format.definitions(&spec.machine_capabilities)));
    assert!(errors.count() > LISTED, "{errors:?}");
}

/// Reviews a NamespacedCloudProfile with more errors than a review lists.
fn review_namespaced(text: &str) {
    let NamespacedCloudProfile { spec, .. } = decode_lenient(text).unwrap();
    let parent = r#"{"type":"azure","machineCapabilities":[{"name":"a","values":["0"]}]}"#;
    let parent: ProfileSpec = serde_json::from_str(parent).unwrap();
    let config = Providers::SHIPPED.profile_format(&parent.provider_type).unwrap();
    let config = config.open(spec.provider_config.as_deref()).unwrap();
    let mut errors = FieldErrors::at_most(LISTED, None);
    config.validate_namespaced_into(&spec, &parent, &mut errors);
    assert!(errors.count() > LISTED, "{errors:?}");
}

/// Reviews a Shoot with more errors than a review lists.
fn review_shoot(text: &str) {
    let OrderedShoot { spec, .. } = decode_lenient(text).unwrap();
    let rules = Providers::SHIPPED.for_worker_type(&spec.provider.provider_type).unwrap();
    let errors = rules.validate_shoot_pools(&spec.provider, None);
    assert!(errors.count() > LISTED, "{errors:?}");
}

/// Name and object of a review, and the function that runs it.
type Review = (&'static str, Value, fn(&str));

/// Reviews of objects with as many errors as fit.
fn reviews() -> Vec<Review> {
    let number = SIZE / 100;
    let named = |prefix: &str| (0..number).map(|one| format!("{prefix}{one}")).collect::<Vec<_>>();
    let flavors = |prefix: &str| named(prefix).iter().map(|name| json!({"a": [name]})).collect::<Vec<_>>();
    let config = |versions: Value| {
        json!({
            "apiVersion": "azure.provider.extensions.gardener.cloud/v1alpha1", "kind": "CloudProfileConfig",
            "machineImages": [{"name": "i", "versions": versions}],
        })
    };
    let of_flavors: Vec<Value> =
        flavors("p").into_iter().map(|flavor| json!({"capabilities": flavor, "id": "x"})).collect();
    let of_flavors = config(json!([{"version": "1", "capabilityFlavors": of_flavors}]));
    let capabilities = json!([{"name": "a", "values": ["0"]}]);
    let of_architectures: Vec<Value> =
        named("p").iter().map(|name| json!({"version": "1", "architecture": name, "urn": "a:b:c:d"})).collect();
    let images = |members: Value| {
        let mut version = json!({"version": "1"});
        version.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        json!([{"name": "i", "versions": [version]}])
    };
    let missing_flavors = json!({
        "type": "azure", "machineCapabilities": capabilities, "providerConfig": of_flavors,
        "machineImages": images(json!({"capabilityFlavors": flavors("c")})),
    });
    let missing_architectures = json!({
        "type": "azure", "providerConfig": config(of_architectures.into()),
        "machineImages": images(json!({"architectures": named("c")})),
    });
    let namespaced = json!({
        "spec": {"providerConfig": of_flavors, "machineImages": images(json!({"capabilityFlavors": flavors("c")}))},
    });
    let zones: Vec<Value> = named("z").iter().map(|name| json!({"name": name})).collect();
    let shoot = json!({"spec": {"region": "r", "provider": {
        "type": "aws", "infrastructureConfig": {"networks": {"zones": zones}},
        "workers": [{"name": "w", "zones": named("p")}],
    }}});
    vec![
        ("CloudProfile: missing flavors", json!({ "spec": missing_flavors }), review_profile),
        ("CloudProfile: missing architectures", json!({ "spec": missing_architectures }), review_profile),
        ("NamespacedCloudProfile: missing flavors", namespaced, review_namespaced),
        ("Shoot: missing zones", shoot, review_shoot),
    ]
}

/// Maximum number of bytes that are held while `read` runs, per byte of its input.
fn held(input: &str, bytes: usize, read: fn(&str)) -> usize {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    read(input);
    MEMORY.peak_usage().saturating_sub(before) / bytes
}

/// Unpacked size of a machine state: small enough to be read in a moment, and large compared to its packed size.
const UNPACKED: usize = 16 << 20;

/// A machine state that repeats the content as often as it fits into [`UNPACKED`].
fn packed(content: &str) -> String {
    let list = vec![content; UNPACKED / (content.len() + 1)].join(",");
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    write!(encoder, r#"{{"machineDeployments":{{"d":{{"machineSets":[{list}]}}}}}}"#).unwrap();
    json!({ "state": STANDARD.encode(encoder.finish().unwrap()) }).to_string()
}

/// A single test, because memory of concurrent tests would be included.
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
    for (name, object, review) in reviews() {
        let text = object.to_string();
        let bytes = held(&text, text.len(), review);
        println!("| review of a {name} | {} kB | {bytes} |", text.len() / 1000);
        assert!(bytes <= MOST_OF_REVIEW, "{name}: {bytes} bytes held per byte");
    }
    let machine = r#"{"metadata":{"name":"m","labels":{"a":"b"}},"spec":{"list":[0,0,0,0,0,0,0,0,0,0,0,0,0]}}"#;
    for (shape, content) in [("empty objects", "{}"), ("machines", machine), ("numbers", "0")] {
        let document = packed(content);
        let bytes = held(&document, UNPACKED, |document| drop(black_box(MachineState::read(document))));
        println!("| machine state of {} kB, per unpacked byte | {shape} | {bytes} |", document.len() / 1000);
        assert!(bytes <= 4, "{bytes} bytes held per unpacked byte of {shape}");
    }
}

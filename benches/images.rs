//! Time and memory for images: 100,000 images and 50 lookups, the largest CloudProfile, 10,000 Workers.
//!
//! `cargo bench --bench images`

#![allow(clippy::expect_used, clippy::print_stdout, reason = "a benchmark")]

use std::time::Instant;

use gardener_extension_worker::images::catalogue::Catalogue;
use gardener_extension_worker::images::check::check;
use gardener_extension_worker::images::lock::Lock;
use gardener_extension_worker::images::lookup::Lookup;
use gardener_extension_worker::images::resolution::{Policy, resolve};
use gardener_extension_worker::images::sources::read;
use gardener_extension_worker::images::unused::unused;
use gardener_extension_worker::provider::Providers;
use gardener_extension_worker::resolved_profile::profile::Profile;
use jiff::Timestamp;
use peak_alloc::PeakAlloc;
use serde_json::{Value, json};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const IMAGES: usize = 100_000;
const LOOKUPS: usize = 50;
const WORKERS: usize = 10_000;
const REGIONS: usize = 20;
/// etcd's size limit for an object.
const LARGEST: usize = 3 << 19;

fn measured<T>(what: &str, work: impl FnOnce() -> T) -> T {
    MEMORY.reset_peak_usage();
    let begin = Instant::now();
    let done = work();
    println!("{what}: {:.3} s, peak {:.0} MB", begin.elapsed().as_secs_f64(), MEMORY.peak_usage_as_mb());
    done
}

fn policy() -> Policy {
    let now: Timestamp = "2026-11-22T00:00:00Z".parse().expect("a time");
    Policy { now, owners: Vec::new(), filters: Vec::new() }
}

fn ami(number: usize) -> String {
    format!("ami-{number:017x}")
}

/// Images of one region, with as many operating systems as lookups.
fn listing(region: usize) -> Value {
    let image = |number: usize| {
        let number = number * REGIONS + region;
        let system = number / REGIONS % LOOKUPS;
        json!({
            "ImageId": ami(number), "OwnerId": "111111111111", "State": "available", "Architecture": "x86_64",
            "Name": format!("capa-ami-system-{system}-v1.{}.{}-{number}", 33 + number % 3, number % 7),
            "CreationDate": format!("2026-{:02}-{:02}T09:00:00.000Z", 1 + number % 10, 1 + number % 28),
        })
    };
    json!({"Images": (0..IMAGES / REGIONS).map(image).collect::<Vec<_>>()})
}

fn lookup(number: usize) -> Lookup {
    let spec = json!({"provider": "aws", "imagePrefix": "capa-ami", "lookupFormat": "-{{.OS}}-?{{.K8sVersion}}-*",
        "os": [format!("system-{number}")], "arch": ["amd64", "arm64"], "versions": ">=1.33, <1.36", "owners": ["111111111111"]});
    Lookup::read(&json!({"kind": "ImageLookup", "metadata": {"name": "l"}, "spec": spec})).expect("a lookup")
}

/// A profile with this number of versions, as large as a profile can be.
fn profile(versions: usize) -> Value {
    let regions: Vec<Value> = (0..REGIONS).map(|region| json!({"name": format!("region-{region}")})).collect();
    let architectures = ["amd64", "arm64"];
    let core = |version: usize| {
        let flavors: Vec<Value> = architectures.iter().map(|name| json!({"architecture": [name]})).collect();
        json!({"version": format!("{version}.0.0"), "cri": [{"name": "containerd"}], "capabilityFlavors": flavors})
    };
    let provider = |version: usize| {
        let flavor = |(position, architecture): (usize, &&str)| {
            let images: Vec<Value> = (0..REGIONS)
                .map(|region| json!({"name": format!("region-{region}"), "ami": ami((version * 2 + position) * REGIONS + region)}))
                .collect();
            json!({"capabilities": {"architecture": [architecture]}, "regions": images})
        };
        let flavors: Vec<Value> = architectures.iter().enumerate().map(flavor).collect();
        json!({"version": format!("{version}.0.0"), "capabilityFlavors": flavors})
    };
    json!({
        "kind": "CloudProfile", "metadata": {"name": "p"},
        "spec": {
            "type": "aws", "regions": regions, "machineTypes": [{"name": "t", "capabilities": {"architecture": ["amd64"]}}],
            "machineCapabilities": [{"name": "architecture", "values": architectures}],
            "machineImages": [{"name": "os", "versions": (0..versions).map(core).collect::<Vec<_>>()}],
            "providerConfig": {"apiVersion": "aws.provider.extensions.gardener.cloud/v1alpha1", "kind": "CloudProfileConfig",
                "machineImages": [{"name": "os", "versions": (0..versions).map(provider).collect::<Vec<_>>()}]},
        },
    })
}

fn worker(number: usize) -> Value {
    let pools: Vec<Value> = (0..3)
        .map(|pool| json!({"name": format!("pool-{pool}"), "machineImage": {"name": "os", "version": format!("{}.0.0", number % 50)},
            "userDataSecretRef": {"name": "gardener-node-agent", "key": "userData"}, "zones": ["a", "b", "c"], "labels": {"a": "b"}}))
        .collect();
    let kept = json!([{"name": "os", "version": format!("{}.0.0", number % 50), "ami": ami(number % 2000)}]);
    json!({"kind": "Worker", "metadata": {"name": format!("w-{number}"), "namespace": format!("shoot--p--w-{number}")},
        "spec": {"type": "aws", "pools": pools}, "status": {"providerStatus": {"machineImages": kept}}})
}

fn main() {
    // `cargo test --benches` only checks that it builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let listings: Vec<Value> = (0..REGIONS).map(listing).collect();
    let catalogue = measured("100,000 images read", || {
        let listings = listings.iter().enumerate();
        let read =
            listings.map(|(region, listing)| read(listing, Some(&format!("region-{region}"))).expect("a listing"));
        Catalogue::new(read.collect()).expect("not too many")
    });
    drop(listings);
    let lookups: Vec<Lookup> = (0..LOOKUPS).map(lookup).collect();
    let resolved = measured("50 lookups resolved", || resolve(&catalogue, &lookups, &policy()));
    println!("  {} flavors of {} images", resolved.len(), catalogue.images().len());
    let mut lock = Lock::default();
    lock.add(&resolved, policy().now);
    let versions = (1..).find(|versions| profile(*versions * 50).to_string().len() > LARGEST).unwrap_or(1) * 50 - 50;
    let document = profile(versions);
    println!("profile of {} KiB, {versions} versions", document.to_string().len() >> 10);
    let checked = measured("largest profile read and checked", || {
        let profile = Profile::read(document.clone(), Providers::SHIPPED).expect("a profile");
        check(&profile, &catalogue, Some(&lock), &policy())
    });
    println!("  {} images, {} findings", checked.checked, checked.findings.len());
    let profile = Profile::read(document, Providers::SHIPPED).expect("a profile");
    let workers: Vec<Value> = (0..WORKERS).map(worker).collect();
    let found = measured("unused over 10,000 Workers", || {
        unused(&profile, &workers, &[], &catalogue, Some(&lock), policy().now)
    });
    let found = found.expect("an answer");
    println!(
        "  {} of {} versions needed by no one",
        found.versions.iter().filter(|version| version.is_unused()).count(),
        found.versions.len()
    );
}

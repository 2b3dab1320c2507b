//! Measures a forecast for a landscape: a year of 10,000 shoots with 4 pools and 3 CloudProfiles, on 2 threads. `cargo
//! bench --bench versions`; docs/performance-evidence.md states targets and results.

#![allow(missing_docs, clippy::print_stdout, reason = "the report of this program is its output")]
#![allow(clippy::expect_used, reason = "a benchmark of inputs that are written here")]

use std::time::Instant;

use gardener_extension_worker::api::gardener::ProfileSpec;
use gardener_extension_worker::versions::catalog::VersionCatalog;
use gardener_extension_worker::versions::forecast::forecast;
use gardener_extension_worker::versions::garden::{Garden, Validation};
use gardener_extension_worker::versions::maintenance::MaintainedShoot;
use jiff::{SignedDuration, Timestamp};
use peak_alloc::PeakAlloc;
use serde_json::{Value, json};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const SHOOTS: usize = 10_000;

fn start() -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * 365 * 56)
}

fn day(day: usize) -> String {
    (start() + SignedDuration::from_hours(24) * i32::try_from(day).expect("a day")).to_string()
}

/// Six minor versions of Kubernetes and 60 versions of an image, most of which expire within the year.
fn profile(number: usize) -> ProfileSpec {
    let kubernetes: Vec<Value> = (30..36)
        .flat_map(|minor| (0..5).map(move |patch| (minor, patch)))
        .map(|(minor, patch)| json!({"version": format!("1.{minor}.{patch}"), "expirationDate": day((minor - 29) * 60 + patch * 7 + number)}))
        .chain([json!({"version": "1.36.0"})])
        .collect();
    let images: Vec<Value> = (0..60)
        .map(|index| {
            json!({
                "version": format!("{}.{}.{}", 1 + index / 20, index / 4 % 5, index % 4), "expirationDate": day(index * 6 + number + 3),
                "architectures": ["amd64", "arm64"], "cri": [{"name": "containerd"}], "kubeletVersionConstraint": ">= 1.29",
                "capabilityFlavors": [{"architecture": ["amd64"], "generation": ["gen2"]}, {"architecture": ["amd64"], "generation": ["gen1"]}],
            })
        })
        .chain([json!({"version": "4.0.0", "architectures": ["amd64"], "cri": [{"name": "containerd"}]})])
        .collect();
    let strategy = ["patch", "minor", "major"][number];
    let spec = json!({
        "kubernetes": {"versions": kubernetes}, "machineTypes": [{"name": "t", "capabilities": {"architecture": ["amd64"], "generation": ["gen1", "gen2"]}}],
        "machineCapabilities": [{"name": "architecture", "values": ["amd64", "arm64"]}, {"name": "generation", "values": ["gen2", "gen1"]}],
        "machineImages": [{"name": "os", "versions": images, "updateStrategy": strategy}],
    });
    serde_json::from_str(&spec.to_string()).expect("a profile")
}

fn shoot(number: usize) -> Value {
    let pool = |pool: usize| {
        let version = (pool == 3).then(|| format!("1.{}.{}", 30 + number % 3, number % 5));
        json!({
            "name": format!("pool-{pool}"), "kubernetes": {"version": version}, "minimum": 1, "maximum": 5,
            "machine": {"type": "t", "architecture": "amd64", "image": {"name": "os", "version": format!("1.{}.{}", (number + pool) % 5, pool)}},
        })
    };
    json!({
        "metadata": {"name": format!("shoot-{number}"), "namespace": "garden-p", "annotations": {}},
        "spec": {
            "kubernetes": {"version": format!("1.{}.{}", 30 + number % 4, number % 5)},
            "maintenance": {
                "timeWindow": {"begin": format!("{:02}0000+0100", number % 24), "end": format!("{:02}0000+0100", (number + 1) % 24)},
                "autoUpdate": {"kubernetesVersion": number.is_multiple_of(2), "machineImageVersion": number.is_multiple_of(3)},
            },
            "provider": {"workers": (0..4).map(pool).collect::<Vec<_>>()},
        },
        "status": {"lastOperation": {"state": "Succeeded"}},
    })
}

fn main() {
    // `cargo test --benches` only checks that it builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let profiles = [0, 1, 2].map(profile);
    let catalogs: Vec<VersionCatalog<'_>> = profiles.iter().map(|spec| VersionCatalog::new("profile", spec)).collect();
    let read = Instant::now();
    let shoots: Vec<MaintainedShoot> =
        (0..SHOOTS).map(|number| MaintainedShoot::read(&shoot(number), true).expect("a shoot")).collect();
    println!(
        "{SHOOTS} shoots read in {:.2} s, {:.0} MB kept",
        read.elapsed().as_secs_f64(),
        MEMORY.current_usage_as_mb()
    );
    let span = [start(), start() + SignedDuration::from_hours(24 * 365)];
    let steps_of = |shoot: &MaintainedShoot, catalog: &VersionCatalog<'_>| {
        forecast(shoot, catalog, &Garden { validation: Validation::WithProfile, ..Garden::default() }, span).steps.len()
    };
    for (threads, count) in [(1, SHOOTS / 10), (1, SHOOTS), (2, SHOOTS)] {
        let begin = Instant::now();
        let steps: usize = std::thread::scope(|scope| {
            let work = |shoots: &[MaintainedShoot]| -> usize {
                shoots.iter().zip(catalogs.iter().cycle()).map(|(shoot, catalog)| steps_of(shoot, catalog)).sum()
            };
            let parts = shoots[..count].chunks(count.div_ceil(threads));
            let parts: Vec<_> = parts.map(|part| scope.spawn(move || work(part))).collect();
            parts.into_iter().map(|part| part.join().expect("no panic")).sum()
        });
        let seconds = begin.elapsed().as_secs_f64();
        println!(
            "{count} shoots, {threads} threads: {seconds:.2} s, {:.3} ms a shoot, {steps} steps, peak {:.0} MB",
            seconds * 1000.0 * threads as f64 / count as f64,
            MEMORY.peak_usage_as_mb()
        );
    }
    let mut times: Vec<f64> = Vec::new();
    for (shoot, catalog) in shoots.iter().zip(catalogs.iter().cycle()).take(SHOOTS / 10) {
        let begin = Instant::now();
        steps_of(shoot, catalog);
        times.push(begin.elapsed().as_secs_f64() * 1000.0);
    }
    times.sort_by(f64::total_cmp);
    println!("one shoot: {:.3} ms in the middle, {:.3} ms at most", times[times.len() / 2], times[times.len() - 1]);
}

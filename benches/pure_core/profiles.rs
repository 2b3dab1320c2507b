//! Measures `cloudprofile matrix` and `lint` for a large CloudProfile, from its document to all results.
//!
//! The worst case for its size: 400 machine types that all differ in capabilities, and 200 versions of 4 flavors in 8
//! different lists, so that few rankings can be shared.

use std::hint::black_box;

use criterion::Criterion;
use gardener_extension_worker::cloud_profile::validation::FeatureGates;
use gardener_extension_worker::provider::Providers;
use gardener_extension_worker::resolved_profile::Resolution;
use gardener_extension_worker::resolved_profile::lint::{Settings, lint};
use gardener_extension_worker::resolved_profile::matrix::matrix;
use gardener_extension_worker::resolved_profile::profile::Profile;
use gardener_extension_worker::resolved_profile::selection::Selection;
use k8s_openapi::jiff::SignedDuration;
use serde_json::{Map, Value, json};

use super::clouds::Cloud;
use super::{IMAGE_VERSIONS, MACHINE_TYPES, NOW, image_version_name, machine_type_name};

/// Capabilities that distinguish machine types, in addition to the cloud's.
const BITS: usize = 9;

pub(crate) fn measure(criterion: &mut Criterion, cloud: &Cloud) {
    let document = profile(cloud);
    let mut group = criterion.benchmark_group(format!("{} cloudprofile", cloud.worker_type));
    group.sample_size(10);
    let size = document.to_string().len();
    let results = MACHINE_TYPES * IMAGE_VERSIONS;
    group.bench_function(format!("matrix of {results} answers ({size} bytes)"), |bencher| {
        bencher.iter(|| {
            let profile = Profile::read(black_box(document.clone()), Providers::SHIPPED).expect("the profile is valid");
            let resolved_profile = profile.resolved_profile(NOW);
            let resolution = Resolution::of(&resolved_profile);
            serde_json::to_string(&matrix(&resolution, &Selection::default())).expect("it can be written").len()
        });
    });
    group.bench_function("lint", |bencher| {
        bencher.iter(|| {
            let settings =
                Settings { now: NOW, soon: SignedDuration::from_hours(24 * 90), gates: FeatureGates::default() };
            lint(black_box(&document), settings, Providers::SHIPPED).expect("the provider is known").findings.len()
        });
    });
    group.finish();
}

fn profile(cloud: &Cloud) -> Value {
    let bit = |bit: usize| format!("c{bit}");
    let mut definitions = vec![
        json!({"name": "architecture", "values": ["amd64"]}),
        json!({"name": cloud.capability, "values": cloud.capability_values}),
    ];
    definitions.extend((0..BITS).map(|number| json!({"name": bit(number), "values": ["a", "b"]})));
    let machine_type = |number: usize| {
        let value = |bit: usize| if number >> bit & 1 == 0 { json!(["a"]) } else { json!(["a", "b"]) };
        let mut capabilities: Map<String, Value> = (0..BITS).map(|number| (bit(number), value(number))).collect();
        capabilities.insert("architecture".to_owned(), json!(["amd64"]));
        json!({"name": machine_type_name(number), "cpu": "4", "gpu": "0", "memory": "16Gi", "capabilities": capabilities})
    };
    let flavors = |version: usize| {
        let of_version = bit(version % (BITS - 1));
        let flavor = move |number: usize| {
            let value = |on: usize| if number & on == 0 { json!(["a"]) } else { json!(["b"]) };
            json!({"architecture": ["amd64"], of_version.as_str(): value(1), "c8": value(2)})
        };
        (0..4).map(flavor).collect::<Vec<Value>>()
    };
    let core = (0..IMAGE_VERSIONS).map(|number| {
        json!({"version": image_version_name(number), "cri": [{"name": "containerd"}], "capabilityFlavors": flavors(number)})
    });
    let provider = (0..IMAGE_VERSIONS).map(|number| {
        let version = image_version_name(number);
        let with_image = flavors(number).into_iter().enumerate().map(|(position, capabilities)| {
            let mut flavor = (cloud.image)(&format!("linux-{position}"), &version);
            flavor["capabilities"] = capabilities;
            flavor
        });
        json!({"version": version, "capabilityFlavors": with_image.collect::<Vec<_>>()})
    });
    let config = json!({"machineImages": [{"name": "linux", "versions": provider.collect::<Vec<_>>()}]});
    let regions = ["us-east-1", "eu-west-1", cloud.region].map(|region| json!({"name": region}));
    json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "CloudProfile", "metadata": {"name": "large"},
        "spec": {
            "type": cloud.worker_type,
            "kubernetes": {"versions": [{"version": "1.34.2"}]},
            "regions": regions,
            "machineCapabilities": definitions,
            "machineTypes": (0..MACHINE_TYPES).map(machine_type).collect::<Vec<_>>(),
            "machineImages": [{"name": "linux", "updateStrategy": "minor", "versions": core.collect::<Vec<_>>()}],
            "providerConfig": cloud.document("CloudProfileConfig", config),
        },
    })
}

//! Profiles and Shoots of every kind, for maintenance over time.

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

const START: i64 = 1_770_000_000;
/// No stage begins on this day or later.
pub(crate) const LAST_STAGE: i64 = 120;
pub(crate) const END: i64 = 150;

pub(crate) fn moment(day: i64) -> Timestamp {
    Timestamp::from_second(START + day * 86_400).unwrap()
}

fn life() -> impl Strategy<Value = Value> {
    let stage = prop::sample::select(vec!["preview", "supported", "deprecated", "expired", "nonsense"]);
    let date = prop::option::weighted(0.6, -60_i64..LAST_STAGE);
    prop_oneof![
        (prop::option::of(stage.clone()), date.clone()).prop_map(|(classification, date)| {
            json!({"classification": classification, "expirationDate": date.map(|day| moment(day).to_string())})
        }),
        prop::collection::vec((stage, date), 0..4).prop_map(|stages| {
            let stage = |(stage, date): (&str, Option<i64>)| {
                json!({"classification": stage, "startTime": date.map(|day| moment(day).to_string())})
            };
            json!({"lifecycle": stages.into_iter().map(stage).collect::<Vec<_>>()})
        }),
    ]
}

fn version(form: &'static str) -> impl Strategy<Value = Value> {
    let kubelet = prop::option::weighted(0.2, prop::sample::select(vec![">= 1.31", "~1.32", "< 1.33", "?"]));
    let minimum = prop::option::weighted(0.9, prop::sample::select(vec!["1.0.0", "1.1.0-gen2", "1.2.1", "2.1.0"]));
    (form, life(), kubelet, prop::bool::weighted(0.8), minimum).prop_map(
        |(version, mut life, kubelet, in_place, minimum)| {
            life["version"] = version.into();
            life["architectures"] = json!(["amd64"]);
            life["cri"] = json!([{"name": "containerd"}]);
            life["kubeletVersionConstraint"] = json!(kubelet);
            life["inPlaceUpdates"] = json!({"supported": in_place, "minVersionForUpdate": minimum});
            life
        },
    )
}

pub(crate) fn profile() -> impl Strategy<Value = Value> {
    let kubernetes = prop::collection::vec(version("1\\.3[0-4]\\.[0-3]"), 1..8);
    let images = prop::collection::vec(version("[12]\\.[0-2]\\.[0-2](-gen2)?|latest"), 1..9);
    let strategy = prop::option::of(prop::sample::select(vec!["patch", "minor", "major", "sideways"]));
    (kubernetes, images, strategy).prop_map(|(kubernetes, images, strategy)| {
        json!({
            "kubernetes": {"versions": kubernetes}, "machineTypes": [{"name": "t"}],
            "machineImages": [{"name": "os", "versions": images, "updateStrategy": strategy}],
        })
    })
}

pub(crate) fn shoot() -> impl Strategy<Value = Value> {
    let pool = ("[12]\\.[0-2]\\.[0-2](-gen2)?", prop::option::of("1\\.3[0-3]\\.[0-3]"), any::<bool>(), any::<bool>());
    let window = prop::option::of(prop::sample::select(vec!["220000+0000", "233000+0100", "010000-0830", "noon"]));
    let pools = prop::collection::vec(pool, 0..4);
    ("1\\.3[0-3]\\.[0-3]", pools, window, any::<bool>(), any::<bool>()).prop_map(
        |(version, pools, window, kubernetes, image)| {
            // The API server refuses duplicate names of pools.
            let pool = |(number, (image, version, in_place, known)): (usize, (String, Option<String>, bool, bool))| {
                json!({
                    "name": format!("pool-{number}"), "kubernetes": {"version": version}, "minimum": 1, "maximum": 3,
                    "machine": {"type": if known { "t" } else { "t2" }, "image": {"name": "os", "version": image}},
                    "updateStrategy": if in_place { "AutoInPlaceUpdate" } else { "AutoRollingUpdate" },
                })
            };
            json!({
                "metadata": {"name": "s", "namespace": "garden-p", "annotations": {}},
                "spec": {
                    "kubernetes": {"version": version},
                    "maintenance": {
                        "timeWindow": window.map(|begin| json!({"begin": begin, "end": "003000+0000"})),
                        "autoUpdate": {"kubernetesVersion": kubernetes, "machineImageVersion": image},
                    },
                    "provider": {"workers": pools.into_iter().enumerate().map(pool).collect::<Vec<_>>()},
                },
                "status": {"lastOperation": {"state": "Succeeded"}},
            })
        },
    )
}

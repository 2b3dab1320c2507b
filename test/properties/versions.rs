//! Maintenance over time, for profiles and shoots of every kind: time moves forward only, a forecast that is taken up on the way
//! goes on as it had said, what is stable stays, and nothing panics.

use gardener_extension_worker::api::gardener::ProfileSpec;
use gardener_extension_worker::versions::catalog::VersionCatalog;
use gardener_extension_worker::versions::forecast::forecast;
use gardener_extension_worker::versions::garden::Garden;
use gardener_extension_worker::versions::history::History;
use gardener_extension_worker::versions::maintenance::MaintainedShoot;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};

const START: i64 = 1_770_000_000;

fn moment(day: i64) -> Timestamp {
    Timestamp::from_second(START + day * 86_400).unwrap()
}

fn life() -> impl Strategy<Value = Value> {
    let stage = prop::sample::select(vec!["preview", "supported", "deprecated", "expired", "nonsense"]);
    let date = prop::option::weighted(0.6, -60_i64..400);
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
    (form, life(), prop::option::weighted(0.2, prop::sample::select(vec![">= 1.31", "~1.32", "< 1.33", "?"]))).prop_map(
        |(version, mut life, kubelet)| {
            life["version"] = version.into();
            life["architectures"] = json!(["amd64"]);
            life["cri"] = json!([{"name": "containerd"}]);
            life["kubeletVersionConstraint"] = json!(kubelet);
            life["inPlaceUpdates"] = json!({"supported": true, "minVersionForUpdate": "1.0.0"});
            life
        },
    )
}

fn profile() -> impl Strategy<Value = Value> {
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

fn shoot() -> impl Strategy<Value = Value> {
    let pool =
        ("[a-c]", "[12]\\.[0-2]\\.[0-2](-gen2)?", prop::option::of("1\\.3[0-3]\\.[0-3]"), any::<bool>(), any::<bool>());
    let window = prop::option::of(prop::sample::select(vec!["220000+0000", "233000+0100", "010000-0830", "noon"]));
    let pools = prop::collection::vec(pool, 0..4);
    ("1\\.3[0-3]\\.[0-3]", pools, window, any::<bool>(), any::<bool>()).prop_map(
        |(version, pools, window, kubernetes, image)| {
            let pool = |(name, image, version, in_place, known): (String, String, Option<String>, bool, bool)| {
                json!({
                    "name": name, "kubernetes": {"version": version}, "minimum": 1, "maximum": 3,
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
                    "provider": {"workers": pools.into_iter().map(pool).collect::<Vec<_>>()},
                },
                "status": {"lastOperation": {"state": "Succeeded"}},
            })
        },
    )
}

fn decoded(profile: &Value) -> ProfileSpec {
    serde_json::from_str(&profile.to_string()).unwrap()
}

fn state(shoot: &Value) -> MaintainedShoot {
    MaintainedShoot::read(shoot, true).unwrap()
}

proptest! {
    #[test]
    fn time_moves_forward_only(profile in profile(), shoot in shoot()) {
        let spec = decoded(&profile);
        let catalog = VersionCatalog::new("p", &spec);
        let forecast = forecast(&state(&shoot), &catalog, &Garden::default(), [moment(0), moment(500)]);
        for steps in forecast.steps.windows(2) {
            prop_assert!(steps[0].time < steps[1].time);
        }
        for step in &forecast.steps {
            prop_assert!(step.latest >= step.time && step.time < moment(500));
        }
    }

    #[test]
    fn day_by_day_gives_what_jumps_give(profile in profile(), shoot in shoot(), on_the_way in 1_i64..499) {
        let spec = decoded(&profile);
        let catalog = VersionCatalog::new("p", &spec);
        let start = || {
            let offset = SignedDuration::from_secs(1);
            History::start(state(&shoot), &catalog, Garden { validates: true, ..Garden::default() }, offset, moment(0))
        };
        let (mut jumps, mut halves, mut days) = (start(), start(), start());
        jumps.advance(moment(500));
        halves.advance(moment(on_the_way));
        halves.advance(moment(500));
        (1..=500).for_each(|day| days.advance(moment(day)));
        prop_assert_eq!(&jumps.steps, &days.steps);
        prop_assert_eq!(&jumps.steps, &halves.steps);
        prop_assert_eq!(jumps.runs, days.runs);
    }

    #[test]
    fn a_forecast_from_its_own_end_finds_nothing_new_while_no_stage_begins(profile in profile(), shoot in shoot()) {
        let spec = decoded(&profile);
        let catalog = VersionCatalog::new("p", &spec);
        // All stages have begun by then, so that after a while nothing moves any more.
        let offset = SignedDuration::from_secs(1);
        let mut history = History::start(state(&shoot), &catalog, Garden::default(), offset, moment(401));
        history.advance(moment(450));
        let known = history.steps.iter().filter(|step| step.run.updates().any(|(_, update)| update.is_move())).count();
        history.advance(moment(900));
        let all = history.steps.iter().filter(|step| step.run.updates().any(|(_, update)| update.is_move())).count();
        prop_assert_eq!(known, all);
        let again = forecast(&history.state, &catalog, &Garden::default(), [moment(900), moment(1300)]);
        prop_assert!(again.steps.iter().all(|step| step.moves.is_empty()), "{:?}", again.steps);
    }
}

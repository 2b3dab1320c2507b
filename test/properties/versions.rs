//! Maintenance over time, for profiles and shoots of every kind: time moves forward only, a forecast that is taken up on the way
//! goes on as it had said, what is stable stays, and nothing panics.
//!
//! `PROPTEST_CASES=10000 cargo test --test properties -- versions` makes 10,000 random histories for each of them.

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
/// No stage begins at this day or later.
const LAST_STAGE: i64 = 120;
const END: i64 = 150;

fn moment(day: i64) -> Timestamp {
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
    let pool = ("[12]\\.[0-2]\\.[0-2](-gen2)?", prop::option::of("1\\.3[0-3]\\.[0-3]"), any::<bool>(), any::<bool>());
    let window = prop::option::of(prop::sample::select(vec!["220000+0000", "233000+0100", "010000-0830", "noon"]));
    let pools = prop::collection::vec(pool, 0..4);
    ("1\\.3[0-3]\\.[0-3]", pools, window, any::<bool>(), any::<bool>()).prop_map(
        |(version, pools, window, kubernetes, image)| {
            // The API server takes each name of a pool once.
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

fn decoded(profile: &Value) -> ProfileSpec {
    serde_json::from_str(&profile.to_string()).unwrap()
}

fn state(shoot: &Value) -> MaintainedShoot {
    MaintainedShoot::read(shoot, true).unwrap()
}

fn history<'c>(shoot: &Value, catalog: &'c VersionCatalog<'c>, start: i64) -> History<'c> {
    let garden = Garden { validates: true, ..Garden::default() };
    History::start(state(shoot), catalog, garden, SignedDuration::from_secs(1), moment(start))
}

proptest! {
    #[test]
    fn time_moves_forward_only(profile in profile(), shoot in shoot()) {
        let spec = decoded(&profile);
        let catalog = VersionCatalog::new("p", &spec);
        let forecast = forecast(&state(&shoot), &catalog, &Garden::default(), [moment(0), moment(END)]);
        for steps in forecast.steps.windows(2) {
            prop_assert!(steps[0].time < steps[1].time);
        }
        for step in &forecast.steps {
            prop_assert!(step.latest >= step.time && step.time < moment(END));
        }
    }

    #[test]
    fn day_by_day_gives_what_jumps_give(profile in profile(), shoot in shoot(), on_the_way in 1..END) {
        let spec = decoded(&profile);
        let catalog = VersionCatalog::new("p", &spec);
        let start = || history(&shoot, &catalog, 0);
        let (mut jumps, mut halves, mut days) = (start(), start(), start());
        jumps.advance(moment(END));
        halves.advance(moment(on_the_way));
        halves.advance(moment(END));
        (1..=END).for_each(|day| days.advance(moment(day)));
        prop_assert_eq!(&jumps.steps, &days.steps);
        prop_assert_eq!(&jumps.steps, &halves.steps);
        prop_assert_eq!(jumps.runs, days.runs);
        prop_assert_eq!(format!("{:?}", jumps.state.shoot.spec), format!("{:?}", days.state.shoot.spec));
    }

    #[test]
    fn a_forecast_from_a_later_moment_is_the_same(profile in profile(), shoot in shoot(), on_the_way in 1..END) {
        let spec = decoded(&profile);
        let catalog = VersionCatalog::new("p", &spec);
        let garden = Garden { validates: true, ..Garden::default() };
        let mut half = history(&shoot, &catalog, 0);
        // Within the window it would act at once.
        if half.window().contains(moment(0)) {
            return Ok(());
        }
        half.advance(moment(on_the_way));
        // What a controller that crashes does later depends on who starts it again.
        if half.steps.iter().any(|step| step.run.crash.is_some()) {
            return Ok(());
        }
        let steps = |state: &MaintainedShoot, from: i64| {
            let steps = forecast(state, &catalog, &garden, [moment(from), moment(END)]).steps.into_iter();
            let behind = steps.filter(|step| step.time >= moment(on_the_way));
            behind.map(|step| (step.time, step.moves, step.operations)).collect::<Vec<_>>()
        };
        prop_assert_eq!(steps(&state(&shoot), 0), steps(&half.state, on_the_way));
    }

    #[test]
    fn what_is_stable_stays_while_no_stage_begins(profile in profile(), shoot in shoot()) {
        let spec = decoded(&profile);
        let catalog = VersionCatalog::new("p", &spec);
        let moves = |history: &History<'_>| {
            history.steps.iter().filter(|step| step.run.updates().any(|(_, update)| update.is_move())).count()
        };
        let mut history = history(&shoot, &catalog, LAST_STAGE + 1);
        history.advance(moment(LAST_STAGE + 50));
        let known = moves(&history);
        history.advance(moment(LAST_STAGE + 500));
        prop_assert_eq!(known, moves(&history));
        let garden = Garden { validates: true, ..Garden::default() };
        let again = forecast(&history.state, &catalog, &garden, [moment(LAST_STAGE + 500), moment(LAST_STAGE + 900)]);
        prop_assert!(again.steps.iter().all(|step| step.moves.is_empty()), "{:?}", again.steps);
    }
}

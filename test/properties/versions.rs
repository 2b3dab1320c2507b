//! Maintenance over time, for profiles and Shoots of every kind: time only moves forward, a forecast from a later
//! moment matches the earlier one, stable versions stay, and nothing panics.
//!
//! `PROPTEST_CASES=10000 cargo test --test properties -- versions` runs 10,000 random histories for each property.

use gardener_extension_worker::api::gardener::ProfileSpec;
use gardener_extension_worker::versions::catalog::VersionCatalog;
use gardener_extension_worker::versions::forecast::forecast;
use gardener_extension_worker::versions::garden::{Garden, Validation};
use gardener_extension_worker::versions::history::History;
use gardener_extension_worker::versions::maintenance::MaintainedShoot;
use jiff::SignedDuration;
use proptest::prelude::*;
use serde_json::Value;

use crate::version_worlds::{END, LAST_STAGE, moment, profile, shoot};

fn decoded(profile: &Value) -> ProfileSpec {
    serde_json::from_str(&profile.to_string()).unwrap()
}

fn state(shoot: &Value) -> MaintainedShoot {
    MaintainedShoot::read(shoot, true).unwrap()
}

fn history<'c>(shoot: &Value, catalog: &'c VersionCatalog<'c>, start: i64) -> History<'c> {
    let garden = Garden { validation: Validation::WithProfile, ..Garden::default() };
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
        let garden = Garden { validation: Validation::WithProfile, ..Garden::default() };
        let mut half = history(&shoot, &catalog, 0);
        // Within the window, the controller would act at once.
        if half.window().contains(moment(0)) {
            return Ok(());
        }
        half.advance(moment(on_the_way));
        // After a crash, the controller's later actions depend on what restarts it.
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
        let garden = Garden { validation: Validation::WithProfile, ..Garden::default() };
        let again = forecast(&history.state, &catalog, &garden, [moment(LAST_STAGE + 500), moment(LAST_STAGE + 900)]);
        prop_assert!(again.steps.iter().all(|step| step.moves.is_empty()), "{:?}", again.steps);
    }
}

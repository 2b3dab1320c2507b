//! Replica counts and object names per zone, with hazards marked.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::section::{INDENT, hazard_line};
use crate::cli::table::{Cell, Table, paragraph};
use crate::cli::terminal::{BAD, CAREFUL};
use explanations::explain::{HashEffect, Hazard, PlacementExplanation};

/// Prints one table, or two (numbers, names) if one table would wrap names that people copy.
pub(super) fn zones_text(placements: &[PlacementExplanation], effect: HashEffect, width: usize) -> String {
    let mut numbers = Table::new(["ZONE", ">MIN", ">MAX", ">SURGE", ">UNAVAILABLE", ">LIVE"]);
    let mut names = Table::new(["ZONE", "MACHINE DEPLOYMENT", "MACHINE CLASS"]);
    let mut both =
        Table::new(["ZONE", ">MIN", ">MAX", ">SURGE", ">UNAVAILABLE", ">LIVE", "MACHINE DEPLOYMENT", "MACHINE CLASS"]);
    for placement in placements {
        let [zone, min, max, surge, unavailable, live] = number_cells(placement);
        let [deployment, class] = name_cells(placement);
        names.row([zone.clone(), deployment.clone(), class.clone()]);
        numbers.row([&zone, &min, &max, &surge, &unavailable, &live].map(Cell::clone));
        both.row([zone, min, max, surge, unavailable, live, deployment, class]);
    }
    let notes: String = placements.iter().map(|placement| notes(placement, effect, width)).collect();
    if both.fits(INDENT, width) {
        return both.render(INDENT, width) + &notes;
    }
    numbers.render(INDENT, width) + &names.render(INDENT, width) + &notes
}

fn number_cells(placement: &PlacementExplanation) -> [Cell; 6] {
    let careful = |text: String, is_hazard: bool| if is_hazard { Cell::styled(text, CAREFUL) } else { text.into() };
    let is_zero = placement.hazards.contains(&Hazard::SurgeAndUnavailableZero);
    let shrinks = placement.hazards.iter().any(|hazard| matches!(hazard, Hazard::MaximumBelowLive { .. }));
    [
        zone(placement).into(),
        placement.plan.minimum.to_string().into(),
        careful(placement.plan.maximum.to_string(), shrinks),
        careful(bound_text(placement.plan.max_surge.as_ref()), is_zero),
        careful(bound_text(placement.plan.max_unavailable.as_ref()), is_zero),
        careful(placement.live_replicas.map_or("-".to_owned(), |live| live.to_string()), shrinks),
    ]
}

fn name_cells(placement: &PlacementExplanation) -> [Cell; 2] {
    let class = match &placement.plan.class {
        Some((class, _)) => class.0.as_str().into(),
        None => Cell::styled("unknown: see the error", BAD),
    };
    [placement.plan.deployment.0.as_str().into(), class]
}

fn notes(placement: &PlacementExplanation, effect: HashEffect, width: usize) -> String {
    let location = match &placement.plan.zone {
        Some(zone) => format!("zone {zone}: "),
        None => String::new(),
    };
    let mut notes: String = placement.hazards.iter().map(|hazard| hazard_line(&location, hazard, width)).collect();
    if let Some(class) = &placement.live_class {
        let what = match effect {
            HashEffect::Roll => "roll",
            HashEffect::UpdateInPlace => "are updated in place",
        };
        let note = format!("! {location}the live machines are of class {class}, so they {what}");
        notes.push_str(&paragraph(&note, CAREFUL, INDENT, width));
    }
    notes
}

fn zone(placement: &PlacementExplanation) -> &str {
    placement.plan.zone.as_deref().unwrap_or("-")
}

fn bound_text(bound: Option<&IntOrString>) -> String {
    match bound {
        None => "-".to_owned(),
        Some(IntOrString::Int(number)) => number.to_string(),
        Some(IntOrString::String(text)) => text.clone(),
    }
}

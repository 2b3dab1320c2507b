//! `forecast --still-on`: who still runs a version of an image at a time, and which expiration would move them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::garden_files::{GardenFiles, ProfileKey, ShootInput, complete, reference};
use super::summary::range;
use super::{ForecastArguments, catalogs, no_shoots, today};
use crate::cli::evidence::{Evidence, Reply, no_match};
use crate::cli::exit::{Exit, wrong_usage};
use crate::cli::in_parallel::in_parallel;
use crate::cli::table::{Cell, Table, paragraph, printable};
use crate::cli::terminal::{ASIDE, CAREFUL, GOOD, HEADING, OutputFormat, json, print, width};
use profiles::versions::catalog::VersionCatalog;
use profiles::versions::forecast::{Forecast, forecast};
use profiles::versions::garden::{Garden, Validation};
use profiles::versions::maintenance::MaintainedShoot;
use profiles::versions::still_on::{Mover, RemainingPool, Remains, StillOn, expiration, expiring, mover, remaining};
use wire::api::gardener::ProfileSpec;

/// How far the forecast continues after the time of the answer, to find the window that moves a pool.
const AFTERWARDS: SignedDuration = SignedDuration::from_hours(24 * 365);
/// Time within which every Shoot has a complete window.
const TWO_DAYS: SignedDuration = SignedDuration::from_hours(48);

/// `IMAGE@VERSION`.
#[derive(Clone, Debug)]
pub(super) struct ImageVersion {
    image: String,
    version: String,
}

impl ImageVersion {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match text.rsplit_once('@') {
            Some((image, version)) if !image.is_empty() && !version.is_empty() => {
                Ok(Self { image: image.to_owned(), version: version.to_owned() })
            }
            _ => Err("an image and its version are expected, such as gardenlinux@2001.2.0".to_owned()),
        }
    }
}

/// A Shoot that still runs the version.
struct RemainingShoot<'a> {
    input: &'a ShootInput,
    state: MaintainedShoot,
    profile: ProfileKey,
    forecast: Forecast,
    pools: Vec<RemainingPool>,
}

/// A pool that still runs the version, for output.
struct Row {
    shoot: String,
    source: String,
    profile: String,
    pool: RemainingPool,
    mover: Mover,
}

/// The complete answer.
struct Remaining {
    image: String,
    version: String,
    from: Timestamp,
    at: Timestamp,
    rows: Vec<Row>,
    evidence: Evidence,
}

pub(super) fn run(
    required: &ImageVersion,
    arguments: &ForecastArguments,
    files: &GardenFiles,
    changed: &GardenFiles,
) -> anyhow::Result<Reply> {
    let at = arguments.at.unwrap_or_else(Timestamp::now);
    let from = arguments.from.unwrap_or_else(|| today().min(at));
    if from > at {
        return Err(wrong_usage("--from must not be later than --at"));
    }
    let still_on = StillOn { image: &required.image, version: &required.version, from, at };
    let outcome = evaluate(still_on, files, changed)?;
    if outcome.evidence.count() == 0 && outcome.evidence.is_complete() {
        return Err(no_shoots(arguments));
    }
    match arguments.output {
        OutputFormat::Json => print(&json(&document(&outcome))?)?,
        _ => print(&text(&outcome, width()))?,
    }
    let exit = if outcome.rows.is_empty() { Exit::Done } else { Exit::Findings };
    Ok(Reply::new(outcome.evidence, exit))
}

fn evaluate(still_on: StillOn<'_>, files: &GardenFiles, changed: &GardenFiles) -> anyhow::Result<Remaining> {
    let specs = files.replaced_by(changed);
    let profiles = catalogs(&specs);
    let garden =
        Garden { bindings: files.bindings(), is_nginx_ingress_disabled: false, validation: Validation::WithProfile };
    let mut evidence = files.evidence.clone();
    evidence.join(changed.evidence.clone());
    let shoots = files.shoots();
    let span = [still_on.from, still_on.at + AFTERWARDS];
    let found = in_parallel(&shoots, |input| remaining_shoot(input, &profiles, &garden, still_on, span));
    let mut remaining = Vec::new();
    for result in found {
        match result {
            Ok(found) => {
                evidence.evaluated(1);
                remaining.push(found);
            }
            Err(error) => evidence.unevaluated(error),
        }
    }
    if evidence.is_complete() && !shoots.is_empty() {
        ensure_known(still_on, &specs, &remaining)?;
    }
    remaining.retain(|shoot| !shoot.pools.is_empty());
    Ok(Remaining {
        image: still_on.image.to_owned(),
        version: still_on.version.to_owned(),
        from: still_on.from,
        at: still_on.at,
        rows: rows(&remaining, &specs, &garden, still_on),
        evidence,
    })
}

fn remaining_shoot<'a>(
    input: &&'a ShootInput,
    profiles: &BTreeMap<ProfileKey, VersionCatalog<'_>>,
    garden: &Garden,
    still_on: StillOn<'_>,
    span: [Timestamp; 2],
) -> Result<RemainingShoot<'a>, String> {
    let mut state = input.state.clone();
    let error = |problem: String| format!("{}: Shoot {}: {problem}", input.source, input.state.shoot.title());
    let missing = || error(format!("CloudProfile {:?} is not given", reference(&input.state.shoot)));
    let (key, catalog) = input.profile(profiles).ok_or_else(missing)?;
    complete(&mut state.shoot, catalog.spec, still_on.from).map_err(error)?;
    let forecast = forecast(&state, catalog, garden, span);
    let pools = remaining(&state, &forecast, catalog, still_on);
    Ok(RemainingShoot { input, state, profile: key.clone(), forecast, pools })
}

/// A version that no profile and no Shoot has is a typing error, not an answer.
fn ensure_known(
    still_on: StillOn<'_>,
    specs: &BTreeMap<ProfileKey, ProfileSpec>,
    shoots: &[RemainingShoot<'_>],
) -> anyhow::Result<()> {
    let images = specs.values().flat_map(|spec| &spec.machine_images);
    let listed = images.flat_map(|image| image.versions.iter().map(|known| (&image.name, &known.version)));
    let pools = shoots.iter().flat_map(|shoot| &shoot.state.shoot.spec.provider.workers);
    let used = pools.filter_map(|pool| pool.machine.image.as_ref()).map(|image| (&image.name, &image.version));
    let known: BTreeSet<(&String, &String)> = listed.chain(used).collect();
    let is_requested = |(image, version): &&(&String, &String)| {
        image.eq_ignore_ascii_case(still_on.image) && *version == still_on.version
    };
    if known.iter().any(|known| is_requested(&known)) {
        return Ok(());
    }
    let names: Vec<String> = known.iter().map(|(image, version)| format!("{image}@{version}")).collect();
    let requested = format!("{}@{}", still_on.image, still_on.version);
    Err(no_match("image version", &requested, names.iter().map(String::as_str)))
}

/// Adds to each pool the expiration that moves it. Profiles with the same expiration are evaluated once.
fn rows(
    shoots: &[RemainingShoot<'_>],
    specs: &BTreeMap<ProfileKey, ProfileSpec>,
    garden: &Garden,
    still_on: StillOn<'_>,
) -> Vec<Row> {
    let mut by_expiration: BTreeMap<(Timestamp, &ProfileKey), Vec<&RemainingShoot<'_>>> = BTreeMap::new();
    for shoot in shoots {
        let expires = expiration(&shoot.forecast.window, still_on);
        by_expiration.entry((expires, &shoot.profile)).or_default().push(shoot);
    }
    let mut rows = Vec::new();
    for ((expires, key), shoots) in by_expiration {
        let Some(spec) = specs.get(key) else { continue };
        let spec = expiring(spec, still_on, expires);
        let catalog = VersionCatalog::new(&key.reference, &spec);
        let span = [still_on.from, expires.max(still_on.from) + TWO_DAYS];
        let of_shoots = in_parallel(&shoots, |shoot| {
            let moved = forecast(&shoot.state, &catalog, garden, span);
            let row = |pool: &RemainingPool| Row {
                shoot: shoot.state.shoot.title(),
                source: shoot.input.source.clone(),
                profile: key.reference.clone(),
                pool: pool.clone(),
                mover: mover(pool, &moved, expires, still_on),
            };
            shoot.pools.iter().map(row).collect::<Vec<_>>()
        });
        rows.extend(of_shoots.into_iter().flatten());
    }
    rows.sort_by(|a, b| (&a.shoot, &a.pool.pool).cmp(&(&b.shoot, &b.pool.pool)));
    rows
}

fn text(outcome: &Remaining, width: usize) -> String {
    let headline = outcome.evidence.headline(&summary(outcome));
    let mut text = paragraph(&headline, HEADING, 0, width);
    if outcome.rows.is_empty() {
        return text;
    }
    let mut table = Table::new(["SHOOT", "POOL", ">NODES", "WHY", "EXPIRATION THAT MOVES IT"]);
    for row in &outcome.rows {
        let reasons: Vec<String> = row.pool.reasons.iter().map(ToString::to_string).collect();
        let expiration = match &row.mover {
            Mover::NotNeeded => Cell::styled("not needed", ASIDE),
            Mover::Expiration { expires, to, in_time: true, .. } => Cell::styled(format!("{expires}, to {to}"), GOOD),
            Mover::Expiration { expires, to, window, in_time: false } => {
                Cell::styled(format!("{expires}, to {to}, but only in the window of {window}"), CAREFUL)
            }
            Mover::None(why) => Cell::styled(format!("none: {why}"), CAREFUL),
        };
        let nodes = range(row.pool.nodes.map(u64::from));
        let cells = [row.shoot.as_str().into(), row.pool.pool.as_str().into(), nodes.into(), reasons.join("; ").into()];
        let [shoot, pool, nodes, why] = cells;
        table.row([shoot, pool, nodes, why, expiration]);
    }
    text.push_str(&table.render(2, width));
    if let Some(advice) = advice(outcome) {
        text.push_str(&paragraph(&advice, HEADING, 0, width));
    }
    text
}

fn summary(outcome: &Remaining) -> String {
    let shoots: BTreeSet<&str> = outcome.rows.iter().map(|row| row.shoot.as_str()).collect();
    let all = outcome.evidence.count();
    let what = format!("{} {} at {}", printable(&outcome.image), printable(&outcome.version), outcome.at);
    let of = if all == 1 { "1 shoot".to_owned() } else { format!("{all} shoots") };
    match shoots.len() {
        0 => format!("none of {of} still runs {what}"),
        1 => format!("1 of {of} still runs {what}"),
        some => format!("{some} of {of} still run {what}"),
    }
}

/// The earliest expiration that moves every pool that any expiration moves in time.
fn advice(outcome: &Remaining) -> Option<String> {
    let in_time = outcome.rows.iter().filter_map(|row| match &row.mover {
        Mover::Expiration { expires, in_time: true, .. } => Some(*expires),
        _ => None,
    });
    let times: Vec<Timestamp> = in_time.collect();
    let earliest = times.iter().min()?;
    let pools = outcome.rows.len();
    let noun = if pools == 1 { "pool" } else { "pools" };
    Some(format!("An expiration at {earliest} or earlier moves {} of {pools} {noun} in time.", times.len()))
}

fn document(outcome: &Remaining) -> Value {
    let pools: Vec<Value> = outcome.rows.iter().map(row).collect();
    json!({
        "schema": "forecast-still-on/v1",
        "image": outcome.image,
        "version": outcome.version,
        "from": outcome.from,
        "at": outcome.at,
        "pools": pools,
        "evidence": outcome.evidence.document(),
        "errors": outcome.evidence.problems().collect::<Vec<_>>(),
    })
}

fn row(row: &Row) -> Value {
    let [minimum, maximum] = row.pool.nodes;
    let reasons: Vec<Value> = row.pool.reasons.iter().map(reason).collect();
    let mut document = json!({
        "shoot": row.shoot, "input": row.source, "cloudProfile": row.profile, "pool": row.pool.pool,
        "minimum": minimum, "maximum": maximum, "reasons": reasons,
    });
    match &row.mover {
        Mover::NotNeeded => {}
        Mover::Expiration { expires, window, to, in_time } => {
            document["expiration"] = json!({"time": expires, "window": window, "to": to, "inTime": in_time});
        }
        Mover::None(why) => document["noExpiration"] = why.as_str().into(),
    }
    document
}

fn reason(reason: &Remains) -> Value {
    let mut document = json!({"reason": reason.word(), "text": reason.to_string()});
    match reason {
        Remains::MovesLater { window, to } => {
            document["window"] = json!(window);
            document["to"] = json!(to);
        }
        Remains::ManualInPlace(window) => document["window"] = json!(window),
        Remains::Stuck { remedy, .. } => document["remedy"] = json!(remedy),
        _ => {}
    }
    document
}

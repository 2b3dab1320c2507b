//! Forecasts maintenance of a shoot run by run, until it is stable or stuck (docs/versions.md#forecast).

use std::collections::BTreeSet;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use wire::api::gardener::{VersionedPool, VersionedShootSpec};
use wire::api::gotext::version::Version;
use wire::capabilities::Classification;

use super::candidates::unfit;
use super::catalog::VersionCatalog;
use super::garden::Garden;
use super::history::{History, Step};
use super::maintenance::MaintainedShoot;
use super::measured_kubernetes::is_too_new;
use super::run::{Cause, Update, UpdatedImage};
use super::target::NoTarget;
use super::window::EffectiveWindow;

/// The earliest wake-up in a window. At its exact start, the controller would not requeue.
const EARLIEST: SignedDuration = SignedDuration::from_secs(1);
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// The finding if the random minute of the wake-up shifts the result by more than a day.
const BY_CHANCE: &str = "Chance decides: a version enters another stage within the window, and the way depends on the minute in \
                         which maintenance runs";

/// The forecast of one shoot.
#[derive(Clone, Debug)]
pub struct Forecast {
    /// Start of the forecast.
    pub from: Timestamp,
    /// When maintenance runs.
    pub window: EffectiveWindow,
    /// Whether the window is presumed: the Shoot names none, and Gardener chooses one at random when it stores the Shoot.
    pub is_window_presumed: bool,
    /// The runs that change something.
    pub steps: Vec<ForecastStep>,
    /// Versions that are stuck at the end.
    pub stuck: Vec<Stuck>,
    /// Questionable changes that Gardener nevertheless makes.
    pub findings: Vec<String>,
    /// Kubernetes versions, now or later, that are newer than the measured Gardener supports. Its rules are applied to
    /// them.
    pub too_new: Vec<String>,
}

/// A run that changes something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForecastStep {
    /// The start of its window; of the first possible one if the minute of the wake-up decides.
    pub time: Timestamp,
    /// The start of the last possible window.
    pub latest: Timestamp,
    /// Versions that change.
    pub moves: Vec<Move>,
    /// Other changes of the Shoot.
    pub operations: Vec<String>,
    /// Operations other than plain `reconcile` that gardenlet is to perform, separated by `;`.
    pub operation: Option<String>,
    /// Pools whose nodes are replaced or updated because of the changes.
    pub nodes: Vec<PoolNodes>,
}

/// A version that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The pool; `None` for the control plane.
    pub pool: Option<String>,
    /// The image; `None` for Kubernetes.
    pub image: Option<String>,
    /// The version before.
    pub from: String,
    /// The version afterwards.
    pub to: String,
    /// Why it changes.
    pub cause: Cause,
}

/// The effect on the nodes of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolNodes {
    /// Name of the pool.
    pub pool: String,
    /// Indices of the moves that cause it.
    pub causes: Vec<usize>,
    /// Whether they are updated in place instead of being replaced.
    pub in_place: bool,
    /// The minimum and maximum number of nodes, because the autoscaler decides.
    pub count: [u32; 2],
    /// How many nodes are created before others are deleted, a number or a percentage.
    pub surge: String,
    /// How many nodes are deleted before others are created.
    pub unavailable: String,
}

/// A version that can't be updated, although it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// The pool; `None` for the control plane or the whole shoot.
    pub pool: Option<String>,
    /// The image; `None` for Kubernetes or the whole shoot.
    pub image: Option<String>,
    /// The version; empty if the whole shoot is stuck.
    pub version: String,
    /// The start of the first window in which it is stuck.
    pub since: Timestamp,
    /// Why it is stuck.
    pub why: String,
    /// The remedy.
    pub remedy: String,
}

impl Forecast {
    fn of(from: Timestamp, history: &History<'_>, spec: &VersionedShootSpec, catalog: &VersionCatalog<'_>) -> Self {
        let window = *history.window();
        let maintenance = spec.maintenance.as_ref();
        let is_window_presumed = maintenance.is_none_or(|maintenance| maintenance.time_window.is_none());
        let steps: Vec<ForecastStep> = history.steps.iter().filter_map(|step| step_of(step, &window, spec)).collect();
        let stuck = stuck(from, history, catalog);
        let findings = oddities(history, catalog);
        let too_new = too_new(spec, &steps);
        Self { from, window, is_window_presumed, steps, stuck, findings, too_new }
    }
}

impl ForecastStep {
    /// Whether a move replaces or updates the nodes of a pool, even if the pool has none.
    #[must_use]
    pub fn touches(&self, pool: &VersionedPool) -> bool {
        self.moves.iter().any(|moved| touches(moved, pool))
    }

    /// The pools whose nodes a move affects, and whether an earlier move of the step affects them already.
    pub fn nodes_of(&self, moved: usize) -> impl Iterator<Item = (&PoolNodes, bool)> {
        let of_move = self.nodes.iter().filter(move |pool| pool.causes.contains(&moved));
        of_move.map(move |pool| (pool, pool.causes.first() != Some(&moved)))
    }
}

impl Move {
    /// Whether the update is forced.
    #[must_use]
    pub fn is_forced(&self) -> bool {
        self.cause != Cause::Automatic
    }
}

/// Forecasts the windows between two times.
#[must_use]
pub fn forecast(
    state: &MaintainedShoot,
    catalog: &VersionCatalog<'_>,
    garden: &Garden,
    [from, until]: [Timestamp; 2],
) -> Forecast {
    let history = |offset: SignedDuration, from: Timestamp, until: Timestamp| {
        let mut history = History::start(state.clone(), catalog, garden.clone(), offset, from);
        history.advance(until);
        history
    };
    let spec = &state.shoot.spec;
    let maintenance = spec.maintenance.as_ref();
    let window = EffectiveWindow::of(maintenance.and_then(|maintenance| maintenance.time_window.as_ref()));
    let mut early = history(EARLIEST, behind_begin(from, &window), until);
    let mut forecast = Forecast::of(from, &early, spec, catalog);
    // The minute of the wake-up matters only if a stage begins within the window: then a late run is a day ahead of an
    // early one.
    if catalog.changes().iter().any(|change| (from..until).contains(change) && window.contains(*change)) {
        let late = window.length() - EARLIEST;
        // If the forecast starts within a window, the wake-up may still follow.
        let late_from = if window.contains(from) { from.max(window.latest_start(from) + late) } else { from };
        // A late run on the last day may have the result of an early run on the first day after it, so both get one
        // more day.
        early.advance(until + DAY);
        let late = history(late, late_from, until + DAY);
        let [early, late] = [early, late].map(|history| {
            let steps = history.steps.iter().filter_map(|step| step_of(step, &window, spec));
            steps.collect()
        });
        let (mut steps, by_chance_from) = of_either(early, late);
        steps.retain(|step| step.time < until);
        forecast.too_new = too_new(spec, &steps);
        forecast.steps = steps;
        if by_chance_from.is_some_and(|from| from < until) {
            forecast.findings.push(BY_CHANCE.to_owned());
        }
    }
    forecast
}

/// Moves a start exactly at the beginning of a window behind the first wake-up. A controller that starts then would run
/// twice in the window, but one that is already running runs once.
fn behind_begin(from: Timestamp, window: &EffectiveWindow) -> Timestamp {
    let first = from + EARLIEST;
    if window.latest_start(from) == from && window.contains(first) { first } else { from }
}

/// The steps that early and late runs have in common, each with its first and last possible window. If they diverge, also
/// the remaining steps of one of them and the time from which the result depends on the minute of the wake-up.
fn of_either(early: Vec<ForecastStep>, late: Vec<ForecastStep>) -> (Vec<ForecastStep>, Option<Timestamp>) {
    let mut steps = Vec::new();
    let mut early = early.into_iter();
    let mut late = late.into_iter();
    loop {
        match (early.next(), late.next()) {
            (None, None) => return (steps, None),
            (Some(step), Some(other)) if step.moves == other.moves => {
                let (time, latest) = (step.time.min(other.time), step.time.max(other.time));
                steps.push(ForecastStep { time, latest, ..step });
            }
            (step, other) => {
                let from = [&step, &other].into_iter().flatten().map(|step| step.time).min();
                let is_early = step.is_some();
                steps.extend(step.or(other));
                if is_early {
                    steps.extend(early)
                } else {
                    steps.extend(late)
                }
                return (steps, from);
            }
        }
    }
}

/// Forecasts the first window that starts at `now` or later, and the shoot after it. If the result depends on the
/// minute, it is the one that affects the nodes of more pools.
#[must_use]
pub fn next_window(
    state: &MaintainedShoot,
    catalog: &VersionCatalog<'_>,
    garden: &Garden,
    now: Timestamp,
) -> (Forecast, MaintainedShoot) {
    let maintenance = state.shoot.spec.maintenance.as_ref();
    let window = EffectiveWindow::of(maintenance.and_then(|maintenance| maintenance.time_window.as_ref()));
    let [begin, end] = window.wake_up(now);
    let [early, late] = [begin + EARLIEST, end - EARLIEST].map(|moment| {
        // An empty window consists only of its start.
        let moment = if window.contains(moment) { moment } else { begin };
        History::start(state.clone(), catalog, garden.clone(), EARLIEST, moment)
    });
    let spec = &state.shoot.spec;
    let [of_early, of_late] = [&early, &late].map(|history| Forecast::of(now, history, spec, catalog));
    if of_early.steps == of_late.steps {
        return (of_early, early.state);
    }
    // Show the maximum possible effect.
    let is_late = touched(&of_late) > touched(&of_early);
    let (mut forecast, state) = if is_late { (of_late, late.state) } else { (of_early, early.state) };
    forecast.findings.push(BY_CHANCE.to_owned());
    (forecast, state)
}

/// The number of pools with affected nodes, and the number of all changes.
fn touched(forecast: &Forecast) -> [usize; 2] {
    let sum = |of: fn(&ForecastStep) -> usize| forecast.steps.iter().map(of).sum();
    [sum(|step| step.nodes.len()), sum(|step| step.moves.len())]
}

fn step_of(step: &Step, window: &EffectiveWindow, spec: &VersionedShootSpec) -> Option<ForecastStep> {
    let run = &step.run;
    let moves: Vec<Move> =
        run.updates().filter(|(_, update)| update.is_move()).map(|(pool, update)| to_move(pool, update)).collect();
    if moves.is_empty() && run.operations.is_empty() || run.rejected.is_some() {
        return None;
    }
    let has_nodes = |pool: &&VersionedPool| !spec.has_no_nodes() && pool.maximum != Some(0);
    let nodes = spec.provider.workers.iter().filter(has_nodes).filter_map(|pool| {
        let causes = moves.iter().enumerate().filter(|(_, moved)| touches(moved, pool)).map(|(index, _)| index);
        let causes: Vec<usize> = causes.collect();
        (!causes.is_empty()).then(|| nodes(pool, causes))
    });
    let nodes = nodes.collect();
    let time = window.latest_start(step.time);
    let operations = run.operations.clone();
    let operation = run.operation.clone();
    Some(ForecastStep { time, latest: time, moves, operations, operation, nodes })
}

/// The Kubernetes versions of a shoot, at the start and after each step, that are newer than the measured Gardener
/// supports.
fn too_new(spec: &VersionedShootSpec, steps: &[ForecastStep]) -> Vec<String> {
    let pools = spec.provider.workers.iter().filter_map(|pool| pool.kubernetes.version.as_deref());
    let first = spec.kubernetes.version.as_deref().into_iter().chain(pools);
    let moves = steps.iter().flat_map(|step| &step.moves).filter(|moved| moved.image.is_none());
    let versions: BTreeSet<&str> = first.chain(moves.map(|moved| moved.to.as_str())).collect();
    let is_too_new = |text: &&str| Version::parse(text).as_ref().is_ok_and(is_too_new);
    versions.into_iter().filter(is_too_new).map(str::to_owned).collect()
}

fn to_move(pool: Option<&str>, update: &Update) -> Move {
    Move {
        pool: pool.map(str::to_owned),
        image: update.image.as_ref().map(|image| image.name.clone()),
        from: update.from.clone(),
        to: update.to.clone().unwrap_or_default(),
        cause: update.cause,
    }
}

/// Whether a move replaces or updates the nodes of a pool: by a new image or another minor of Kubernetes. Running nodes
/// adopt a patch of Kubernetes without that.
fn touches(moved: &Move, pool: &VersionedPool) -> bool {
    match (&moved.pool, &moved.image) {
        (Some(name), Some(_)) => *name == pool.name,
        (Some(name), None) => *name == pool.name && changes_minor(moved),
        (None, _) => pool.kubernetes.version.is_none() && changes_minor(moved),
    }
}

fn changes_minor(moved: &Move) -> bool {
    let minor = |version: &str| Version::parse(version).map(|version| version.major_minor());
    minor(&moved.from) != minor(&moved.to)
}

fn nodes(pool: &VersionedPool, causes: Vec<usize>) -> PoolNodes {
    let number = |value: &Option<serde_json::Value>, default: &str| match value {
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(number) => number.to_string(),
        None => default.to_owned(),
    };
    PoolNodes {
        pool: pool.name.clone(),
        causes,
        in_place: pool.is_updated_in_place(),
        count: [pool.minimum, pool.maximum.unwrap_or_default()],
        surge: number(&pool.max_surge, "1"),
        unavailable: number(&pool.max_unavailable, "0"),
    }
}

/// Findings about unexpected behavior of Gardener.
fn oddities(history: &History<'_>, catalog: &VersionCatalog<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for step in &history.steps {
        for (pool, update) in step.run.updates() {
            let Ok(to) = &update.to else { continue };
            let whose = pool.map_or("The control plane".to_owned(), |pool| format!("Pool {pool}"));
            let listed = match &update.image {
                None => catalog.kubernetes.iter().find(|listed| listed.text == to),
                Some(image) => catalog.image(&image.name).and_then(|image| {
                    image.versions.iter().map(|version| &version.listed).find(|listed| listed.text == to)
                }),
            };
            let Some(listed) = listed else { continue };
            match listed.at(step.time) {
                Classification::Unavailable => found.push(format!("{whose} goes to {to}, which is not available yet")),
                Classification::Expired => found.push(format!("{whose} goes to {to}, which has expired as well")),
                _ if update.image.is_some()
                    && listed.version.as_ref().is_ok_and(|version| !version.prerelease.is_empty()) =>
                {
                    found.push(format!("{whose} goes to {to}, a prerelease"));
                }
                _ => {}
            }
        }
        if step.run.is_silent && step.run.images.values().any(Update::is_move) {
            found.push("Images change without a word about it in status and events".to_owned());
        }
    }
    found.dedup();
    found
}

/// What fails in the last run, since when.
fn stuck(from: Timestamp, history: &History<'_>, catalog: &VersionCatalog<'_>) -> Vec<Stuck> {
    let Some(last) =
        history.steps.last().filter(|step| Some(step.last_time) == history.first_and_last.map(|[_, last]| last))
    else {
        return Vec::new();
    };
    let window = history.window();
    let since = |fails: &dyn Fn(&Step) -> bool| {
        let failing = history.steps.iter().rev().take_while(|step| fails(step)).last().unwrap_or(last);
        window.latest_start(failing.time)
    };
    let mut stuck = Vec::new();
    for (pool, update) in last.run.updates() {
        let Err(error) = &update.to else { continue };
        let is_same = |step: &Step| step.run.updates().any(|other| other == (pool, update));
        let since = since(&is_same);
        let why = cause_of(pool, update, from, history, catalog);
        stuck.push(Stuck {
            pool: pool.map(str::to_owned),
            image: update.image.as_ref().map(|image| image.name.clone()),
            version: update.from.clone(),
            since,
            why,
            remedy: remedy(update, error),
        });
    }
    let whole = |why: String, remedy: &str, fails: &dyn Fn(&Step) -> bool| Stuck {
        pool: None,
        image: None,
        version: String::new(),
        since: since(fails),
        why,
        remedy: remedy.to_owned(),
    };
    if let Some(rejected) = &last.run.rejected {
        let remedy = "Change what it names; until then no version of the shoot is updated";
        stuck.push(whole(format!("the API server refuses the update: {rejected}"), remedy, &|step| {
            step.run.rejected.is_some()
        }));
    }
    if let Some(crash) = &last.run.crash {
        let why = format!("Gardener's controller crashes: {crash}");
        stuck.push(whole(why, "Write the Shoot again, so that the API server sets defaults", &|step| {
            step.run.crash.is_some()
        }));
    }
    if last.run.is_silent {
        let why =
            last.run.logged.iter().find_map(|line| line.strip_prefix("Failed to maintain Shoot machine images: "));
        let remedy = "Change the pool; until then the images of this pool and of those behind it stay as they are";
        stuck.push(whole(why.unwrap_or_default().to_owned(), remedy, &|step| step.run.is_silent));
    }
    stuck
}

fn cause_of(
    pool: Option<&str>,
    update: &Update,
    from: Timestamp,
    history: &History<'_>,
    catalog: &VersionCatalog<'_>,
) -> String {
    match (update.cause, &update.image) {
        (Cause::Missing, Some(image)) => match misfit_of(pool, &image.name, &update.from, history, catalog) {
            Some(misfit) => format!("the CloudProfile has it, but not for this pool: {misfit}"),
            None => "the CloudProfile does not have it".to_owned(),
        },
        (Cause::Missing, None) => "the CloudProfile does not have it".to_owned(),
        _ => {
            let image = update.image.as_ref().map(|image| image.name.as_str());
            expiration_text(catalog.expires(image, &update.from), from)
        }
    }
}

/// The day on which a version expires, or on which it has expired at the start of the forecast.
fn expiration_text(expires: Option<Timestamp>, from: Timestamp) -> String {
    let Some(time) = expires else { return "it has expired".to_owned() };
    let [day, first] = [time, from].map(|time| time.to_zoned(TimeZone::UTC).date());
    let verb = if day <= first { "expired" } else { "expires" };
    format!("it {verb} on {day}")
}

/// Why a pool can't have the version of its image that the profile has.
fn misfit_of(
    pool: Option<&str>,
    image: &str,
    version: &str,
    history: &History<'_>,
    catalog: &VersionCatalog<'_>,
) -> Option<String> {
    let spec = &history.state.shoot.spec;
    let pool = spec.provider.workers.iter().find(|known| Some(known.name.as_str()) == pool)?;
    let image_of_profile = catalog.image(image)?;
    let listed = image_of_profile.versions.iter().find(|known| known.listed.text == version)?;
    let name = &image_of_profile.image.name;
    if name != image {
        return Some(format!("the image is called {name} there"));
    }
    let kubelet = pool.kubernetes.version.as_deref().or(spec.kubernetes.version.as_deref())?;
    unfit(catalog, pool, listed, &Version::parse(kubelet).ok()?).map(|unfit| unfit.to_string())
}

/// The remedy for a missing target: the version that the CloudProfile needs.
pub(super) fn remedy(update: &Update, error: &NoTarget) -> String {
    let version = Version::parse(&update.from).ok();
    match (error, &update.image, version) {
        (NoTarget::Nothing { .. }, None, Some(version)) => format!(
            "The CloudProfile needs a version {}.{}.x that is no preview: control planes and pools go from minor to minor",
            version.major,
            version.minor + 1
        ),
        (NoTarget::Nothing { .. }, Some(UpdatedImage { name, strategy, .. }), Some(version)) if strategy == "patch" => {
            format!(
                "The CloudProfile needs a version {}.x of {name} with a minor above {} that fits the pool and is no preview, or a newer patch",
                version.major, version.minor
            )
        }
        (NoTarget::Nothing { .. }, Some(UpdatedImage { name, .. }), Some(version)) => format!(
            "The CloudProfile needs a newer version {}.x of {name} that fits the pool, or one of a higher major",
            version.major
        ),
        (NoTarget::EndOfLife { .. }, Some(UpdatedImage { name, .. }), _) => format!(
            "The CloudProfile needs a version of {name} above {} that fits the pool and is neither preview nor expired; or the pool moves to another image",
            update.from
        ),
        (error, ..) => error.to_string(),
    }
}

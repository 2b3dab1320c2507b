//! Maintenance of one shoot over time: its controller runs in every window (docs/versions.md#when).
//!
//! If a run changes nothing, all later runs have the same result until a relevant version enters another stage. So time
//! advances from one such moment to the next instead of day by day.

use jiff::{SignedDuration, Timestamp};

use super::candidates::FittingVersions;
use super::catalog::VersionCatalog;
use super::garden::Garden;
use super::maintenance::{MAINTAIN, MaintainedShoot, Pools, Surroundings, maintain, next_change, operations};
use super::run::Run;
use super::update_rules::OPERATION;
use super::window::EffectiveWindow;

const DAY: SignedDuration = SignedDuration::from_hours(24);

/// Why a run took place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The controller started within the window.
    Start,
    /// The controller woke up in the window.
    Window,
    /// The owner requested it, or moved the window.
    Event,
}

/// Consecutive runs with the same result that wrote something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Time of the first run.
    pub time: Timestamp,
    /// Time of the last run.
    pub last_time: Timestamp,
    /// Number of runs.
    pub runs: i64,
    /// Why they took place.
    pub trigger: Trigger,
    /// Their common result.
    pub run: Run,
}

/// The simulated maintenance of a shoot.
#[derive(Clone, Debug)]
pub struct History<'c> {
    /// The shoot after the last run.
    pub state: MaintainedShoot,
    /// The garden of the shoot.
    pub garden: Garden,
    /// The runs that wrote something.
    pub steps: Vec<Step>,
    /// Number of all runs.
    pub runs: i64,
    /// Times of the first and last run.
    pub first_and_last: Option<[Timestamp; 2]>,
    /// Time from the start of a window to the wake-up of the controller.
    offset: SignedDuration,
    catalog: &'c VersionCatalog<'c>,
    pools: Pools<'c>,
    window: EffectiveWindow,
    wake_up: Option<Timestamp>,
    is_deleted: bool,
}

impl<'c> History<'c> {
    /// Starts the controller. It wakes up `offset` after the start of each window, but at the latest at its end.
    #[must_use]
    pub fn start(
        state: MaintainedShoot,
        catalog: &'c VersionCatalog<'c>,
        garden: Garden,
        offset: SignedDuration,
        now: Timestamp,
    ) -> Self {
        let pools = fitting(&state, catalog);
        let window = window(&state);
        let is_deleted = state.shoot.metadata.deletion_timestamp.is_some();
        let mut history = Self {
            state,
            garden,
            steps: Vec::new(),
            runs: 0,
            first_and_last: None,
            offset,
            catalog,
            pools,
            window,
            wake_up: None,
            is_deleted,
        };
        history.reconcile(now, Trigger::Start);
        history
    }

    /// The maintenance window of the shoot.
    #[must_use]
    pub fn window(&self) -> &EffectiveWindow {
        &self.window
    }

    /// Replaces the profile.
    pub fn set_profile(&mut self, catalog: &'c VersionCatalog<'c>) {
        self.catalog = catalog;
        self.pools = fitting(&self.state, catalog);
    }

    /// Replaces the shoot, as its owner would. Runs maintenance immediately if the owner requests it or moves the
    /// window.
    pub fn set_shoot(&mut self, state: MaintainedShoot, now: Timestamp) {
        let is_newly_requested = is_maintain_requested(&state) && !is_maintain_requested(&self.state);
        self.state = state;
        self.pools = fitting(&self.state, self.catalog);
        let window = window(&self.state);
        let has_moved = window != self.window;
        self.window = window;
        if is_newly_requested || has_moved {
            self.reconcile(now, Trigger::Event);
        }
    }

    /// Deletes the shoot. Nothing happens afterwards.
    pub fn delete(&mut self) {
        self.is_deleted = true;
    }

    /// Advances the time to `until`. Runs at that moment are not included.
    pub fn advance(&mut self, until: Timestamp) {
        while self.advance_once(until) {}
    }

    /// Advances the time until the controller has woken up once, and passes over later runs with the same result.
    /// Returns whether it wakes up before `until`.
    pub fn advance_once(&mut self, until: Timestamp) -> bool {
        let Some(now) = self.wake_up.filter(|wake_up| *wake_up < until) else { return false };
        self.wake_up = None;
        if self.reconcile(now, Trigger::Window) {
            self.repeat(now, until);
        }
        true
    }

    /// One reconcile of the shoot. Returns whether the next run has the same result.
    fn reconcile(&mut self, now: Timestamp, trigger: Trigger) -> bool {
        if self.is_deleted {
            return false;
        }
        let [begin, end] = self.window.wake_up(now);
        let next = (begin + self.offset).min(end);
        // Gardener's controller does not requeue with a delay of zero.
        if next != now {
            self.wake_up = Some(self.wake_up.map_or(next, |wake_up| wake_up.min(next)));
        }
        if !self.window.contains(now) && !is_maintain_requested(&self.state) {
            return false;
        }
        let around = Surroundings { catalog: self.catalog, pools: &self.pools, now };
        let run = maintain(&mut self.state, &mut self.garden, around);
        if run.crash.is_some() {
            self.is_deleted = true;
        }
        let is_stable = run.is_stable;
        let before = self.first_and_last.map(|[_, last]| last);
        self.runs += 1;
        self.first_and_last = Some([self.first_and_last.map_or(now, |[first, _]| first), now]);
        if run.left_something() {
            self.add(Step { time: now, last_time: now, runs: 1, trigger, run }, before);
        }
        is_stable
    }

    fn add(&mut self, step: Step, before: Option<Timestamp>) {
        let is_quiet = !step.run.changes_settings && !step.run.updates().any(|(_, update)| update.is_move());
        match self.steps.last_mut() {
            Some(last)
                if is_quiet
                    && Some(last.last_time) == before
                    && last.trigger == step.trigger
                    && (Run { is_stable: true, ..last.run.clone() })
                        == (Run { is_stable: true, ..step.run.clone() }) =>
            {
                last.runs += 1;
                last.last_time = step.time;
            }
            _ => self.steps.push(step),
        }
    }

    /// Passes over the daily runs with the same result, as long as no relevant version enters another stage.
    fn repeat(&mut self, now: Timestamp, until: Timestamp) {
        if self.wake_up != Some(now + DAY) {
            return;
        }
        let days = |to: Timestamp| now.duration_until(to).as_secs() / DAY.as_secs();
        // The last moment at which a run has the same result, because a stage begins strictly after its time.
        let until = until - SignedDuration::from_nanos(1);
        let around = Surroundings { catalog: self.catalog, pools: &self.pools, now };
        let last = next_change(&self.state, around).map_or(until, |change| change.min(until));
        let passed = days(last);
        if passed <= 0 {
            return;
        }
        let last = now + DAY * i32::try_from(passed).unwrap_or(i32::MAX);
        self.runs += passed;
        if let Some(step) = self.steps.last_mut().filter(|step| step.last_time == now) {
            step.runs += passed;
            step.last_time = last;
        }
        self.first_and_last = self.first_and_last.map(|[first, _]| [first, last]);
        self.wake_up = Some(last + DAY);
    }
}

fn window(state: &MaintainedShoot) -> EffectiveWindow {
    EffectiveWindow::of(state.shoot.spec.maintenance.as_ref().and_then(|maintenance| maintenance.time_window.as_ref()))
}

fn fitting<'c>(state: &MaintainedShoot, catalog: &'c VersionCatalog<'c>) -> Pools<'c> {
    state.shoot.spec.provider.workers.iter().map(|pool| FittingVersions::new(catalog, pool)).collect()
}

fn is_maintain_requested(state: &MaintainedShoot) -> bool {
    let annotation = state.shoot.metadata.annotations.as_ref().and_then(|annotations| annotations.get(OPERATION));
    annotation.is_some_and(|text| operations(text).any(|operation| operation == MAINTAIN))
}

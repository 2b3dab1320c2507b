//! Pure: which zones of a pool get their new class now, which wait for another zone, which are on hold, and which are
//! stopped (docs/rollouts-specification.md, section 3).
//!
//! ```text
//!  0, 1  nothing to decide: the zone is being deleted, is new, or has its target class     AsToday
//!  2     no machine to protect                                                             Switch
//!  3     stop-rolls names the pool                                                         Stop
//!  4     a budget is set, the roll is unrequested, keeps the key, and has no slot          Hold
//!  5     zone by zone names the pool, and none of (a) to (d) is true                       Wait
//!  6     otherwise                                                                         Switch
//!
//!  (a)  the zone rolls already
//!  (b)  no zone rolls, and the zone is the first to decide about
//!  (c)  the key changes, and the zone lacks a machine, which its old class can't provide
//!  (d)  the zone has waited for six hours
//! ```
//!
//! While a rolling zone fails because of its class, (c) and (d) don't apply: no class provides machines then, and the
//! old machines keep running. The numbers are those of the specification. Rule P, which pauses and resumes zones, does
//! not depend on these rules: a zone that rolls has its target class already.

use jiff::{SignedDuration, Timestamp};

/// How long a zone waits for one target class, unless a rolling zone fails because of its class. gardenlet gives up
/// after twice this time.
pub const WAIT_LIMIT: SignedDuration = SignedDuration::from_hours(6);

/// Default of machine-controller-manager for the time until a new machine has to run.
const CREATION_TIMEOUT: SignedDuration = SignedDuration::from_mins(20);

/// A pool with its zones in order.
#[derive(Clone, Debug, Default)]
pub struct Pool<'a> {
    /// Whether zone by zone names the pool.
    pub is_named: bool,
    /// Whether `stop-rolls` names the pool.
    pub is_stopped: bool,
    /// What the budget allows the pool; `None` if no budget is set.
    pub budget: Option<PoolBudget>,
    /// Whether its machines are replaced, not updated in place.
    pub replaces_machines: bool,
    /// Whether the shoot is to be hibernated or is restored after a migration.
    pub has_no_machines_to_protect: bool,
    /// Time until a new machine has to run; `None` for the default of machine-controller-manager.
    pub creation_timeout: Option<SignedDuration>,
    /// Its zones, each with one MachineDeployment.
    pub zones: Vec<Zone<'a>>,
}

/// What the budget allows a pool without marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolBudget {
    /// It has no slot, and none is free.
    NoSlot,
    /// A slot is free or reserved for it.
    FreeSlot,
    /// `let-roll` names the pool, so it needs no slot.
    LetRoll,
}

/// Mark of a roll that concerns the budget, in the records of its MachineDeployments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// The roll has a slot.
    Budget,
    /// `let-roll` released the roll, which has no slot.
    Released,
}

impl Mark {
    /// Its name in records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Budget => "budget",
            Self::Released => "released",
        }
    }

    /// The mark with this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        [Self::Budget, Self::Released].into_iter().find(|mark| mark.name() == name)
    }
}

/// Facts about a zone.
#[derive(Clone, Debug, Default)]
pub struct Zone<'a> {
    /// The planned class.
    pub target_class: &'a str,
    /// Class of the live MachineDeployment; `None` if there is none.
    pub live_class: Option<&'a str>,
    /// Newest class in the record of the MachineDeployment.
    pub recorded_class: Option<String>,
    /// Since when the MachineDeployment has its live class, if that is recorded.
    pub class_since: Option<Timestamp>,
    /// Since when the zone waits for its target class, if that is recorded.
    pub waits_since: Option<Timestamp>,
    /// Whether the MachineDeployment is being deleted.
    pub is_being_deleted: bool,
    /// Whether the name of the node agent Secret stays, so that new machines of the live class can join.
    pub key_stays: bool,
    /// Whether the owner has edited what the key does not cover since the live class was recorded.
    pub is_requested: bool,
    /// Mark in the record of the MachineDeployment.
    pub mark: Option<Mark>,
    /// Whether the MachineDeployment is paused.
    pub is_paused: bool,
    /// Whether the MachineDeployment has the mark of a pause by this controller.
    pub has_pause_mark: bool,
    /// Whether all machines run with the target class, as in the progress of an operation.
    pub is_ready: bool,
    /// Its machines.
    pub machines: Machines,
}

/// Machines of a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Machines {
    /// Target number.
    pub target: usize,
    /// Existing machines, with those being deleted.
    pub existing: usize,
    /// Machines that stay and have ever run.
    pub have_run: usize,
    /// Whether a machine has another class than the live class, even if it is being deleted.
    pub are_mixed: bool,
    /// Whether a machine of the live class has ever run.
    pub class_has_run: bool,
    /// Whether a machine fails for lack of capacity or quota, or because of rate limits.
    pub lack_capacity: bool,
}

/// Decision about the class of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateVerdict {
    /// As without settings.
    AsToday,
    /// The zone gets its target class.
    Switch(SwitchReason),
    /// The zone keeps its live class until the stop ends. It waits since this time.
    Stop(Timestamp),
    /// The zone keeps its live class until its roll has a slot.
    Hold,
    /// The zone keeps its live class. It waits since this time.
    Wait(Timestamp),
}

/// Decision about `paused` of the MachineDeployment of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseDecision {
    /// It stays as it is.
    Keep,
    /// It is paused and has the mark, unless that is so already.
    Pause,
    /// The pause by this controller ends with its mark.
    Resume,
}

/// Why a zone gets its target class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchReason {
    /// It has no machine to protect.
    NoMachines,
    /// Zone by zone does not name its pool.
    NotNamed,
    /// It rolls already (a).
    RollsAlready,
    /// It is its turn (b).
    Turn,
    /// It lacks a machine, which its old class can't provide (c).
    LacksMachine,
    /// It has waited for [`WAIT_LIMIT`] (d).
    WaitLimit,
}

impl Pool<'_> {
    /// The verdict for each zone.
    #[must_use]
    pub fn gate(&self, now: Timestamp) -> Vec<GateVerdict> {
        let rolls = self.zones.iter().any(Zone::is_rolling);
        let fails = self.failing(now).next().is_some();
        let mut is_first = true;
        let verdicts = self.zones.iter().map(|zone| {
            if let Some(verdict) = self.without_order(zone, now) {
                return verdict;
            }
            let is_turn = is_first && !rolls;
            is_first = false;
            match zone.reason_to_switch(is_turn, fails, now) {
                Some(reason) => GateVerdict::Switch(reason),
                None => GateVerdict::Wait(zone.waits_since.unwrap_or(now)),
            }
        });
        verdicts.collect()
    }

    /// Rule P for each zone.
    #[must_use]
    pub fn pauses(&self) -> Vec<PauseDecision> {
        self.zones.iter().map(|zone| self.pause(zone)).collect()
    }

    fn pause(&self, zone: &Zone<'_>) -> PauseDecision {
        let is_paused_by_person = zone.is_paused && !zone.has_pause_mark;
        let can_stop = self.replaces_machines && !self.has_no_machines_to_protect;
        if zone.live_class.is_none() || zone.is_being_deleted || is_paused_by_person {
            PauseDecision::Keep
        } else if self.is_stopped && zone.machines.are_mixed && can_stop {
            PauseDecision::Pause
        } else if zone.has_pause_mark {
            PauseDecision::Resume
        } else {
            PauseDecision::Keep
        }
    }

    /// Rules 0 to 4, and pools that zone by zone does not name.
    fn without_order(&self, zone: &Zone<'_>, now: Timestamp) -> Option<GateVerdict> {
        if zone.is_being_deleted || !self.replaces_machines || !zone.has_class_to_replace() {
            Some(GateVerdict::AsToday)
        } else if self.has_no_machines_to_protect || zone.is_empty() {
            Some(GateVerdict::Switch(SwitchReason::NoMachines))
        } else if self.is_stopped {
            Some(GateVerdict::Stop(zone.waits_since.unwrap_or(now)))
        } else if self.budget.is_some() && zone.concerns_budget() && self.mark().is_none() {
            Some(GateVerdict::Hold)
        } else if !self.is_named {
            Some(GateVerdict::Switch(SwitchReason::NotNamed))
        } else {
            None
        }
    }

    /// The mark that the pool has or can get. All its zones have the same.
    fn mark(&self) -> Option<Mark> {
        let possible = match self.budget? {
            PoolBudget::NoSlot => None,
            PoolBudget::FreeSlot => Some(Mark::Budget),
            PoolBudget::LetRoll => Some(Mark::Released),
        };
        self.recorded_mark().or(possible)
    }

    fn recorded_mark(&self) -> Option<Mark> {
        self.zones.iter().filter(|zone| zone.live_class.is_some()).filter_map(|zone| zone.mark).min()
    }

    /// The mark to write together with the class of a zone with this verdict.
    #[must_use]
    pub fn mark_to_write(&self, zone: &Zone<'_>, verdict: GateVerdict) -> Option<Mark> {
        match verdict {
            GateVerdict::Switch(SwitchReason::NoMachines) => None,
            GateVerdict::Switch(_) if zone.concerns_budget() => self.mark(),
            GateVerdict::AsToday
            | GateVerdict::Switch(_)
            | GateVerdict::Stop(_)
            | GateVerdict::Hold
            | GateVerdict::Wait(_) => None,
        }
    }

    /// Whether the pool takes a slot with these verdicts. It takes none as long as its zones only wait.
    #[must_use]
    pub fn takes_slot(&self, verdicts: &[GateVerdict]) -> bool {
        let mut zones = self.zones.iter().zip(verdicts);
        let writes_mark = zones.any(|(zone, verdict)| self.mark_to_write(zone, *verdict) == Some(Mark::Budget));
        writes_mark && self.recorded_mark().is_none()
    }

    /// Whether every zone has its target class and no machine of another one, so that marks end.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.zones.iter().all(Zone::is_done)
    }

    /// Indexes of the zones that fail because of their class.
    pub fn failing(&self, now: Timestamp) -> impl Iterator<Item = usize> {
        let timeout = self.creation_timeout.unwrap_or(CREATION_TIMEOUT);
        let zones = self.zones.iter().enumerate();
        zones.filter(move |(_, zone)| zone.fails_because_of_class(timeout, now)).map(|(index, _)| index)
    }
}

impl Zone<'_> {
    /// Rule 1. A class that a person has set by hand is restored as without the setting: the record has the target
    /// class as its newest, and the MachineDeployment has another one.
    fn has_class_to_replace(&self) -> bool {
        let is_target = |class: Option<&str>| class == Some(self.target_class);
        self.live_class.is_some() && !is_target(self.live_class) && !is_target(self.recorded_class.as_deref())
    }

    fn is_empty(&self) -> bool {
        self.machines.target == 0 && self.machines.existing == 0
    }

    /// Rule 5: conditions (a) to (d). `fails`: a rolling zone of the pool fails because of its class.
    fn reason_to_switch(&self, is_turn: bool, fails: bool, now: Timestamp) -> Option<SwitchReason> {
        let has_waited = self.waits_since.is_some_and(|since| now.duration_since(since) >= WAIT_LIMIT);
        if self.machines.are_mixed {
            Some(SwitchReason::RollsAlready)
        } else if is_turn {
            Some(SwitchReason::Turn)
        } else if fails {
            None
        } else if self.lacks_machine() {
            Some(SwitchReason::LacksMachine)
        } else if has_waited {
            Some(SwitchReason::WaitLimit)
        } else {
            None
        }
    }

    /// Whether the zone lacks a machine that its old class can't provide, because the key changes.
    #[must_use]
    pub fn lacks_machine(&self) -> bool {
        !self.key_stays && self.machines.target > self.machines.have_run
    }

    /// Whether the budget can hold a roll of the zone: its old class still provides machines, and no owner waits for it.
    fn concerns_budget(&self) -> bool {
        self.key_stays && !self.is_requested
    }

    fn is_done(&self) -> bool {
        let is_complete = self.live_class == Some(self.target_class) && self.is_ready;
        self.live_class.is_none() || is_complete && !self.machines.are_mixed
    }

    /// Whether machines of several classes exist, or the target class is not complete.
    #[must_use]
    pub fn is_rolling(&self) -> bool {
        let is_incomplete = self.live_class == Some(self.target_class) && !self.is_ready;
        self.live_class.is_some() && (self.machines.are_mixed || is_incomplete)
    }

    /// By times and machines, because machine-controller-manager removes its failed machines before each new attempt.
    fn fails_because_of_class(&self, creation_timeout: SignedDuration, now: Timestamp) -> bool {
        let is_late = self.class_since.is_some_and(|since| now.duration_since(since) > creation_timeout);
        let has_target_class = self.live_class == Some(self.target_class);
        let has_reason = self.machines.class_has_run || self.machines.lack_capacity;
        has_target_class && self.is_rolling() && is_late && !has_reason
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// The rows of the specification.
    const CASES: &str = include_str!("gate/cases.json");

    fn minute(minute: i64) -> Timestamp {
        Timestamp::from_second(minute * 60).unwrap()
    }

    /// A zone of a row, whose members are those that differ from the defaults.
    fn zone<'a>(defaults: &'a Value, row: &'a Value, owner: &str) -> Zone<'a> {
        let member = |name: &str| row.get(name).unwrap_or(&defaults[name]);
        let count = |name: &str| usize::try_from(member(name).as_u64().unwrap()).unwrap();
        let is = |name: &str| member(name).as_bool().unwrap();
        let text = |name: &str| member(name).as_str();
        let waits = member("waits");
        let waits_for_target = waits["target"].as_str().is_some_and(|target| Some(target) == text("target"));
        Zone {
            target_class: text("target").unwrap(),
            live_class: text("live"),
            recorded_class: text("newest").map(str::to_owned),
            class_since: Some(minute(member("since").as_i64().unwrap())),
            waits_since: waits_for_target.then(|| minute(waits["since"].as_i64().unwrap())),
            is_being_deleted: is("deleting"),
            key_stays: text("live_key").is_some() && text("live_key") == text("target_key"),
            is_requested: text("o").is_some_and(|recorded| recorded != owner),
            mark: mark_of(member("mark")),
            is_paused: is("paused"),
            has_pause_mark: is("pause_mark"),
            is_ready: is("ready"),
            machines: Machines {
                target: count("want"),
                existing: count("have"),
                have_run: count("ran"),
                are_mixed: is("mixed"),
                class_has_run: is("class_ran"),
                lack_capacity: !member("codes").as_array().unwrap().is_empty(),
            },
        }
    }

    fn mark_of(value: &Value) -> Option<Mark> {
        match value.as_str() {
            None => None,
            Some("budget") => Some(Mark::Budget),
            Some("released") => Some(Mark::Released),
            Some(other) => panic!("{other:?}"),
        }
    }

    /// A pool of a row, with this number of free slots.
    fn pool<'a>(defaults: &'a Value, inputs: &'a Value, row: &'a Value, free: u64) -> Pool<'a> {
        let policy = &inputs["policy"];
        let owner = row["now_o"].as_str().unwrap_or("o1");
        let budget = match (policy["budget"].is_u64(), policy["let_roll"] == row["name"], free > 0) {
            (false, _, _) => None,
            (true, true, _) => Some(PoolBudget::LetRoll),
            (true, false, true) => Some(PoolBudget::FreeSlot),
            (true, false, false) => Some(PoolBudget::NoSlot),
        };
        Pool {
            is_named: row["name"] == policy["zone_by_zone"],
            is_stopped: policy["stop"] == "*" || row["name"] == policy["stop"],
            budget,
            replaces_machines: row["in_place"] != true,
            has_no_machines_to_protect: inputs["operation"] == "Restore" || inputs["hibernate"] == true,
            creation_timeout: None,
            zones: row["zones"].as_array().unwrap().iter().map(|row| zone(defaults, row, owner)).collect(),
        }
    }

    /// The verdict in the words of the rows, with its condition and the time of the wait.
    fn words(verdict: GateVerdict) -> (&'static str, Option<&'static str>, Option<Timestamp>) {
        match verdict {
            GateVerdict::AsToday => ("AsToday", None, None),
            GateVerdict::Hold => ("Hold", None, None),
            GateVerdict::Wait(since) => ("Wait", None, Some(since)),
            GateVerdict::Stop(since) => ("Stop", None, Some(since)),
            GateVerdict::Switch(reason) => {
                let condition = match reason {
                    SwitchReason::RollsAlready => Some("a"),
                    SwitchReason::Turn => Some("b"),
                    SwitchReason::LacksMachine => Some("c"),
                    SwitchReason::WaitLimit => Some("d"),
                    SwitchReason::NoMachines | SwitchReason::NotNamed => None,
                };
                ("Switch", condition, None)
            }
        }
    }

    #[test]
    fn decides_the_cases_of_the_specification() {
        let document: Value = serde_json::from_str(CASES).unwrap();
        let now = minute(document["now"].as_i64().unwrap());
        let cases = document["cases"].as_array().unwrap();
        for case in cases {
            let inputs = &case["inputs"];
            let mut free = inputs["free"].as_u64().unwrap_or_default();
            for row in inputs["pools"].as_array().unwrap() {
                let pool = pool(&document["defaults"], inputs, row, free);
                let verdicts = pool.gate(now);
                free -= u64::from(pool.takes_slot(&verdicts));
                let expected = case["expect"][row["name"].as_str().unwrap()].as_array().unwrap();
                assert_eq!(verdicts.len(), expected.len(), "{case}");
                for ((zone, verdict), expected) in pool.zones.iter().zip(verdicts).zip(expected) {
                    compare(&pool, zone, verdict, expected);
                }
            }
            assert!(case["expect"]["free"].as_u64().is_none_or(|expected| expected == free), "{case}");
        }
        assert_eq!(cases.len(), 81);
    }

    /// What rule P changes, in the words of the rows.
    fn pause_word(pool: &Pool<'_>, zone: &Zone<'_>) -> Option<&'static str> {
        match pool.pause(zone) {
            PauseDecision::Pause => (!zone.is_paused || !zone.has_pause_mark).then_some("pause"),
            PauseDecision::Resume => Some("resume"),
            PauseDecision::Keep => None,
        }
    }

    fn compare(pool: &Pool<'_>, zone: &Zone<'_>, verdict: GateVerdict, expected: &Value) {
        let (name, condition, since) = words(verdict);
        let is_not_called = expected == "None" && name == "AsToday";
        let is_name = expected == name || expected["verdict"] == name;
        assert!(is_not_called || is_name, "{verdict:?}: {expected} {pool:?}");
        assert!(expected["why"].is_null() || expected["why"].as_str() == condition, "{verdict:?}: {expected}");
        let since_minute = expected["waits_since"].as_i64().map(minute);
        assert!(since_minute.is_none() || since_minute == since, "{verdict:?}: {expected}");
        if let Some(mark) = expected.get("mark") {
            assert_eq!(pool.mark_to_write(zone, verdict), mark_of(mark), "{expected} {pool:?}");
        }
        if let Some(pause) = expected.get("pause") {
            assert_eq!(pause_word(pool, zone), pause.as_str(), "{expected} {pool:?}");
        }
        if expected["clear_mark"] == true {
            assert!(pool.budget.is_none() || pool.is_done(), "{expected} {pool:?}");
        }
    }

    fn any_class() -> impl Strategy<Value = Option<&'static str>> {
        prop::sample::select(vec![None, Some("A"), Some("B"), Some("C")])
    }

    prop_compose! {
        fn any_machines()(
            target in 0..4_usize, existing in 0..5_usize, have_run in 0..5_usize,
            are_mixed: bool, class_has_run: bool, lack_capacity: bool,
        ) -> Machines {
            Machines { target, existing, have_run, are_mixed, class_has_run, lack_capacity }
        }
    }

    fn any_time() -> impl Strategy<Value = Option<Timestamp>> {
        prop::option::of(prop_oneof![(0..2000_i64).prop_map(minute), Just(Timestamp::MIN), Just(Timestamp::MAX),])
    }

    fn any_mark() -> impl Strategy<Value = Option<Mark>> {
        prop::sample::select(vec![None, None, None, Some(Mark::Budget), Some(Mark::Released)])
    }

    fn any_budget() -> impl Strategy<Value = Option<PoolBudget>> {
        let budgets = [PoolBudget::NoSlot, PoolBudget::FreeSlot, PoolBudget::LetRoll];
        prop::option::of(prop::sample::select(budgets.to_vec()))
    }

    prop_compose! {
        fn any_zone()(
            live_class in any_class(), recorded_class in any_class(), class_since in any_time(), waits_since in any_time(),
            is_being_deleted in prop::bool::weighted(0.05), key_stays: bool, is_requested: bool, mark in any_mark(),
            is_ready: bool, machines in any_machines(), pause in any::<[bool; 2]>(),
        ) -> Zone<'static> {
            let [is_paused, has_pause_mark] = pause;
            Zone {
                target_class: "B", live_class, recorded_class: recorded_class.map(str::to_owned), class_since, waits_since,
                is_being_deleted, key_stays, is_requested, mark, is_ready, machines, is_paused, has_pause_mark,
            }
        }
    }

    prop_compose! {
        fn any_pool()(
            is_named: bool, is_stopped in prop::bool::weighted(0.3), budget in any_budget(), replaces_machines in prop::bool::weighted(0.9),
            has_no_machines_to_protect in prop::bool::weighted(0.1),
            creation_timeout in prop::option::of((0..5000_i64).prop_map(SignedDuration::from_mins)),
            zones in prop::collection::vec(any_zone(), 0..5),
        ) -> Pool<'static> {
            Pool {
                is_named, is_stopped, budget, replaces_machines, has_no_machines_to_protect, creation_timeout, zones,
            }
        }
    }

    fn waits(verdict: GateVerdict) -> bool {
        matches!(verdict, GateVerdict::Wait(_))
    }

    proptest! {
        /// A class that any program has written is never replaced by an older one: only a zone with another class waits.
        #[test]
        fn zones_with_their_target_class_never_wait(pool in any_pool(), now in any_time()) {
            let now = now.unwrap_or_default();
            for (zone, verdict) in pool.zones.iter().zip(pool.gate(now)) {
                let has_target = zone.live_class.is_none_or(|live| live == zone.target_class);
                prop_assert!(!has_target || verdict == GateVerdict::AsToday, "{zone:?}: {verdict:?}");
                if waits(verdict) {
                    prop_assert!(pool.is_named && !zone.machines.are_mixed && zone.live_class.is_some(), "{zone:?}");
                }
            }
        }

        #[test]
        fn removing_the_setting_delays_no_zone(pool in any_pool(), now in any_time()) {
            let without = Pool { is_named: false, ..pool };
            prop_assert!(!without.gate(now.unwrap_or_default()).into_iter().any(waits));
        }

        #[test]
        fn waits_end_unless_a_zone_fails(pool in any_pool()) {
            let now = minute(1000);
            let fails = pool.failing(now).next().is_some();
            for (zone, verdict) in pool.zones.iter().zip(pool.gate(now)) {
                let since = zone.waits_since.unwrap_or(now);
                prop_assert!(!waits(verdict) || fails || now.duration_since(since) < WAIT_LIMIT, "{zone:?}");
            }
        }

        #[test]
        fn some_zone_always_rolls_or_switches(pool in any_pool()) {
            let verdicts = pool.gate(minute(1000));
            let is_first_waiting = verdicts.iter().copied().any(waits);
            let proceeds = |verdict: &GateVerdict| matches!(verdict, GateVerdict::Switch(_));
            let has_rolling = pool.zones.iter().any(Zone::is_rolling);
            prop_assert!(!is_first_waiting || has_rolling || verdicts.iter().any(proceeds), "{pool:?}");
        }

        /// Properties 4, 6 and 13: only a roll that keeps the key and that no owner requested is on hold.
        #[test]
        fn only_unrequested_rolls_that_keep_the_key_are_held(pool in any_pool()) {
            for (zone, verdict) in pool.zones.iter().zip(pool.gate(minute(1000))) {
                if verdict == GateVerdict::Hold {
                    prop_assert!(pool.budget == Some(PoolBudget::NoSlot) && zone.key_stays && !zone.is_requested);
                    prop_assert!(zone.live_class.is_some_and(|live| live != zone.target_class), "{zone:?}");
                    prop_assert!(pool.zones.iter().all(|zone| zone.live_class.is_none() || zone.mark.is_none()));
                }
            }
        }

        #[test]
        fn marks_belong_to_zones_that_switch(pool in any_pool()) {
            let verdicts = pool.gate(minute(1000));
            for (zone, verdict) in pool.zones.iter().zip(&verdicts) {
                let mark = pool.mark_to_write(zone, *verdict);
                let is_counted = zone.key_stays && !zone.is_requested && pool.budget.is_some();
                prop_assert!(mark.is_none() || is_counted && matches!(verdict, GateVerdict::Switch(_)), "{zone:?}");
            }
            prop_assert!(!pool.takes_slot(&verdicts) || pool.budget == Some(PoolBudget::FreeSlot), "{pool:?}");
        }

        #[test]
        fn removing_the_budget_delays_no_zone(pool in any_pool()) {
            let without = Pool { is_named: false, budget: None, ..pool };
            let is_delayed = |verdict: &GateVerdict| waits(*verdict) || *verdict == GateVerdict::Hold;
            prop_assert!(!without.gate(minute(1000)).iter().any(is_delayed));
        }

        #[test]
        fn removing_the_stop_delays_no_zone(pool in any_pool(), now in any_time()) {
            let now = now.unwrap_or_default();
            let stopped = Pool { budget: None, is_stopped: true, ..pool };
            let without = Pool { is_stopped: false, ..stopped.clone() };
            for (before, after) in stopped.gate(now).into_iter().zip(without.gate(now)) {
                let is_stopped = matches!(before, GateVerdict::Stop(_));
                prop_assert!(is_stopped || after == before, "{before:?} {after:?}");
                prop_assert!(!matches!(after, GateVerdict::Stop(_)), "{after:?}");
            }
        }

        /// Property 10: this controller pauses zones only while they roll under a stop, and never changes the pause of a person.
        #[test]
        fn pauses_follow_the_stop(pool in any_pool()) {
            for (zone, pause) in pool.zones.iter().zip(pool.pauses()) {
                let is_bypassed = zone.is_being_deleted || zone.live_class.is_none();
                let is_paused_by_person = zone.is_paused && !zone.has_pause_mark;
                if is_bypassed || is_paused_by_person {
                    prop_assert_eq!(pause, PauseDecision::Keep);
                    continue;
                }
                let may_pause = pool.is_stopped && zone.machines.are_mixed && pool.replaces_machines
                    && !pool.has_no_machines_to_protect;
                prop_assert_eq!(pause == PauseDecision::Pause, may_pause, "{:?}", zone);
                prop_assert_eq!(pause == PauseDecision::Resume, zone.has_pause_mark && !may_pause, "{:?}", zone);
            }
        }

        /// A zone on hold is not in the order of zones, so this applies to pools without that order.
        #[test]
        fn free_slot_never_holds_more(pool in any_pool()) {
            let pool = Pool { is_named: false, ..pool };
            let with_slot = Pool { budget: pool.budget.map(|_| PoolBudget::FreeSlot), ..pool.clone() };
            for (before, after) in pool.gate(minute(1000)).iter().zip(with_slot.gate(minute(1000))) {
                prop_assert!(after != GateVerdict::Hold || *before == GateVerdict::Hold);
            }
        }
    }
}

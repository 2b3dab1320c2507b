//! The last classes of a deployment with their inputs, and the differences between them.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::worker::plan::class_inputs::Detail;
use crate::worker::plan::class_inputs::INDIRECT_PREFIX;
use crate::worker::plan::class_inputs::Inputs;
use crate::worker::plan::class_inputs::digest_of_class;
use crate::worker::plan::gate::Mark;

/// Number of classes to keep.
pub(super) const MAX_GENERATIONS: usize = 3;

/// The last classes of a machine deployment, the current one first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Granularity of the input names.
    pub detail: Detail,
    /// The classes, the current one first.
    pub generations: Vec<Generation>,
    /// Since when the current class is kept although another one is planned.
    pub wait: Option<RecordedWait>,
    /// Mark of a roll that concerns the budget. It stays until the whole pool is done.
    pub mark: Option<Mark>,
}

/// What a record contains for the budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BudgetMembers {
    /// No budget is set: a mark is removed.
    Off,
    /// A budget is set.
    On {
        /// Digest of the fields that an owner can edit while the key stays.
        owner: String,
        /// What to do with the mark.
        mark: MarkChange,
    },
}

/// What to do with the mark of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkChange {
    /// It stays as it is.
    Keep,
    /// It is written.
    Write(Mark),
    /// It is removed, because the pool is done.
    Remove,
}

/// A wait of a machine deployment for its planned class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedWait {
    /// When it began, in whole seconds.
    pub since: Timestamp,
    /// Digest of the planned class.
    pub target: String,
}

/// A class that a machine deployment has or had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generation {
    /// Name of the class.
    pub class: String,
    /// When it was recorded, in whole seconds.
    pub since: Timestamp,
    /// Whether another program created it, at an unknown time.
    pub found: bool,
    /// Inputs of its name; `None` for a class that another program created and replaced.
    pub inputs: Option<Inputs>,
    /// Digest of the fields that an owner can edit while the key stays; `None` if it was recorded without a budget.
    pub owner: Option<String>,
}

/// The change from one class to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassChange<'a> {
    /// The earlier class.
    pub from: &'a Generation,
    /// The later class.
    pub to: &'a Generation,
    /// The cause of the change.
    pub difference: Difference,
}

/// Difference between the inputs of two classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// These inputs differ.
    Inputs(Vec<InputChange>),
    /// No input differs, so it is their order.
    Order,
    /// The inputs of one class were not recorded.
    Unknown,
}

/// An input that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputChange {
    /// Path of the field.
    pub input: String,
    /// `changed`, `added` or `removed`.
    pub how: &'static str,
    /// Inputs that determine an opaque input and differ as well.
    pub because: Vec<String>,
}

impl InputChange {
    /// Whether the input is itself a hash or a name made from one.
    #[must_use]
    pub fn is_opaque(&self) -> bool {
        is_opaque(&self.input)
    }
}

fn is_opaque(input: &str) -> bool {
    ["nodeAgentSecretName", "inPlaceHash"].contains(&input)
}

/// Changed inputs by name, with their new digest; `None` for removed ones.
pub type ChangedInputs = BTreeMap<String, Option<String>>;

/// Records `class` as the target, which ends a wait; `None` if the history stays unchanged.
pub(super) fn record(
    known: Option<History>,
    live_class: Option<&str>,
    class: &str,
    inputs: &Inputs,
    budget: &BudgetMembers,
    now: Timestamp,
) -> Option<History> {
    let mut history = known.unwrap_or_default();
    let has_waited = history.wait.take().is_some();
    let has_new_class = history.record_class(live_class, class, inputs, now);
    let has_new_members = history.record_budget(budget);
    (has_waited || has_new_class || has_new_members).then_some(history)
}

/// Records a wait of the live class, with the class itself if another program has created it; `None` if the history stays
/// unchanged.
pub(super) fn record_wait(
    known: Option<History>,
    live_class: &str,
    wait: RecordedWait,
    budget: &BudgetMembers,
    now: Timestamp,
) -> Option<History> {
    let mut history = known.unwrap_or_default();
    let loses_mark = *budget == BudgetMembers::Off && history.mark.take().is_some();
    let is_recorded = history.has_newest(live_class);
    if is_recorded && !loses_mark && history.wait.as_ref() == Some(&wait) {
        return None;
    }
    history.record_found(live_class, now);
    history.wait = Some(wait);
    Some(history)
}

/// Records a hold of the live class, which ends a wait: only the fields of the owner, and only if they are not recorded
/// for the class. Otherwise, a later edit of the owner would be held too. `None` if the history stays unchanged.
pub(super) fn record_hold(known: Option<History>, live_class: &str, owner: &str, now: Timestamp) -> Option<History> {
    let mut history = known.unwrap_or_default();
    let has_waited = history.wait.take().is_some();
    if history.has_newest(live_class) && history.owner_of(live_class).is_some() {
        return has_waited.then_some(history);
    }
    history.record_found(live_class, now);
    let newest = history.generations.first_mut()?;
    newest.owner.get_or_insert_with(|| owner.to_owned());
    Some(history)
}

impl History {
    /// Makes a class the newest. Returns whether anything changed.
    fn record_class(&mut self, live_class: Option<&str>, class: &str, inputs: &Inputs, now: Timestamp) -> bool {
        let newest = self.generations.first();
        // True if any program has replaced the last recorded class.
        let was_replaced = live_class.is_some_and(|live| newest.is_none_or(|newest| newest.class != live));
        let present = self.detail.of(inputs);
        if let Some(newest) = self.generations.first_mut().filter(|newest| newest.class == class && !was_replaced) {
            // Inputs behind an opaque one can change without it. Update them, so that a later roll is not attributed to
            // them.
            let has_changed = newest.inputs.as_ref() != Some(&present);
            newest.inputs = Some(present);
            return has_changed;
        }
        let found = live_class == Some(class);
        if let Some(live) = live_class
            && !found
        {
            self.record_found(live, now);
        }
        self.push(Generation { class: class.to_owned(), since: now, found, inputs: Some(present), owner: None });
        true
    }

    /// Adds the live class if another program has created it.
    fn record_found(&mut self, live_class: &str, now: Timestamp) {
        if !self.has_newest(live_class) {
            let owner = self.owner_of(live_class).map(str::to_owned);
            let class = live_class.to_owned();
            self.push(Generation { class, since: now, found: true, inputs: None, owner });
        }
    }

    fn has_newest(&self, class: &str) -> bool {
        self.generations.first().is_some_and(|newest| newest.class == class)
    }

    /// Records the members for the budget with the newest class. Returns whether anything changed.
    fn record_budget(&mut self, budget: &BudgetMembers) -> bool {
        let (mark, owner) = match budget {
            BudgetMembers::Off => (None, None),
            BudgetMembers::On { owner, mark } => {
                let mark = match mark {
                    MarkChange::Keep => self.mark,
                    MarkChange::Write(mark) => Some(*mark),
                    MarkChange::Remove => None,
                };
                (mark, Some(owner))
            }
        };
        let mut has_changed = self.mark != mark;
        self.mark = mark;
        if let (Some(newest), Some(owner)) = (self.generations.first_mut(), owner)
            && newest.owner.as_ref() != Some(owner)
        {
            newest.owner = Some(owner.clone());
            has_changed = true;
        }
        has_changed
    }

    /// Digest of the owner's fields for a class, if it is recorded.
    #[must_use]
    pub fn owner_of(&self, class: &str) -> Option<&str> {
        self.generations.iter().find(|generation| generation.class == class)?.owner.as_deref()
    }

    /// The newest class.
    pub(crate) fn newest_class(&self) -> Option<&str> {
        self.generations.first().map(|newest| newest.class.as_str())
    }

    /// Since when the deployment has this class, if it is the newest.
    pub(crate) fn class_since(&self, class: &str) -> Option<Timestamp> {
        self.generations.first().filter(|newest| newest.class == class).map(|newest| newest.since)
    }

    /// Since when the deployment waits for this planned class.
    pub(crate) fn waits_since(&self, planned_class: &str) -> Option<Timestamp> {
        let wait = self.wait.as_ref()?;
        (wait.target == digest_of_class(planned_class)).then_some(wait.since)
    }

    fn push(&mut self, generation: Generation) {
        self.generations.insert(0, generation);
        self.generations.truncate(MAX_GENERATIONS);
    }

    /// The changes, latest first.
    pub fn changes(&self) -> impl Iterator<Item = ClassChange<'_>> {
        self.generations.windows(2).filter_map(|pair| match pair {
            [to, from] => Some(ClassChange { from, to, difference: difference(from, to) }),
            _ => None,
        })
    }
}

fn difference(from: &Generation, to: &Generation) -> Difference {
    let (Some(before), Some(after)) = (&from.inputs, &to.inputs) else { return Difference::Unknown };
    let changes = differing(before, after);
    let (behind, hashed): (Vec<_>, Vec<_>) =
        changes.into_iter().partition(|(name, _)| name.starts_with(INDIRECT_PREFIX));
    if hashed.is_empty() {
        return Difference::Order;
    }
    let behind: Vec<String> =
        behind.iter().map(|(name, _)| name.trim_start_matches(INDIRECT_PREFIX).to_owned()).collect();
    let changes = hashed.into_iter().map(|(name, how)| {
        let change = InputChange { input: name.to_owned(), how, because: Vec::new() };
        if change.is_opaque() { InputChange { because: behind.clone(), ..change } } else { change }
    });
    Difference::Inputs(changes.collect())
}

/// Inputs that differ between two classes. Opaque ones are left out if the inputs behind them differ, because those are
/// all that a Shoot alone reveals of a roll.
#[must_use]
pub fn changed_inputs(before: &Inputs, after: &Inputs) -> ChangedInputs {
    let names = differing(before, after);
    let is_explained = names.iter().any(|(name, _)| name.starts_with(INDIRECT_PREFIX));
    let names = names.into_iter().map(|(name, _)| name).filter(|name| !(is_explained && is_opaque(name)));
    names.map(|name| (name.to_owned(), after.get(name).cloned())).collect()
}

fn differing<'a>(before: &'a Inputs, after: &'a Inputs) -> Vec<(&'a str, &'static str)> {
    let added = after.iter().filter_map(|(name, digest)| match before.get(name) {
        None => Some((name.as_str(), "added")),
        Some(other) => (other != digest).then_some((name.as_str(), "changed")),
    });
    let removed = before.keys().filter(|name| !after.contains_key(*name)).map(|name| (name.as_str(), "removed"));
    let mut all: Vec<_> = added.chain(removed).collect();
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::plan::class_inputs::MAXIMUM_SIZE;
    use proptest::prelude::*;

    const OFF: BudgetMembers = BudgetMembers::Off;
    const NAMES: &str = "(volume|dataVolumes\\[[a-z]{1,15}\\])(\\.(size|type))?|~?[a-z]{1,20}(\\.[a-z]{1,20}){0,4}";

    fn any_inputs() -> impl Strategy<Value = Inputs> {
        prop::collection::btree_map(NAMES, "[0-9a-f]{8}", 0..80)
    }

    /// Records one class after the other, through the annotation as stored in a cluster.
    fn recorded(steps: &[(String, Inputs)]) -> Option<String> {
        let mut annotation: Option<String> = None;
        let mut live: Option<&str> = None;
        for (second, (class, inputs)) in (0..).zip(steps) {
            let known = annotation.as_deref().and_then(History::read);
            let now = Timestamp::from_second(second).unwrap();
            if let Some(history) = record(known, live, class, inputs, &BudgetMembers::Off, now) {
                annotation = history.write();
            }
            live = Some(class);
        }
        annotation
    }

    proptest! {
        #[test]
        fn annotation_stays_within_size(
            steps in prop::collection::vec((".{0,600}", prop::collection::btree_map(".{1,300}", "[0-9a-f]{8}", 0..20)), 1..5),
        ) {
            let annotation = recorded(&steps);
            prop_assert!(annotation.iter().all(|annotation| annotation.len() <= MAXIMUM_SIZE));
            let fits = steps.iter().all(|(class, _)| class.is_ascii() && class.len() < 254);
            prop_assert!(annotation.is_some() || !fits, "nothing is recorded of {steps:?}");
        }

        #[test]
        fn record_is_bounded_and_idempotent(
            steps in prop::collection::vec(("shoot--[a-z]{1,20}--[a-z]{1,20}-[a-z]{1,15}-[0-9a-f]{5}-z[1-3]", any_inputs()), 1..5),
        ) {
            let annotation = recorded(&steps).unwrap();
            prop_assert!(annotation.len() <= MAXIMUM_SIZE);
            let history = History::read(&annotation).unwrap();
            prop_assert_eq!(history.write(), Some(annotation));
            let (class, inputs) = steps.last().unwrap();
            prop_assert_eq!(&history.generations[0].class, class);
            prop_assert_eq!(record(Some(history), Some(class), class, inputs, &BudgetMembers::Off, Timestamp::UNIX_EPOCH), None);
        }

        #[test]
        fn names_exactly_changed_inputs(
            before in prop::collection::btree_map("[a-m]{1,8}(\\.[a-m]{1,8}){0,2}", "[0-9a-f]{8}", 2..10),
            mutations in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 1..3),
        ) {
            let mut after = before.clone();
            let mut mutated = std::collections::BTreeSet::new();
            for (index, remove) in mutations {
                let name = index.get(&before.keys().cloned().collect::<Vec<_>>()).clone();
                if remove { after.remove(&name); } else { after.insert(name.clone(), "mutated!".to_owned()); }
                mutated.insert(name);
            }
            let annotation = recorded(&[("a".to_owned(), before), ("b".to_owned(), after)]).unwrap();
            let history = History::read(&annotation).unwrap();
            prop_assert_eq!(history.detail, Detail::Fields);
            let change = history.changes().next().unwrap();
            let Difference::Inputs(inputs) = change.difference else { panic!("{:?}", change.difference) };
            let named: std::collections::BTreeSet<_> = inputs.into_iter().map(|input| input.input).collect();
            prop_assert_eq!(named, mutated);
        }

        #[test]
        fn reading_never_panics(text in "\\{?[\\[\\]{}\",:vdgctip0-9a-z]{0,60}") {
            let _ = History::read(&text);
        }
    }

    #[test]
    fn wait_is_recorded_until_the_class_changes() {
        let time = |second| Timestamp::from_second(second).unwrap();
        let wait = |target: &str| RecordedWait { since: time(5), target: target.to_owned() };
        let read = |history: Option<History>| History::read(&history.unwrap().write().unwrap()).unwrap();
        let inputs = Inputs::from([("a".to_owned(), "1".to_owned())]);
        let settled = read(record(None, None, "x", &inputs, &OFF, time(1)));
        let waiting = read(record_wait(Some(settled.clone()), "x", wait("y"), &OFF, time(5)));
        assert_eq!(waiting.wait, Some(wait("y")));
        assert_eq!(waiting.generations, settled.generations, "the inputs of the class stay");
        assert_eq!(record_wait(Some(waiting.clone()), "x", wait("y"), &OFF, time(9)), None);
        let other = read(record_wait(Some(waiting.clone()), "x", wait("z"), &OFF, time(9)));
        assert_eq!(other.wait, Some(wait("z")));
        let reverted = read(record(Some(waiting.clone()), Some("x"), "x", &inputs, &OFF, time(9)));
        assert_eq!(reverted, settled, "nothing else is left of the wait");
        let switched = read(record(Some(waiting), Some("x"), "y", &inputs, &OFF, time(9)));
        assert_eq!((switched.generations.len(), switched.wait), (2, None));
    }

    #[test]
    fn wait_records_a_foreign_class_as_found() {
        let wait = RecordedWait { since: Timestamp::UNIX_EPOCH, target: "0a".to_owned() };
        let history = record_wait(None, "x", wait.clone(), &OFF, Timestamp::UNIX_EPOCH).unwrap();
        assert!(history.generations[0].found && history.generations[0].inputs.is_none());
        let inputs = Inputs::from([("a".to_owned(), "1".to_owned())]);
        let switched = record(Some(history), Some("x"), "y", &inputs, &OFF, Timestamp::UNIX_EPOCH).unwrap();
        let classes: Vec<_> = switched.generations.iter().map(|generation| generation.class.as_str()).collect();
        assert_eq!(classes, ["y", "x"]);
    }

    /// The record after it was written and read.
    fn stored(history: Option<History>) -> History {
        History::read(&history.unwrap().write().unwrap()).unwrap()
    }

    fn on(owner: &str, mark: MarkChange) -> BudgetMembers {
        BudgetMembers::On { owner: owner.to_owned(), mark }
    }

    #[test]
    fn budget_records_owner_and_mark_with_classes() {
        let inputs = Inputs::from([("a".to_owned(), "1".to_owned())]);
        let time = Timestamp::UNIX_EPOCH;
        let record = |known: &History, live: &str, class: &str, budget: BudgetMembers| {
            record(Some(known.clone()), Some(live), class, &inputs, &budget, time)
        };
        let off = stored(super::record(None, None, "x", &inputs, &OFF, time));
        assert!(!off.write().unwrap().contains(r#""o""#), "only with a budget");
        let just_enabled = stored(record(&off, "x", "x", on("o1", MarkChange::Keep)));
        assert_eq!(just_enabled.owner_of("x"), Some("o1"));
        assert_eq!(record(&just_enabled, "x", "x", on("o1", MarkChange::Keep)), None);
        let edited = stored(record(&just_enabled, "x", "x", on("o2", MarkChange::Keep)));
        assert_eq!(edited.owner_of("x"), Some("o2"), "it follows the owner while the class is the target");
        let rolls = stored(record(&edited, "x", "y", on("o2", MarkChange::Write(Mark::Budget))));
        assert_eq!(
            (rolls.mark, rolls.owner_of("y"), rolls.owner_of("x")),
            (Some(Mark::Budget), Some("o2"), Some("o2"))
        );
        assert_eq!(record(&rolls, "y", "y", on("o2", MarkChange::Keep)), None, "the mark stays");
        let again = stored(record(&rolls, "y", "z", on("o2", MarkChange::Keep)));
        assert_eq!(again.mark, Some(Mark::Budget), "also with another class, until the pool is done");
        assert_eq!(stored(record(&rolls, "y", "y", on("o2", MarkChange::Remove))).mark, None);
        let disabled = stored(record(&rolls, "y", "y", OFF));
        assert_eq!((disabled.mark, disabled.owner_of("y")), (None, Some("o2")));
        let released = stored(record(&edited, "x", "y", on("o2", MarkChange::Write(Mark::Released))));
        assert_eq!(released.mark, Some(Mark::Released));
    }

    #[test]
    fn hold_records_only_a_missing_owner() {
        let inputs = Inputs::from([("a".to_owned(), "1".to_owned())]);
        let time = Timestamp::UNIX_EPOCH;
        let known = stored(record(None, None, "x", &inputs, &OFF, time));
        let held = stored(record_hold(Some(known.clone()), "x", "o1", time));
        assert_eq!((held.owner_of("x"), &held.generations[0].inputs), (Some("o1"), &known.generations[0].inputs));
        assert_eq!(record_hold(Some(held.clone()), "x", "o2", time), None, "the later edit is a request");
        let wait = RecordedWait { since: time, target: "0a".to_owned() };
        let waiting = stored(record_wait(Some(held.clone()), "x", wait, &on("o1", MarkChange::Keep), time));
        assert_eq!(stored(record_hold(Some(waiting), "x", "o1", time)), held, "a hold ends a wait");
        let foreign = stored(record_hold(None, "x", "o1", time));
        assert!(foreign.generations[0].found && foreign.owner_of("x") == Some("o1"));
        let returned = stored(record_hold(Some(held), "theirs", "o3", time));
        assert_eq!((returned.owner_of("theirs"), returned.owner_of("x")), (Some("o3"), Some("o1")));
    }

    #[test]
    fn wait_without_a_budget_removes_the_mark() {
        let inputs = Inputs::from([("a".to_owned(), "1".to_owned())]);
        let time = Timestamp::UNIX_EPOCH;
        let members = on("o1", MarkChange::Write(Mark::Budget));
        let marked = stored(record(None, None, "x", &inputs, &members, time));
        let wait = RecordedWait { since: time, target: "0a".to_owned() };
        let waiting = stored(record_wait(Some(marked), "x", wait.clone(), &members, time));
        assert_eq!(waiting.mark, Some(Mark::Budget));
        let without = stored(record_wait(Some(waiting), "x", wait.clone(), &OFF, time));
        assert_eq!(without.mark, None);
        assert_eq!(record_wait(Some(without), "x", wait, &OFF, time), None);
    }

    #[test]
    fn returning_class_is_new_generation() {
        let inputs = |value: &str| Inputs::from([("a".to_owned(), value.to_owned())]);
        let steps = [("x", "1"), ("y", "2"), ("x", "1")].map(|(class, value)| (class.to_owned(), inputs(value)));
        let history = History::read(&recorded(&steps).unwrap()).unwrap();
        let classes: Vec<_> = history.generations.iter().map(|generation| generation.class.as_str()).collect();
        assert_eq!(classes, ["x", "y", "x"]);
    }

    #[test]
    fn names_indirect_inputs_with_opaque_input() {
        let inputs = |value: &str| {
            let names = ["machineType", "nodeAgentSecretName", "~kubernetesVersion", "~volume.size"];
            Inputs::from(names.map(|name| (name.to_owned(), value.to_owned())))
        };
        let steps = [("x", "1"), ("y", "2")].map(|(class, value)| (class.to_owned(), inputs(value)));
        let history = History::read(&recorded(&steps).unwrap()).unwrap();
        let Some(Difference::Inputs(changes)) = history.changes().next().map(|change| change.difference) else {
            panic!("inputs differ")
        };
        let named: Vec<_> = changes
            .iter()
            .map(|change| (change.input.as_str(), change.is_opaque(), change.because.join(" ")))
            .collect();
        let behind = "kubernetesVersion volume.size".to_owned();
        assert_eq!(named, [("machineType", false, String::new()), ("nodeAgentSecretName", true, behind)]);
    }
}

//! The last classes of a deployment with their inputs, and what differs between them.

use jiff::Timestamp;

use super::{BEHIND, Detail, Inputs};

/// Classes that are remembered.
pub(super) const REMEMBERED: usize = 3;

/// The last classes of a machine deployment, the present one first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// How finely the inputs are named.
    pub detail: Detail,
    /// The classes.
    pub generations: Vec<Generation>,
}

/// A class that a machine deployment has or had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generation {
    /// Name of the class.
    pub class: String,
    /// When it was recorded, in whole seconds.
    pub since: Timestamp,
    /// Whether it was there before: another program made it, at an unknown time.
    pub found: bool,
    /// What its name is made of; `None` for a class that another program made and replaced.
    pub inputs: Option<Inputs>,
}

/// The change from one class to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassChange<'a> {
    /// The class before.
    pub from: &'a Generation,
    /// The class after.
    pub to: &'a Generation,
    /// What caused it.
    pub difference: Difference,
}

/// What differs between the inputs of two classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// These inputs do.
    Inputs(Vec<InputChange>),
    /// None does, so it is their order.
    Order,
    /// The inputs of one of them were not recorded.
    Unknown,
}

/// An input that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputChange {
    /// Path of the field.
    pub input: String,
    /// `changed`, `added` or `removed`.
    pub how: &'static str,
    /// What stands behind an opaque input and differs as well.
    pub because: Vec<String>,
}

/// The history after `class` is wanted; `None` when it stays as it is.
pub(super) fn record(
    known: Option<History>,
    live_class: Option<&str>,
    class: &str,
    inputs: &Inputs,
    now: Timestamp,
) -> Option<History> {
    let mut history = known.unwrap_or(History { detail: Detail::Fields, generations: Vec::new() });
    let newest = history.generations.first();
    // Whoever did it: the live class is not the one that was recorded last.
    let was_replaced = live_class.is_some_and(|live| newest.is_none_or(|newest| newest.class != live));
    let present = history.detail.of(inputs);
    if let Some(newest) = history.generations.first_mut().filter(|newest| newest.class == class && !was_replaced) {
        // What stands behind an opaque input can change without it; a later roll must not be blamed on that.
        if newest.inputs.as_ref() == Some(&present) {
            return None;
        }
        newest.inputs = Some(present);
        return Some(history);
    }
    let found = live_class == Some(class);
    if let Some(live) = live_class.filter(|_| was_replaced && !found) {
        history.push(Generation { class: live.to_owned(), since: now, found: true, inputs: None });
    }
    history.push(Generation { class: class.to_owned(), since: now, found, inputs: Some(present) });
    Some(history)
}

impl History {
    fn push(&mut self, generation: Generation) {
        self.generations.insert(0, generation);
        self.generations.truncate(REMEMBERED);
    }

    /// The changes, the last one first.
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
    let (behind, hashed): (Vec<_>, Vec<_>) = changes.into_iter().partition(|(name, _)| name.starts_with(BEHIND));
    if hashed.is_empty() {
        return Difference::Order;
    }
    let behind: Vec<String> = behind.iter().map(|(name, _)| name.trim_start_matches(BEHIND).to_owned()).collect();
    let changes = hashed.into_iter().map(|(name, how)| {
        let is_opaque = ["nodeAgentSecretName", "inPlaceHash"].contains(&name);
        InputChange { input: name.to_owned(), how, because: if is_opaque { behind.clone() } else { Vec::new() } }
    });
    Difference::Inputs(changes.collect())
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

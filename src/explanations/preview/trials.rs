//! Finds the changed inputs that cause an effect on a placement.
//!
//! A change is a cause if the new inputs without it have another effect. If no change is (for example because either of
//! two is enough), a change that has an effect on the old inputs alone is a cause. Causes are found by planning, not
//! with a table of fields. The search starts with groups of changes and halves those that have an effect, because most
//! changes in a landscape have none.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::cause::Cause;
use super::cloud_profile::{CloudProfiles, ProfileStep};
use super::difference::{Change, ChangeKind, ChangedObject, Path, apply, difference};
use super::inputs::{Document, Inputs};
use super::rendered_pools::{Failure, RenderedPools, needs_profile, render_pools};
use super::rule::{Effect, effect};
use decisions::worker::machines::machine_objects::MachineObjects;
use wire::api::gotext::json::to_go_json;
use wire::api::secret::Secrets;

/// Two Workers with their rendered pools, and all changes between their inputs.
pub(super) struct Trials<'a> {
    old: &'a Inputs,
    new: &'a Inputs,
    context: TrialContext<'a>,
    changes: Vec<Change>,
    /// The range of the CloudProfile's changes in `changes`.
    profile: Option<(Range<usize>, Arc<ProfileStep>)>,
    /// Secrets of both sides: a Secret that the Worker did not refer to before can't have had an effect.
    secrets: Secrets,
    rendered: RefCell<RenderedTrials>,
}

/// The context that every trial is rendered in.
#[derive(Clone, Copy)]
pub(super) struct TrialContext<'a> {
    pub(crate) live: &'a MachineObjects,
    /// The state of the cloud, if known.
    pub(crate) cloud: Option<&'a Value>,
}

/// Trials rendered so far, by the indices of the applied changes.
type RenderedTrials = HashMap<Vec<usize>, Rc<Result<RenderedPools, Failure>>>;

#[derive(Clone, Copy)]
enum Direction {
    /// Applies some of the changes to the old inputs.
    Forward,
    /// Omits some of the changes from the new inputs.
    Backward,
}

/// The effect by change and name of the deployment; `None` if it can't be planned.
type Blame = BTreeMap<(usize, String), Option<Effect>>;

impl<'a> Trials<'a> {
    /// Collects all changes between two inputs whose pools are rendered in the same context.
    pub(super) fn new(
        (old, old_rendered): (&'a Inputs, Result<RenderedPools, Failure>),
        (new, new_rendered): (&'a Inputs, Result<RenderedPools, Failure>),
        context: TrialContext<'a>,
        profiles: &CloudProfiles,
    ) -> Self {
        let mut changes = Vec::new();
        // A Worker derived from its Shoot changes only because the Shoot does, so its changes are not causes themselves.
        let is_made = old.made_from_shoot.is_some() && new.made_from_shoot.is_some();
        if !is_made {
            let members = ["spec", "status.providerStatus"];
            changes = difference(&ChangedObject::Worker, &old.worker.value, &new.worker.value, &members);
        }
        if let (Some(old), Some(new)) = (&old.shoot, &new.shoot) {
            changes.extend(difference(&ChangedObject::Shoot, &old.value, &new.value, &["spec", "status"]));
        }
        let both = old.secret_references();
        let mut secrets = (*old.secrets).clone();
        for (namespace, name) in if is_made { BTreeSet::new() } else { old.changed_secrets(new) } {
            if both.contains(&(namespace.clone(), name.clone()))
                && new.secret_references().contains(&(namespace.clone(), name.clone()))
            {
                changes.push(Change {
                    object: ChangedObject::Secret { namespace, name },
                    path: Path::default(),
                    old: None,
                    new: None,
                    kind: ChangeKind::Value,
                });
            } else if let Some(content) = new.secrets.get(&namespace, &name) {
                secrets.insert(&namespace, &name, content.clone());
            }
        }
        let profile = match (&old.cloud_profile, &new.cloud_profile) {
            (Some(old), Some(new)) if !Arc::ptr_eq(old, new) => {
                let step = profiles.step(old, new);
                let start = changes.len();
                changes.extend(step.changes.iter().cloned());
                Some((start..changes.len(), step))
            }
            _ => None,
        };
        let everything = (0..changes.len()).collect();
        let rendered = HashMap::from([(everything, Rc::new(new_rendered)), (Vec::new(), Rc::new(old_rendered))]);
        Self { old, new, context, changes, profile, secrets, rendered: RefCell::new(rendered) }
    }

    /// Every change, whether it has an effect or not.
    pub(super) fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Returns the causes for each of the given deployments.
    ///
    /// If only the CloudProfile changed, pools of other Workers with the same cache key have the same causes. Reusing
    /// them keeps previews of a landscape fast, because a changed profile affects every Worker.
    pub(super) fn causes(&self, targets: &BTreeSet<String>) -> BTreeMap<String, Vec<Cause>> {
        let Some((range, step)) = self.profile.as_ref().filter(|(range, _)| range.len() == self.changes.len()) else {
            return self.search_causes(targets);
        };
        debug_assert_eq!(range.start, 0, "there are no other changes");
        let cache_keys: BTreeMap<&String, Option<String>> =
            targets.iter().map(|target| (target, self.cache_key(target))).collect();
        let mut causes = BTreeMap::new();
        for (target, cache_key) in &cache_keys {
            if let Some(known) = cache_key.as_ref().and_then(|cache_key| step.known_causes(cache_key)) {
                causes.insert((*target).clone(), known);
            }
        }
        let unknown = targets.iter().filter(|target| !causes.contains_key(*target)).cloned().collect();
        for (target, found) in self.search_causes(&unknown) {
            if let Some(Some(cache_key)) = cache_keys.get(&target) {
                step.keep_causes(cache_key.clone(), &found);
            }
            causes.insert(target, found);
        }
        causes
    }

    /// Everything that decides which part of a CloudProfile a pool uses, and the effect on its placement.
    fn cache_key(&self, target: &str) -> Option<String> {
        let everything: Vec<usize> = (0..self.changes.len()).collect();
        let old = self.rendered(&[]);
        let new = self.rendered(&everything);
        let placement = |rendered: &Result<RenderedPools, Failure>| {
            let placement = rendered.as_ref().ok()?.placements.get(target)?;
            Some(placement.pool.clone())
        };
        let name = placement(&old).or_else(|| placement(&new))?;
        let requested = needs_profile(self.old, &name)?;
        let worker_type = &self.old.worker.value["spec"]["type"];
        Some(to_go_json(&json!([worker_type, requested, self.whole_effect(target)])))
    }

    fn search_causes(&self, targets: &BTreeSet<String>) -> BTreeMap<String, Vec<Cause>> {
        let mut causes: BTreeMap<String, Vec<Cause>> = BTreeMap::new();
        if targets.is_empty() || self.changes.is_empty() {
            return causes;
        }
        let all = 0..self.changes.len();
        let mut blame = Blame::new();
        self.search(Direction::Backward, &all, targets, &mut blame);
        let is_unexplained = |target: &&String| !blame.keys().any(|(_, name)| name == *target);
        // Either of two changes is enough, so omitting one of them has no effect.
        let unexplained: BTreeSet<String> = targets.iter().filter(is_unexplained).cloned().collect();
        self.search(Direction::Forward, &all, &unexplained, &mut blame);
        for ((index, name), effect) in blame {
            let effect = effect.unwrap_or_else(|| self.effect_alone(index, &name));
            if let Some(change) = self.changes.get(index) {
                causes.entry(name).or_default().push(Cause { change: change.clone(), effect, joint: false });
            }
        }
        for target in targets {
            let whole = self.whole_effect(target);
            if !whole.is_none() && !causes.contains_key(target) {
                let joint = |change: &Change| Cause { change: change.clone(), effect: whole, joint: true };
                causes.insert(target.clone(), self.changes.iter().map(joint).collect());
            }
        }
        causes
    }

    /// The effect on the old inputs, used if the new inputs without the change can't be planned.
    fn effect_alone(&self, index: usize, name: &str) -> Effect {
        let old = self.rendered(&[]);
        let trial = self.rendered(&[index]);
        let alone = effect_of(&old, &trial, name).flatten().filter(|effect| !effect.is_none());
        alone.unwrap_or_else(|| self.whole_effect(name))
    }

    fn whole_effect(&self, name: &str) -> Effect {
        let everything: Vec<usize> = (0..self.changes.len()).collect();
        let old = self.rendered(&[]);
        let new = self.rendered(&everything);
        effect_of(&old, &new, name).flatten().unwrap_or(Effect::NONE)
    }

    fn search(&self, direction: Direction, range: &Range<usize>, targets: &BTreeSet<String>, blame: &mut Blame) {
        let everything = 0..self.changes.len();
        let (from, to): (Vec<usize>, Vec<usize>) = match direction {
            Direction::Forward => (Vec::new(), range.clone().collect()),
            Direction::Backward => {
                (everything.clone().filter(|index| !range.contains(index)).collect(), everything.collect())
            }
        };
        let from = self.rendered(&from);
        let to = self.rendered(&to);
        let affected: BTreeMap<String, Option<Effect>> = targets
            .iter()
            .filter_map(|name| Some((name.clone(), effect_of(&from, &to, name)?)))
            .filter(|(_, effect)| effect.is_none_or(|effect| !effect.is_none()))
            .collect();
        if affected.is_empty() {
            return;
        }
        if range.len() == 1 {
            blame.extend(affected.into_iter().map(|(name, effect)| ((range.start, name), effect)));
            return;
        }
        let middle = range.start + range.len() / 2;
        self.search(direction, &(range.start..middle), targets, blame);
        self.search(direction, &(middle..range.end), targets, blame);
    }

    /// Renders the old inputs with the chosen changes.
    fn rendered(&self, chosen: &[usize]) -> Rc<Result<RenderedPools, Failure>> {
        if let Some(known) = self.rendered.borrow().get(chosen) {
            return Rc::clone(known);
        }
        let trial = Rc::new(
            self.inputs(chosen).and_then(|inputs| render_pools(&inputs, self.context.live, self.context.cloud)),
        );
        self.rendered.borrow_mut().insert(chosen.to_vec(), Rc::clone(&trial));
        trial
    }

    fn inputs(&self, chosen: &[usize]) -> Result<Inputs, Failure> {
        let of = |object: &ChangedObject| {
            let changes = chosen.iter().filter_map(|index| self.changes.get(*index));
            changes.filter(|change| change.object == *object).collect::<Vec<_>>()
        };
        let mut secrets = self.secrets.clone();
        for index in chosen {
            if let Some(ChangedObject::Secret { namespace, name }) =
                self.changes.get(*index).map(|change| &change.object)
            {
                let content = self.new.secrets.get(namespace, name).cloned().unwrap_or_default();
                secrets.insert(namespace, name, content);
            }
        }
        let cloud_profile = match &self.profile {
            None => self.old.cloud_profile.clone(),
            Some((range, step)) => {
                let chosen = chosen.iter().filter(|index| range.contains(index)).map(|index| index - range.start);
                let profile = step.with(&chosen.collect::<Vec<_>>());
                Some(profile.map_err(|error| Failure::unreadable(&error.within("CloudProfile")))?)
            }
        };
        let shoot = self.old.shoot.as_ref().map(|shoot| changed(shoot, &of(&ChangedObject::Shoot)));
        if let (Some(source), Some(_)) = (&self.old.made_from_shoot, &self.new.made_from_shoot) {
            return source.made(&Inputs { shoot, cloud_profile, ..self.old.clone() }, Some(self.old));
        }
        Ok(Inputs {
            worker: changed(&self.old.worker, &of(&ChangedObject::Worker)),
            shoot,
            cloud_profile,
            secrets: Arc::new(secrets),
            providers: self.old.providers,
            image_policy: self.old.image_policy,
            made_from_shoot: None,
        })
    }
}

/// Returns the same document if nothing changes, so that it is decoded only once.
fn changed<T: DeserializeOwned>(document: &Arc<Document<T>>, changes: &[&Change]) -> Arc<Document<T>> {
    if changes.is_empty() {
        return Arc::clone(document);
    }
    Arc::new(Document::new(apply(&document.value, changes.iter().copied())))
}

/// The effect on a placement. The outer `None` means that neither side can be planned, the inner `None` that one side
/// can't.
#[expect(clippy::option_option, reason = "two ways of not knowing, of which one is an effect")]
fn effect_of(
    from: &Result<RenderedPools, Failure>,
    to: &Result<RenderedPools, Failure>,
    name: &str,
) -> Option<Option<Effect>> {
    let (from, to) = match (from, to) {
        (Ok(from), Ok(to)) => (from, to),
        (Err(_), Err(_)) => return None,
        _ => return Some(None),
    };
    let old = from.placements.get(name);
    let new = to.placements.get(name);
    let pool = old.or(new).map(|placement| placement.pool.as_str())?;
    match (from.failed_pools.contains_key(pool), to.failed_pools.contains_key(pool)) {
        (false, false) => Some(Some(effect(old, new))),
        (true, true) => None,
        _ => Some(None),
    }
}

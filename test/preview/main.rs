//! Proves `preview`: for generated single and double mutations of realistic Workers, the predicted verdict equals the
//! result of machine-controller-manager's rule on the rendered objects, and the named cause is the mutated field.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]
#![allow(clippy::print_stdout, reason = "the report is for people")]

mod class_images;
mod first_pool;
mod landscape;
mod mutation;
mod oracle;
mod pool_mutation;
mod world;

use std::collections::{BTreeMap, BTreeSet};

use gardener_extension_worker::preview::{
    Baseline, ChangedObject, CloudProfiles, PlacementChange, WorkerChange, compare,
};
use gardener_extension_worker::worker::machines::machine_objects::{LiveDeployment, MachineObjects};
use serde_json::{Value, json};

use mutation::{Mutation, mutations};
use oracle::{NOTHING, Rendered, as_cluster, as_live, cloud_of, evaluate, render};
use world::{World, worlds};

const DOUBLES: usize = 600;

/// The figures of a comparison, for the report.
#[derive(Default)]
struct Count {
    mutations: usize,
    placements: usize,
    verdicts: BTreeMap<&'static str, usize>,
    new_nodes_differ: usize,
    causes: usize,
    unplannable: usize,
    wrong: Vec<String>,
}

impl Count {
    fn report(&self, what: &str) {
        println!(
            "{what}: {} mutations, {} placements, verdicts {:?}, new nodes differ {}, causes named {}, not plannable {}, wrong {}",
            self.mutations,
            self.placements,
            self.verdicts,
            self.new_nodes_differ,
            self.causes,
            self.unplannable,
            self.wrong.len()
        );
        assert!(self.wrong.is_empty(), "{}", self.wrong.iter().take(20).cloned().collect::<Vec<_>>().join("\n"));
    }
}

/// Pseudorandom numbers from a seed, the same on every machine (splitmix64).
struct Dice(u64);

impl Dice {
    fn throw(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % sides as u64).unwrap()
    }
}

/// A world's objects in a cluster: with replicas set by the autoscaler, and annotations of other programs.
fn lived_in(world: &World, dice: &mut Dice) -> MachineObjects {
    let cloud = cloud_of(world);
    let mut live = as_live(&render(world, &MachineObjects::default(), cloud.as_ref()).unwrap());
    for deployment in live.deployments.values_mut() {
        let mut document = deployment.document.clone();
        if document["spec"]["replicas"] != json!(0) {
            document["spec"]["replicas"] = json!(1 + dice.throw(4));
        }
        document["spec"]["template"]["metadata"]["annotations"] = json!({"restarted": "yesterday"});
        *deployment = LiveDeployment::read_without_codes(document).unwrap();
    }
    live
}

struct Bench<'a> {
    world: &'a World,
    live: MachineObjects,
    old: Rendered,
    basis: MachineObjects,
    profiles: CloudProfiles,
}

impl<'a> Bench<'a> {
    fn new(world: &'a World, live: MachineObjects) -> Self {
        let old = render(world, &live, cloud_of(world).as_ref()).unwrap();
        Self { world, basis: as_live(&old), live, old, profiles: CloudProfiles::default() }
    }

    /// The assumed cloud state, before and after.
    fn cloud(&self, new: &World) -> Option<Value> {
        cloud_of(self.world).or_else(|| cloud_of(new))
    }

    fn preview(&self, new: &World) -> WorkerChange {
        let (old, new) = (self.world.inputs(&self.profiles), new.inputs(&self.profiles));
        compare(Some(&old), Some(&new), &self.live, Baseline::Rendered, &self.profiles)
    }

    /// Compares a prediction with the oracle. `alone` contains each mutation, with the world that has only this
    /// mutation and the world that has all others.
    fn check(&self, who: &str, new: &World, alone: &[(&Mutation, World, World)], count: &mut Count) {
        count.mutations += 1;
        let predicted = self.preview(new);
        let cloud = self.cloud(new);
        let Some(after) = render(new, &self.basis, cloud.as_ref()) else {
            count.unplannable += 1;
            let is_recorded = predicted.breaks() && predicted.placements.iter().all(|placement| !placement.is_change());
            if !is_recorded {
                count.wrong.push(format!("{who}: can't be planned, but that is not said"));
            }
            return;
        };
        let message: BTreeSet<&str> = predicted
            .findings
            .iter()
            .filter(|finding| finding.kind == gardener_extension_worker::preview::FindingKind::CannotBePlanned)
            .filter_map(|finding| finding.pool.as_deref())
            .collect();
        let failed: BTreeSet<&str> = after.failed.iter().map(String::as_str).collect();
        count.unplannable += failed.len();
        if message != failed {
            count.wrong.push(format!("{who}: pools {failed:?} can't be planned, said {message:?}"));
        }
        let names: BTreeSet<&String> = self.old.deployments.keys().chain(after.deployments.keys()).collect();
        if names.len() != predicted.placements.len() {
            count.wrong.push(format!("{who}: {} placements, {} predicted", names.len(), predicted.placements.len()));
        }
        for placement in &predicted.placements {
            self.check_placement(who, placement, &after, cloud.as_ref(), alone, count);
        }
    }

    fn check_placement(
        &self,
        who: &str,
        placement: &PlacementChange,
        after: &Rendered,
        cloud: Option<&Value>,
        alone: &[(&Mutation, World, World)],
        count: &mut Count,
    ) {
        let name = placement.deployment.as_str();
        let expected = evaluate(name, &self.old, after);
        count.placements += 1;
        *count.verdicts.entry(expected.0).or_default() += 1;
        count.new_nodes_differ += usize::from(expected.1);
        let got = (placement.verdict.word(), placement.new_nodes_differ);
        if got != expected {
            count.wrong.push(format!("{who}: {name}: the rule says {expected:?}, predicted {got:?}"));
        }
        let named: BTreeSet<(String, String)> = placement
            .causes
            .iter()
            .map(|cause| match &cause.change.object {
                ChangedObject::Secret { name, .. } => ("Secret".to_owned(), name.clone()),
                object => (format!("{object:?}"), cause.change.path.to_string()),
            })
            .collect();
        let mut blamed = BTreeSet::new();
        if expected != NOTHING {
            let id = |mutation: &Mutation| (mutation.object.to_owned(), mutation.field.clone());
            for (mutation, _, without) in alone {
                if self.matters(name, after, render(without, &self.basis, cloud).as_ref()) {
                    blamed.insert(id(mutation));
                }
            }
            // Each mutation may be sufficient without the other.
            if blamed.is_empty() {
                for (mutation, only, _) in alone {
                    if self.matters(name, &self.old, render(only, &self.basis, cloud).as_ref()) {
                        blamed.insert(id(mutation));
                    }
                }
            }
        }
        count.causes += named.len();
        if named != blamed {
            count.wrong.push(format!("{who}: {name} {expected:?}: causes are {blamed:?}, named {named:?}"));
        }
        if let ([cause], [_]) = (placement.causes.as_slice(), alone) {
            let effect = (cause.effect.verdict.word(), cause.effect.new_nodes_differ);
            if effect != expected {
                count.wrong.push(format!("{who}: {name}: the only cause has the effect {effect:?}, not {expected:?}"));
            }
        }
    }

    /// Whether a deployment differs between two worlds. It also differs if it can be planned in only one of them.
    fn matters(&self, name: &str, one: &Rendered, other: Option<&Rendered>) -> bool {
        let Some(other) = other else { return true };
        let pool = [one, other].iter().find_map(|side| side.deployments.get(name)).map(|seen| seen.pool.clone());
        let fails = |side: &Rendered| pool.as_ref().is_some_and(|pool| side.failed.contains(pool));
        match (fails(one), fails(other)) {
            (true, true) => false,
            (false, false) => evaluate(name, one, other) != NOTHING,
            _ => true,
        }
    }
}

#[test]
fn single_mutations() {
    let mut total = Count::default();
    let mut dice = Dice(1);
    for (name, world) in worlds() {
        let fresh = Bench::new(&world, MachineObjects::default());
        let lived_in = Bench::new(&world, lived_in(&world, &mut dice));
        for mutation in mutations(&world) {
            let new = mutation.of(&world);
            for (bench, state) in [(&fresh, "fresh"), (&lived_in, "lived in")] {
                let who = format!("{name} ({state}), {} {}", mutation.object, mutation.field);
                bench.check(&who, &new, &[(&mutation, new.clone(), world.clone())], &mut total);
            }
        }
    }
    total.report("single");
    assert!(total.mutations >= 1000, "too few");
}

/// The old side consists of a cluster's objects. The verdict is the same if they equal the result of the old inputs.
/// Otherwise the object itself is named as the cause.
#[test]
fn live_objects_as_the_old_side() {
    let mut total = Count::default();
    for (name, world) in worlds() {
        let old = render(&world, &MachineObjects::default(), cloud_of(&world).as_ref()).unwrap();
        let (cluster, profiles) = (as_cluster(&old), CloudProfiles::default());
        let inputs = world.inputs(&profiles);
        let live = |new: &World, objects: &MachineObjects| {
            compare(Some(&inputs), Some(&new.inputs(&profiles)), objects, Baseline::Live, &profiles)
        };
        for mutation in mutations(&world) {
            let new = mutation.of(&world);
            let cloud = cloud_of(&world).or_else(|| cloud_of(&new));
            let Some(after) = render(&new, &cluster, cloud.as_ref()) else { continue };
            total.mutations += 1;
            for placement in live(&new, &cluster).placements {
                // Bounds are published in the status, which this cluster does not have.
                let (expected, differ) = evaluate(&placement.deployment, &old, &after);
                let got = placement.verdict.word();
                let unseen_bounds = expected == "SCALE" && ["NONE", "METADATA"].contains(&got);
                total.placements += 1;
                *total.verdicts.entry(got).or_default() += 1;
                if (got != expected && !unseen_bounds && expected != "METADATA") || placement.new_nodes_differ != differ
                {
                    total.wrong.push(format!("{name}, {}: {expected}, predicted {got}", mutation.field));
                }
            }
        }
        let mut drifted = cluster.clone();
        for deployment in drifted.deployments.values_mut() {
            let mut document = deployment.document.clone();
            document["spec"]["template"]["spec"]["class"]["name"] = json!("made-by-another");
            *deployment = LiveDeployment::read_without_codes(document).unwrap();
        }
        assert!(live(&world, &cluster).placements.iter().all(|placement| !placement.is_change()), "{name}");
        for placement in live(&world, &drifted).placements {
            assert!(placement.verdict.is_roll(), "{name}: {}", placement.deployment);
            assert_eq!(placement.causes[0].change.object, ChangedObject::MachineDeployment, "{name}");
        }
    }
    total.report("live");
}

#[test]
fn double_mutations() {
    let mut total = Count::default();
    let mut dice = Dice(2);
    let worlds = worlds();
    let benches: Vec<_> = worlds
        .iter()
        .map(|(name, world)| (*name, Bench::new(world, lived_in(world, &mut dice)), mutations(world)))
        .collect();
    while total.mutations < DOUBLES {
        let (name, bench, mutations) = &benches[dice.throw(benches.len())];
        let (first, second) = (&mutations[dice.throw(mutations.len())], &mutations[dice.throw(mutations.len())]);
        let (only_first, only_second) = (first.of(bench.world), second.of(bench.world));
        let both = second.of(&only_first);
        // Two changes of one field are one change. If both change one list, neither has a field of its own.
        let independent = !first.overlaps(second)
            && both == first.of(&only_second)
            && both != only_first
            && both != only_second
            && !touch_one_list(first, second);
        if independent {
            let who = format!("{name}, {} {} + {} {}", first.object, first.field, second.object, second.field);
            let alone = [(first, only_first.clone(), only_second.clone()), (second, only_second, only_first)];
            bench.check(&who, &both, &alone, &mut total);
        }
    }
    total.report("double");
}

/// Entries named by position get another name if another change moves or renames entries of the same list.
fn touch_one_list(first: &Mutation, second: &Mutation) -> bool {
    let list = |mutation: &Mutation| mutation.field.rfind('[').map(|end| mutation.field[..end].to_owned());
    let by_position = |mutation: &Mutation| {
        mutation.field.split('[').skip(1).any(|part| {
            part.starts_with(|first: char| first.is_ascii_digit())
                && part[..part.find(']').unwrap_or(0)].parse::<u32>().is_ok()
        })
    };
    first.object == second.object
        && (by_position(first) || by_position(second))
        && (list(first) == list(second)
            || list(first).is_some_and(|list| second.field.starts_with(&list))
            || list(second).is_some_and(|list| first.field.starts_with(&list)))
}

/// Without a query to Azure, the effect of a changed CloudProfile on scale sets is predicted, and so are their new
/// names.
#[test]
fn scale_sets_roll_and_come() {
    let (_, flat) = worlds().into_iter().find(|(_, world)| cloud_of(world).is_some()).unwrap();
    let profiles = CloudProfiles::default();
    let of = |new: &World| {
        let (old, new) = (flat.inputs(&profiles), new.inputs(&profiles));
        compare(Some(&old), Some(&new), &MachineObjects::default(), Baseline::Rendered, &profiles)
    };
    let mut other_domains = flat.clone();
    other_domains.cloud_profile["spec"]["providerConfig"]["countFaultDomains"][0]["count"] = json!(2);
    let rolls = of(&other_domains);
    assert_eq!(rolls.placements.len(), 2);
    for placement in &rolls.placements {
        assert_eq!(placement.verdict.word(), "ROLL", "{}", placement.deployment);
        let causes: Vec<String> = placement.causes.iter().map(|cause| cause.change.path.to_string()).collect();
        assert_eq!(causes, ["spec.providerConfig.countFaultDomains[westeurope].count"]);
        assert_eq!(placement.hash_inputs, ["providerStatus.vmoDependencies[].name"]);
    }

    let mut another_pool = flat.clone();
    let pools = another_pool.worker["spec"]["pools"].as_array_mut().unwrap();
    let mut gamma = pools[0].clone();
    gamma["name"] = json!("gamma");
    pools.push(gamma);
    let comes = of(&another_pool);
    let words: Vec<_> = comes.placements.iter().map(|placement| placement.verdict.word()).collect();
    assert_eq!(words, ["NONE", "NONE", "CREATE"]);
    assert!(comes.findings.is_empty(), "{:?}", comes.findings);
}

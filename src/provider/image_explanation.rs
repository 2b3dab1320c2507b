//! Why a pool has its image: every candidate with its verdict, or what would fit where none does.

use std::borrow::Cow;

use super::explanation::{Candidate, ChosenImage, Fitting, ImageExplanation, ImageName, NamedImage, Origin, Verdict};
use super::image::{best_candidate, machine_type};
use super::profile::ProfileConfig;
use super::{PoolProblem, WorkerContext};
use crate::api::gardener::{Capabilities, CapabilityDefinition, MachineImage, MachineType, WorkerPool};
use crate::capabilities::{Choice, NoFlavor, RankingStep, mismatches, trace_ranking, with_defaults};

/// An image that the CloudProfile lists, or the provider status keeps.
pub(super) struct KnownImage<'a> {
    pub(super) reference: Option<ImageName>,
    pub(super) capabilities: Cow<'a, Capabilities>,
}

/// The image that a pool gets.
pub(super) struct FoundImage {
    pub(super) reference: Option<ImageName>,
    /// Its position among the images that the provider status keeps by this name and version, if it is one of them.
    pub(super) kept: Option<usize>,
}

/// What images of a Worker are chosen with, whoever chooses.
#[derive(Clone, Copy)]
pub(super) struct ChosenFrom<'a> {
    pub(super) context: &'a WorkerContext<'a>,
    /// The provider config of the CloudProfile.
    pub(super) config: Option<&'a dyn ProfileConfig>,
    /// The capabilities that count.
    pub(super) definitions: &'a [CapabilityDefinition],
}

/// The questions behind the choice of an image, answered by the functions that plan it.
pub(super) trait ImageChoice {
    /// What is chosen from.
    fn chosen_from(&self) -> ChosenFrom<'_>;

    /// What machines of a type can do in the pool.
    fn capabilities_of(&self, machine_type: &MachineType, pool: &WorkerPool) -> Capabilities;

    /// The candidates of the CloudProfile, in its order.
    fn listed(&self, image: &MachineImage) -> Vec<KnownImage<'_>>;

    /// What the provider status keeps, in its order.
    fn kept(&self, image: &MachineImage) -> Vec<KnownImage<'_>>;

    /// The object that keeps images.
    fn kept_origin(&self) -> Origin {
        Origin::ProviderStatus
    }

    /// The choice itself.
    fn found(&self, pool: &WorkerPool, machine: &Capabilities) -> Result<FoundImage, PoolProblem>;

    /// Whether the CloudProfile has an image for a machine.
    fn is_in_profile(&self, image: &MachineImage, machine: &Capabilities) -> bool {
        best_candidate(self.listed(image), machine, self.chosen_from().definitions, |known| &*known.capabilities)
            .is_ok()
    }
}

/// Explains the image of a pool.
pub(super) fn explain_image(choice: &impl ImageChoice, pool: &WorkerPool) -> ImageExplanation {
    let wanted = &pool.machine_image;
    let mut explanation =
        ImageExplanation { name: wanted.name.clone(), version: wanted.version.clone(), ..ImageExplanation::default() };
    let listed = choice.listed(wanted);
    match machine_type(choice.chosen_from().context, pool) {
        Err(problem) => {
            let not_compared = |image| candidate(image, Origin::CloudProfile, Verdict::NotCompared);
            explanation.candidates = listed.into_iter().map(not_compared).collect();
            explanation.problem = Some(problem.to_string());
            explanation.fitting =
                Some(Fitting { images: Vec::new(), machine_types: fitting_machine_types(choice, pool) });
        }
        Ok(machine_type) => {
            let machine = choice.capabilities_of(machine_type, pool);
            explanation.machine = with_defaults(&machine, choice.chosen_from().definitions);
            judge(choice, pool, &machine, listed, &mut explanation);
        }
    }
    explanation
}

fn judge(
    choice: &impl ImageChoice,
    pool: &WorkerPool,
    machine: &Capabilities,
    listed: Vec<KnownImage<'_>>,
    explanation: &mut ImageExplanation,
) {
    let definitions = choice.chosen_from().definitions;
    let (ranking, best) = trace_ranking(machine, definitions, &listed, |image| &*image.capabilities);
    let verdicts = verdicts(machine, definitions, &listed, |image| &*image.capabilities, &ranking, &best);
    let candidates = listed.into_iter().zip(verdicts);
    let candidates = candidates.map(|(image, verdict)| candidate(image, Origin::CloudProfile, verdict));
    explanation.candidates = candidates.collect();
    explanation.ranking = ranking;
    let found = choice.found(pool, machine);
    // The provider status is asked only where the CloudProfile gave no image.
    if best.is_err() {
        let chosen = found.as_ref().ok().and_then(|found| found.kept);
        explanation.candidates.extend(judge_kept(choice, &pool.machine_image, machine, chosen));
    }
    match found {
        Ok(found) => {
            let chosen = explanation.candidates.iter().position(|candidate| candidate.verdict == Verdict::Chosen);
            explanation.chosen = chosen.map(|candidate| ChosenImage {
                candidate,
                origin: if found.kept.is_some() { choice.kept_origin() } else { Origin::CloudProfile },
                reference: found.reference,
            });
        }
        Err(problem) => {
            explanation.problem = Some(problem.to_string());
            explanation.nearest_miss = nearest_miss(&explanation.candidates);
            explanation.fitting = Some(Fitting {
                images: fitting_images(choice, &pool.machine_image, machine),
                machine_types: fitting_machine_types(choice, pool),
            });
        }
    }
}

/// What became of each flavor of a list that was ranked.
pub(crate) fn verdicts<'a, F>(
    machine: &Capabilities,
    definitions: &[CapabilityDefinition],
    flavors: &'a [F],
    capabilities_of: impl Fn(&'a F) -> &'a Capabilities,
    ranking: &[RankingStep],
    best: &Result<Choice, NoFlavor>,
) -> Vec<Verdict> {
    let verdict = |(position, flavor)| {
        let mismatches = mismatches(machine, capabilities_of(flavor), definitions);
        match best {
            _ if !mismatches.is_empty() => Verdict::Rejected { mismatches },
            Ok(best) if best.index == position => Verdict::Chosen,
            Err(NoFlavor::Ambiguous { tied }) if tied.contains(&position) => Verdict::Tied,
            _ => Verdict::Outranked { step: removing_step(ranking, position) },
        }
    };
    flavors.iter().enumerate().map(verdict).collect()
}

fn judge_kept(
    choice: &impl ImageChoice,
    wanted: &MachineImage,
    machine: &Capabilities,
    chosen: Option<usize>,
) -> Vec<Candidate> {
    let kept = (0..).zip(choice.kept(wanted)).map(|(position, image)| {
        // The machine wants, the image offers.
        let mismatches = mismatches(machine, &image.capabilities, choice.chosen_from().definitions);
        let verdict = match mismatches.is_empty() {
            _ if chosen == Some(position) => Verdict::Chosen,
            true => Verdict::NotReached,
            false => Verdict::Rejected { mismatches },
        };
        candidate(image, choice.kept_origin(), verdict)
    });
    kept.collect()
}

/// Images of the CloudProfile that could be used instead; versions of the same image first.
fn fitting_images(choice: &impl ImageChoice, wanted: &MachineImage, machine: &Capabilities) -> Vec<NamedImage> {
    let mut fitting: Vec<NamedImage> = Vec::new();
    for listed in choice.chosen_from().config.iter().flat_map(|config| config.images()) {
        let image = MachineImage { name: listed.image.to_owned(), version: listed.version.to_owned() };
        let known = fitting.iter().any(|known| known.name == image.name && known.version == image.version);
        if !known && image != *wanted && choice.is_in_profile(&image, machine) {
            fitting.push(image.into());
        }
    }
    // Stable: the order of the CloudProfile stays within both halves.
    fitting.sort_by_key(|image| image.name != wanted.name);
    fitting
}

fn fitting_machine_types(choice: &impl ImageChoice, pool: &WorkerPool) -> Vec<String> {
    let types = choice.chosen_from().context.cloud_profile.spec.machine_types.iter();
    types
        .filter(|machine_type| machine_type.name != pool.machine_type)
        .filter(|machine_type| choice.is_in_profile(&pool.machine_image, &choice.capabilities_of(machine_type, pool)))
        .map(|machine_type| machine_type.name.clone())
        .collect()
}

fn candidate(image: KnownImage<'_>, origin: Origin, verdict: Verdict) -> Candidate {
    Candidate { origin, reference: image.reference, capabilities: image.capabilities.into_owned(), verdict }
}

fn removing_step(ranking: &[RankingStep], position: usize) -> Option<usize> {
    ranking.iter().position(|step| !step.kept.contains(&position))
}

/// The first of the candidates that miss the fewest capabilities.
fn nearest_miss(candidates: &[Candidate]) -> Option<usize> {
    let missed = (0..).zip(candidates).filter_map(|(position, candidate)| match &candidate.verdict {
        Verdict::Rejected { mismatches } => Some((mismatches.len(), position)),
        _ => None,
    });
    missed.min().map(|(_, position)| position)
}

//! Why a pool has its image: every candidate with its verdict, or what would fit where none does.

use crate::api::gardener::{Capabilities, MachineImage, WorkerPool};
use crate::capabilities::{NoFlavor, RankingStep, mismatches, trace_ranking, with_defaults};
use crate::provider::azure::AzureWorker;
use crate::provider::azure::documents::{ImageReferences, StatusImage};
use crate::provider::azure::image::{self, ImageSource, candidates, image_in_profile, machine_side};
use crate::provider::explanation::{
    Candidate, ChosenImage, Fitting, ImageExplanation, ImageName, NamedImage, Origin, Verdict,
};

impl AzureWorker<'_> {
    pub(super) fn explain_image(&self, pool: &WorkerPool) -> ImageExplanation {
        let wanted = &pool.machine_image;
        let mut explanation = ImageExplanation {
            name: wanted.name.clone(),
            version: wanted.version.clone(),
            ..ImageExplanation::default()
        };
        let listed = self.config.as_ref().map(|config| candidates(config, wanted)).unwrap_or_default();
        match self.machine_capabilities(pool) {
            Err(problem) => {
                let not_compared = |candidate| of_profile(candidate, Verdict::NotCompared);
                explanation.candidates = listed.iter().map(not_compared).collect();
                explanation.problem = Some(problem.to_string());
                explanation.fitting =
                    Some(Fitting { images: Vec::new(), machine_types: self.fitting_machine_types(pool) });
            }
            Ok(machine) => {
                explanation.machine = with_defaults(&machine, &self.definitions);
                self.judge(pool, &machine, &listed, &mut explanation);
            }
        }
        explanation
    }

    fn judge(
        &self,
        pool: &WorkerPool,
        machine: &Capabilities,
        listed: &[image::Candidate<'_>],
        explanation: &mut ImageExplanation,
    ) {
        let (ranking, choice) = trace_ranking(machine, &self.definitions, listed, |candidate| &*candidate.capabilities);
        let verdicts = (0..).zip(listed).map(|(position, candidate)| {
            let mismatches = mismatches(machine, &candidate.capabilities, &self.definitions);
            let verdict = match &choice {
                _ if !mismatches.is_empty() => Verdict::Rejected { mismatches },
                Ok(choice) if choice.index == position => Verdict::Chosen,
                Err(NoFlavor::Ambiguous { tied }) if tied.contains(&position) => Verdict::Tied,
                _ => Verdict::Outranked { step: removing_step(&ranking, position) },
            };
            of_profile(candidate, verdict)
        });
        explanation.candidates = verdicts.collect();
        explanation.ranking = ranking;
        let selected = self.select_image(pool, machine);
        // The provider status is asked only where the CloudProfile gave no image.
        let asked_status = !matches!(&selected, Ok(selected) if matches!(selected.source, ImageSource::CloudProfile));
        if asked_status {
            explanation.candidates.extend(self.explain_kept(&pool.machine_image, machine));
        }
        match selected {
            Ok(selected) => {
                let chosen = explanation.candidates.iter().position(|candidate| candidate.verdict == Verdict::Chosen);
                explanation.chosen = chosen.map(|candidate| ChosenImage {
                    candidate,
                    origin: match selected.source {
                        ImageSource::CloudProfile => Origin::CloudProfile,
                        ImageSource::ProviderStatus(_) => Origin::ProviderStatus,
                    },
                    reference: image_name(selected.references),
                });
            }
            Err(problem) => {
                explanation.problem = Some(problem.to_string());
                explanation.nearest_miss = nearest_miss(&explanation.candidates);
                explanation.fitting = Some(Fitting {
                    images: self.fitting_images(&pool.machine_image, machine),
                    machine_types: self.fitting_machine_types(pool),
                });
            }
        }
    }

    /// The images of the provider status by this name and version. The first that fits is used.
    fn explain_kept(&self, wanted: &MachineImage, machine: &Capabilities) -> Vec<Candidate> {
        let mut found = false;
        let kept = self.status.iter().flat_map(|status| &status.machine_images);
        kept.filter(|kept| kept.name == wanted.name && kept.version == wanted.version)
            .map(|kept: &StatusImage| {
                let capabilities = machine_side(kept);
                let mismatches = mismatches(&capabilities, machine, &self.definitions);
                let verdict = match (mismatches.is_empty(), found) {
                    (true, false) => Verdict::Chosen,
                    (true, true) => Verdict::NotReached,
                    // The machine wants, the image offers.
                    (false, _) => {
                        Verdict::Rejected { mismatches: self::mismatches(machine, &capabilities, &self.definitions) }
                    }
                };
                found |= verdict == Verdict::Chosen;
                Candidate {
                    origin: Origin::ProviderStatus,
                    reference: image_name(kept.references()),
                    capabilities: capabilities.into_owned(),
                    verdict,
                }
            })
            .collect()
    }

    /// Images of the CloudProfile that could be used instead; versions of the same image first.
    fn fitting_images(&self, wanted: &MachineImage, machine: &Capabilities) -> Vec<NamedImage> {
        let entries = self.config.iter().flat_map(|config| &config.machine_images);
        let mut fitting: Vec<NamedImage> = Vec::new();
        for entry in entries {
            for version in &entry.versions {
                let image = MachineImage { name: entry.name.clone(), version: version.version.clone() };
                let known = fitting.iter().any(|known| known.name == image.name && known.version == image.version);
                let fits = || image_in_profile(self.config.as_deref(), &image, machine, &self.definitions).is_ok();
                if !known && image != *wanted && fits() {
                    fitting.push(image.into());
                }
            }
        }
        // Stable: the order of the CloudProfile stays within both halves.
        fitting.sort_by_key(|image| image.name != wanted.name);
        fitting
    }

    fn fitting_machine_types(&self, pool: &WorkerPool) -> Vec<String> {
        let types = self.context.cloud_profile.spec.machine_types.iter();
        types
            .filter(|machine_type| machine_type.name != pool.machine_type)
            .filter(|machine_type| {
                let machine = self.capabilities_of(machine_type, pool);
                image_in_profile(self.config.as_deref(), &pool.machine_image, &machine, &self.definitions).is_ok()
            })
            .map(|machine_type| machine_type.name.clone())
            .collect()
    }
}

fn of_profile(candidate: &image::Candidate<'_>, verdict: Verdict) -> Candidate {
    Candidate {
        origin: Origin::CloudProfile,
        reference: image_name(candidate.references),
        capabilities: candidate.capabilities.clone().into_owned(),
        verdict,
    }
}

fn image_name(references: ImageReferences<'_>) -> Option<ImageName> {
    let reference = references.preferred()?;
    Some(ImageName { member: reference.member().to_owned(), value: reference.value().to_owned() })
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

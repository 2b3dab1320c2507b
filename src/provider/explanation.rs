//! What a provider says about a pool so that people understand it: inputs, image, placements. Serialised as it is, so
//! the members are part of the documented JSON of `explain`.

use std::fmt;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::Serialize;
use serde_with::apply;

use super::plan::MachinePlan;
use crate::api::gardener::{Capabilities, MachineImage};
use crate::capabilities::{Classification, FlavorVerdict, RankingStep};
use crate::pool::bounds::Bounds;
use crate::pool::hash::HashItems;
use crate::pool::names::{ClassName, DeploymentName};

/// A pool as its provider sees it. What could not be determined is left out; `plan_pool` has the error.
#[derive(Clone, Debug, Default)]
pub struct ProviderExplanation {
    /// Inputs that only the provider knows.
    pub inputs: Vec<EffectiveInput>,
    /// How the image was chosen.
    pub image: ImageExplanation,
    /// Where machines are placed, with numbers and names as far as they could be determined.
    pub placements: Vec<PlacementPlan>,
}

/// One value that decides about the machines, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EffectiveInput {
    /// What it is, for people.
    pub name: &'static str,
    /// The value.
    pub value: String,
    /// The object.
    pub origin: Origin,
    /// Path in the object; within the pool for pools of the Worker. Absent for defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Origin {
    /// The Worker.
    Worker,
    /// The Shoot in the Cluster.
    Shoot,
    /// The CloudProfile in the Cluster.
    CloudProfile,
    /// `spec.infrastructureProviderStatus` of the Worker.
    InfrastructureStatus,
    /// `status.providerStatus` of the Worker.
    ProviderStatus,
    /// Nothing says anything else.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Worker => "Worker",
            Self::Shoot => "Shoot",
            Self::CloudProfile => "CloudProfile",
            Self::InfrastructureStatus => "infrastructure status",
            Self::ProviderStatus => "provider status",
            Self::Default => "default",
        })
    }
}

impl EffectiveInput {
    /// A value that an object gives.
    #[must_use]
    pub fn of(origin: Origin, path: impl Into<String>, name: &'static str, value: impl Into<String>) -> Self {
        Self { name, value: value.into(), origin, path: Some(path.into()) }
    }

    /// A value that the infrastructure gives.
    #[must_use]
    pub(in crate::provider) fn of_infrastructure(path: &str, name: &'static str, value: impl Into<String>) -> Self {
        Self::of(Origin::InfrastructureStatus, path, name, value)
    }

    /// A value that nothing gives.
    #[must_use]
    pub fn default_of(name: &'static str, value: impl Into<String>) -> Self {
        Self { name, value: value.into(), origin: Origin::Default, path: None }
    }

    /// A value of an optional field, or what counts without it.
    #[must_use]
    pub fn or_default(
        origin: Origin,
        path: impl Into<String>,
        name: &'static str,
        value: Option<impl Into<String>>,
        default: impl Into<String>,
    ) -> Self {
        match value {
            Some(value) => Self::of(origin, path, name, value),
            None => Self::default_of(name, default),
        }
    }
}

/// How the image of a pool was chosen, or why there is none.
#[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageExplanation {
    /// Name of the wanted image.
    pub name: String,
    /// Version of the wanted image.
    pub version: String,
    /// Every capability that counts, with what the machine type has of it. Empty for unknown machine types.
    pub machine: Capabilities,
    /// Every image that could be used: those of the CloudProfile in its order, then, where they were asked, those of
    /// the provider status.
    pub candidates: Vec<ImageCandidate>,
    /// The values that decided between several that fit; positions are those of the candidates.
    pub ranking: Vec<RankingStep>,
    /// The image that machines start from.
    pub chosen: Option<ChosenImage>,
    /// Why there is none.
    pub problem: Option<String>,
    /// Where no image was found: the candidate that misses the fewest capabilities.
    pub nearest_miss: Option<usize>,
    /// Where no image was found: what would fit.
    pub fitting: Option<Fitting>,
}

impl ImageExplanation {
    /// Of an image about which nothing is known yet.
    #[must_use]
    pub fn of(image: &MachineImage) -> Self {
        Self { name: image.name.clone(), version: image.version.clone(), ..Self::default() }
    }
}

/// An image that could be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImageCandidate {
    /// Where it is listed.
    pub origin: Origin,
    /// How the cloud calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<ImageName>,
    /// What machines must be able to do; a capability that is not named means every value.
    pub capabilities: Capabilities,
    /// What became of it.
    pub verdict: FlavorVerdict,
}

/// How a cloud calls an image.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ImageName {
    /// The member that names it, such as `urn`.
    pub member: String,
    /// The name.
    pub value: String,
}

impl ImageName {
    /// `None` where nothing is named.
    #[must_use]
    pub fn of(member: &str, value: &str) -> Option<Self> {
        (!value.is_empty()).then(|| Self { member: member.to_owned(), value: value.to_owned() })
    }
}

/// The image that machines start from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChosenImage {
    /// Position of the candidate.
    pub candidate: usize,
    /// Where it was found.
    pub origin: Origin,
    /// How the cloud calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<ImageName>,
}

/// What would fit where no image does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fitting {
    /// Images of the CloudProfile that fit the machine type; versions of the wanted image first.
    pub images: Vec<NamedImage>,
    /// Machine types of the CloudProfile that the wanted image fits.
    pub machine_types: Vec<String>,
}

/// An image by name and version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamedImage {
    /// Name.
    pub name: String,
    /// Version.
    pub version: String,
    /// Its stage, where Gardener's half of the CloudProfile is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classification: Option<Classification>,
}

impl From<MachineImage> for NamedImage {
    fn from(image: MachineImage) -> Self {
        Self { name: image.name, version: image.version, classification: None }
    }
}

/// Machines of a pool in one place, by numbers and names.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlacementPlan {
    /// The zone, if the pool has zones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Name of the machine deployment.
    pub deployment: DeploymentName,
    /// The machine class and what its hash is made of, of which JSON has the name; absent where the pool can't be hashed.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "class_name")]
    pub class: Option<(ClassName, HashItems)>,
    /// Fewest machines.
    pub minimum: i32,
    /// Most machines.
    pub maximum: i32,
    /// Machines above the wanted number during a roll.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_surge: Option<IntOrString>,
    /// Machines that may be missing during a roll.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<IntOrString>,
}

#[expect(clippy::ref_option, reason = "serde calls it so")]
fn class_name<S: serde::Serializer>(class: &Option<(ClassName, HashItems)>, serializer: S) -> Result<S::Ok, S::Error> {
    class.as_ref().map(|(name, _)| name).serialize(serializer)
}

impl PlacementPlan {
    /// Machines with these names and numbers.
    #[must_use]
    pub fn of(
        zone: Option<&str>,
        deployment: DeploymentName,
        bounds: Bounds,
        class: Option<(ClassName, HashItems)>,
    ) -> Self {
        let Bounds { minimum, maximum, max_surge, max_unavailable } = bounds;
        let (max_surge, max_unavailable) = (Some(max_surge), Some(max_unavailable));
        Self { zone: zone.map(str::to_owned), deployment, minimum, maximum, max_surge, max_unavailable, class }
    }
}

impl From<&MachinePlan> for PlacementPlan {
    fn from(machine: &MachinePlan) -> Self {
        let deployment = &machine.deployment;
        let strategy = &deployment.strategy;
        let rolling = strategy.rolling_update.as_ref().map(|bounds| (&bounds.max_surge, &bounds.max_unavailable));
        let in_place = strategy.in_place_update.as_ref().map(|bounds| (&bounds.max_surge, &bounds.max_unavailable));
        let (max_surge, max_unavailable) = rolling.or(in_place).unwrap_or((&None, &None));
        Self {
            zone: machine.zone.clone(),
            deployment: deployment.name.clone(),
            minimum: deployment.minimum,
            maximum: deployment.maximum,
            max_surge: max_surge.clone(),
            max_unavailable: max_unavailable.clone(),
            class: Some((deployment.class_name.clone(), machine.hash_items.clone())),
        }
    }
}

/// Capabilities in one line: `architecture={amd64} network={accelerated, basic}`.
#[must_use]
pub fn capabilities_text(capabilities: &Capabilities) -> String {
    let entries = capabilities.0.iter().map(|(name, values)| format!("{name}={{{}}}", values.join(", ")));
    entries.collect::<Vec<_>>().join(" ")
}

//! A provider's explanation of a pool for people: inputs, image, placements. The types are serialised directly, so
//! their members are part of the documented JSON of `explain`.

use std::fmt;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::Serialize;
use serde_with::apply;

use super::plan::MachinePlan;
use crate::pool::bounds::Bounds;
use crate::pool::hash::HashItems;
use crate::pool::names::{ClassName, DeploymentName};
use wire::api::gardener::{Capabilities, MachineImage};
use wire::capabilities::{Classification, FlavorVerdict, RankingStep};

/// A pool explained by its provider. Values that could not be determined are omitted; `plan_pool` returns the error.
#[derive(Clone, Debug, Default)]
pub struct ProviderExplanation {
    /// Provider-specific inputs.
    pub inputs: Vec<EffectiveInput>,
    /// How the image was selected.
    pub image: ImageExplanation,
    /// Placements of the machines, with the counts and names that could be determined.
    pub placements: Vec<PlacementPlan>,
}

/// An input that affects the machines, with its origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EffectiveInput {
    /// Name for people.
    pub name: &'static str,
    /// Effective value.
    pub value: String,
    /// Object that the value comes from.
    pub origin: Origin,
    /// Path in the object, within the pool for Worker pools. Absent for defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// Origin of a value.
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
    /// The default, because no object sets the value.
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
    /// A value from an object.
    #[must_use]
    pub fn of(origin: Origin, path: impl Into<String>, name: &'static str, value: impl Into<String>) -> Self {
        Self { name, value: value.into(), origin, path: Some(path.into()) }
    }

    /// A value from the infrastructure status.
    #[must_use]
    pub(in crate::provider) fn of_infrastructure(path: &str, name: &'static str, value: impl Into<String>) -> Self {
        Self::of(Origin::InfrastructureStatus, path, name, value)
    }

    /// A default value.
    #[must_use]
    pub fn default_of(name: &'static str, value: impl Into<String>) -> Self {
        Self { name, value: value.into(), origin: Origin::Default, path: None }
    }

    /// The value of an optional field, or its default.
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

/// How the image of a pool was selected, or why none fits.
#[apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageExplanation {
    /// Name of the requested image.
    pub name: String,
    /// Version of the requested image.
    pub version: String,
    /// Values of the machine type for each relevant capability. Empty for unknown machine types.
    pub machine: Capabilities,
    /// All candidates: images of the CloudProfile in its order, then those of the provider status if they were
    /// considered.
    pub candidates: Vec<ImageCandidate>,
    /// The capability values that decided between several fitting candidates, which are referred to by position.
    pub ranking: Vec<RankingStep>,
    /// The selected image.
    pub chosen: Option<ChosenImage>,
    /// Reason why no image was selected.
    pub problem: Option<String>,
    /// If no image fits: the candidate that misses the fewest capabilities.
    pub nearest_miss: Option<usize>,
    /// If no image fits: alternatives that would.
    pub fitting: Option<Fitting>,
}

impl ImageExplanation {
    /// An empty explanation for an image.
    #[must_use]
    pub fn of(image: &MachineImage) -> Self {
        Self { name: image.name.clone(), version: image.version.clone(), ..Self::default() }
    }
}

/// An image that was considered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImageCandidate {
    /// Object that lists the image.
    pub origin: Origin,
    /// Name of the image in the cloud.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<ImageName>,
    /// Capabilities that a machine must support; an absent capability allows every value.
    pub capabilities: Capabilities,
    /// Result for this candidate.
    pub verdict: FlavorVerdict,
}

/// Name of an image in its cloud.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ImageName {
    /// Member that holds the name, such as `urn`.
    pub member: String,
    /// Value of the member.
    pub value: String,
}

impl ImageName {
    /// Returns `None` if the value is empty.
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
    /// Object that lists the image.
    pub origin: Origin,
    /// Name of the image in the cloud.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<ImageName>,
}

/// Alternatives to an image that does not fit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fitting {
    /// Images of the CloudProfile that fit the machine type, versions of the requested image first.
    pub images: Vec<NamedImage>,
    /// Machine types of the CloudProfile that fit the requested image.
    pub machine_types: Vec<String>,
}

/// An image by name and version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamedImage {
    /// Name of the image.
    pub name: String,
    /// Version of the image.
    pub version: String,
    /// Lifecycle stage, if `spec.machineImages` of the CloudProfile is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classification: Option<Classification>,
}

impl From<MachineImage> for NamedImage {
    fn from(image: MachineImage) -> Self {
        Self { name: image.name, version: image.version, classification: None }
    }
}

/// Machine counts and names of a pool in one zone.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlacementPlan {
    /// The zone, if the pool has zones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Name of the machine deployment.
    pub deployment: DeploymentName,
    /// The machine class with its hash inputs, serialised as its name; absent if the pool can't be hashed.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "class_name")]
    pub class: Option<(ClassName, HashItems)>,
    /// Minimum number of machines.
    pub minimum: i32,
    /// Maximum number of machines.
    pub maximum: i32,
    /// Machines above the target count during a rolling update.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_surge: Option<IntOrString>,
    /// Machines that may be unavailable during a rolling update.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<IntOrString>,
}

#[expect(clippy::ref_option, reason = "serde calls it so")]
fn class_name<S: serde::Serializer>(class: &Option<(ClassName, HashItems)>, serializer: S) -> Result<S::Ok, S::Error> {
    class.as_ref().map(|(name, _)| name).serialize(serializer)
}

impl PlacementPlan {
    /// A placement with these names and counts.
    #[must_use]
    pub fn of(
        zone: Option<&str>,
        deployment: DeploymentName,
        bounds: Bounds,
        class: Option<(ClassName, HashItems)>,
    ) -> Self {
        let Bounds { minimum, maximum, max_surge, max_unavailable } = bounds;
        let max_surge = Some(max_surge);
        let max_unavailable = Some(max_unavailable);
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

/// Formats capabilities in one line: `architecture={amd64} network={accelerated, basic}`.
#[must_use]
pub fn capabilities_text(capabilities: &Capabilities) -> String {
    let entries = capabilities.0.iter().map(|(name, values)| format!("{name}={{{}}}", values.join(", ")));
    entries.collect::<Vec<_>>().join(" ")
}

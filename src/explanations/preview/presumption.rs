//! Assumptions about values that a Shoot omits. To determine whether one affects nodes, the Worker is derived again with
//! the alternative, and the class names of both sides are compared again.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::finding::{Finding, FindingKind};
use super::inputs::{Document, Inputs, ShootSource};
use super::placement_change::PlacementChange;
use super::shoot_source::both_made;
use decisions::pool::hash::{ProviderItems, pool_hash};
use profiles::shoot::{Reservation, is_stored};

/// A value that a Shoot omits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assumption {
    /// How the landscape reserves resources for kubelets.
    Reservation,
    /// Whether the landscape enables node-local DNS for new Shoots.
    NodeLocalDns,
    /// When credentials were rotated.
    Rotations,
    /// The image of a pool.
    Image,
    /// The infrastructure that its controller created.
    Infrastructure,
}

impl Assumption {
    /// The assumption, as it is printed.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Reservation => "the landscape reserves resources for kubelets statically, not by machine type",
            Self::NodeLocalDns => "the landscape gives new Shoots no node-local DNS",
            Self::Rotations => "no credentials have been rotated",
            Self::Image => "pools without an image have the newest one that fits",
            Self::Infrastructure => "the status of the Infrastructure is as infrastructureConfig orders it",
        }
    }

    /// The alternative, as it is printed.
    fn otherwise(self) -> &'static str {
        match self {
            Self::Reservation => "where it reserves by machine type",
            Self::NodeLocalDns => "where it does",
            Self::Rotations => "if they were rotated as the status of NEW says",
            Self::Image => "if the stored Shoot has another one",
            Self::Infrastructure => "if it is another one",
        }
    }

    /// Everything that has to be assumed for a Shoot, manifest or stored, because no input has it.
    #[must_use]
    pub fn of_written(inputs: &Inputs) -> Vec<Self> {
        let (Some(shoot), Some(source)) = (&inputs.shoot, &inputs.made_from_shoot) else { return Vec::new() };
        let shoot = &shoot.value;
        let spec = &shoot["spec"];
        let is_stored = is_stored(shoot);
        let pools = || spec["provider"]["workers"].as_array().into_iter().flatten();
        let reserves = |kubernetes: &Value| kubernetes["kubelet"].get("kubeReserved").is_some();
        let open = [
            (Self::Reservation, source.reservation.is_none() && !is_stored && !reserves(&spec["kubernetes"])),
            (
                Self::NodeLocalDns,
                !source.node_local_dns && !is_stored && spec["systemComponents"].get("nodeLocalDNS").is_none(),
            ),
            (Self::Rotations, shoot.get("status").is_none()),
            (Self::Image, pools().any(has_no_image)),
            (Self::Infrastructure, source.infrastructure_status.is_none()),
        ];
        open.into_iter().filter(|(_, is_open)| *is_open).map(|(presumption, _)| presumption).collect()
    }

    /// Both sides under the alternative; `None` if it can't affect an edit.
    fn alternative(self, old: &Inputs, new: &Inputs) -> Option<[Inputs; 2]> {
        let [old_shoot, new_shoot] = [old, new].map(|side| side.shoot.as_ref().map(|shoot| &shoot.value));
        let old_shoot = old_shoot?;
        let new_shoot = new_shoot?;
        let with_source = |change: fn(&mut ShootSource)| {
            let of = |side: &Inputs| {
                let mut source = (**side.made_from_shoot.as_ref()?).clone();
                change(&mut source);
                Some(Inputs { made_from_shoot: Some(Arc::new(source)), ..side.clone() })
            };
            Some([of(old)?, of(new)?])
        };
        let with_shoot = |shoot: Value| {
            let old = Inputs { shoot: Some(Arc::new(Document::new(shoot))), ..old.clone() };
            Some([old, new.clone()])
        };
        match self {
            Self::Reservation => with_source(|source| {
                source.reservation = Some(Reservation::ByMachineType);
            }),
            Self::NodeLocalDns => with_source(|source| source.node_local_dns = true),
            Self::Rotations => {
                new_shoot.pointer("/status/credentials")?;
                let mut shoot = old_shoot.clone();
                shoot["status"] = new_shoot["status"].clone();
                with_shoot(shoot)
            }
            Self::Image => with_shoot(with_images(old_shoot, new_shoot)),
            Self::Infrastructure => None,
        }
    }
}

fn has_no_image(pool: &Value) -> bool {
    pool.pointer("/machine/image/version").and_then(Value::as_str).is_none_or(|version| version.split('.').count() < 3)
}

/// The old Shoot with the images that only the new Shoot names.
fn with_images(old: &Value, new: &Value) -> Value {
    let mut shoot = old.clone();
    let named = new["spec"]["provider"]["workers"].as_array().into_iter().flatten().filter(|pool| !has_no_image(pool));
    for named in named {
        let pools = shoot.pointer_mut("/spec/provider/workers").and_then(Value::as_array_mut).into_iter().flatten();
        for pool in pools.filter(|pool| pool["name"] == named["name"] && has_no_image(pool)) {
            if let Some(machine) = pool.get_mut("machine").and_then(Value::as_object_mut) {
                machine.insert("image".to_owned(), named["machine"]["image"].clone());
            }
        }
    }
    shoot
}

/// Findings about assumptions that decide whether nodes of a pool are replaced. Takes both sides before and after their
/// Workers are derived.
pub(super) fn presumptions_that_decide(
    (old, new): (&Inputs, &Inputs),
    made: (&Inputs, &Inputs),
    placements: &[PlacementChange],
) -> Vec<Finding> {
    if old.made_from_shoot.is_none() || new.made_from_shoot.is_none() {
        return Vec::new();
    }
    let Some(shoot) = old.shoot.as_ref() else { return Vec::new() };
    let stays = pools_that_stay(made.0, made.1);
    let mut findings = Vec::new();
    let mut find = |presumption: Assumption, pool: &str, then: &str| {
        let message = format!("presumed: {}; {}, {then}", presumption.text(), presumption.otherwise());
        findings.push(Finding::of_pool(FindingKind::Presumed, pool, message));
    };
    for presumption in Assumption::of_written(old) {
        let Some([other_old, other_new]) = presumption.alternative(old, new) else { continue };
        let Ok((Some(other_old), Some(other_new))) = both_made(Some(&other_old), Some(&other_new)) else { continue };
        let otherwise = pools_that_stay(&other_old, &other_new);
        let names_image = |pool: &str| names_only_the_new(&shoot.value, new, pool);
        for (pool, stays) in &stays {
            match otherwise.get(pool) {
                Some(otherwise) if otherwise != stays => {
                    find(
                        presumption,
                        pool,
                        if *stays { "its nodes are replaced or updated" } else { "its nodes stay" },
                    );
                }
                _ if *stays && presumption == Assumption::Image && names_image(pool) => {
                    find(presumption, pool, "its nodes are replaced or updated");
                }
                _ => {}
            }
        }
    }
    let of_infrastructure = |placement: &PlacementChange| {
        let paths = placement.causes.iter().map(|cause| cause.change.path.to_string());
        paths.into_iter().any(|path| path.starts_with("spec.provider.infrastructureConfig"))
    };
    if placements.iter().any(of_infrastructure) {
        find(Assumption::Infrastructure, "", "other nodes can be replaced");
    }
    findings
}

/// Whether the new Shoot names an image for a pool and the old one does not.
fn names_only_the_new(old: &Value, new: &Inputs, pool: &str) -> bool {
    let lacks = |shoot: &Value| {
        let mut pools = shoot["spec"]["provider"]["workers"].as_array().into_iter().flatten();
        pools.find(|known| known["name"] == pool).map(has_no_image)
    };
    lacks(old) == Some(true) && new.shoot.as_ref().and_then(|shoot| lacks(&shoot.value)) == Some(false)
}

/// For each pool of both sides, whether its class keeps its name, as far as it depends on the Shoot.
fn pools_that_stay(old: &Inputs, new: &Inputs) -> BTreeMap<String, bool> {
    let [old, new] = [old, new].map(hashes);
    let both = old.into_iter().filter_map(|(pool, hash)| Some((new.get(&pool)? == &hash, pool)));
    both.map(|(stays, pool)| (pool, stays)).collect()
}

fn hashes(made: &Inputs) -> BTreeMap<String, String> {
    let shoot = made.shoot.as_ref().and_then(|shoot| shoot.decoded().ok());
    let (Some(shoot), Ok(worker)) = (shoot, made.worker.decoded()) else { return BTreeMap::new() };
    let hash = |pool| pool_hash(pool, shoot, &ProviderItems::default());
    worker.spec.pools.iter().filter_map(|pool| Some((pool.name.clone(), hash(pool).ok()?.hash.0))).collect()
}

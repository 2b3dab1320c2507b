//! Single mutations of a world: each changes one field and has the path of the field.

use serde_json::{Map, Value, json};

use crate::pool_mutation::of_pool;
use crate::world::World;

/// A change of one field.
pub(crate) struct Mutation {
    /// `Worker`, `Shoot`, `CloudProfile` or `Secret`.
    pub(crate) object: &'static str,
    /// The expected path of the field in causes.
    pub(crate) field: String,
    pub(crate) apply: Box<dyn Fn(&mut World)>,
}

impl Mutation {
    /// The world with the change.
    pub(crate) fn of(&self, world: &World) -> World {
        let mut changed = world.clone();
        (self.apply)(&mut changed);
        changed
    }

    /// Whether both change the same field, or one changes a field inside the other's.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let inside = |outer: &str, inner: &str| {
            inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        self.object == other.object && (inside(&self.field, &other.field) || inside(&other.field, &self.field))
    }
}

fn document<'a>(world: &'a mut World, object: &str) -> &'a mut Value {
    match object {
        "Worker" => &mut world.worker,
        "Shoot" => &mut world.shoot,
        "CloudProfile" => &mut world.cloud_profile,
        other => panic!("no document {other}"),
    }
}

/// Sets a member and creates missing parents. A null removes the member.
fn set(document: &mut Value, pointer: &str, value: &Value) {
    let (parents, last) = pointer.rsplit_once('/').unwrap();
    let mut location = document;
    for step in parents.split('/').skip(1) {
        let step = step.replace("~1", "/");
        location = match step.parse::<usize>() {
            // Another mutation may have removed the entry.
            Ok(index) if location.is_array() => match location.get_mut(index) {
                Some(entry) => entry,
                None => return,
            },
            _ => {
                if location.is_null() {
                    *location = Value::Object(Map::new());
                }
                location.as_object_mut().unwrap().entry(step).or_insert(Value::Null)
            }
        };
    }
    if location.is_null() {
        *location = Value::Object(Map::new());
    }
    let last = last.replace("~1", "/");
    match (location, value) {
        (Value::Object(members), Value::Null) => drop(members.remove(&last)),
        (Value::Object(members), value) => drop(members.insert(last, value.clone())),
        (Value::Array(items), value) => items[last.parse::<usize>().unwrap()] = value.clone(),
        (other, _) => panic!("{other} has no members"),
    }
}

pub(crate) fn setting(
    object: &'static str,
    field: impl Into<String>,
    pointer: impl Into<String>,
    value: Value,
) -> Mutation {
    let pointer = pointer.into();
    Mutation {
        object,
        field: field.into(),
        apply: Box::new(move |world| set(document(world, object), &pointer, &value)),
    }
}

pub(crate) fn editing(
    object: &'static str,
    field: impl Into<String>,
    pointer: impl Into<String>,
    edit: impl Fn(&mut Vec<Value>) + 'static,
) -> Mutation {
    let pointer = pointer.into();
    let apply = move |world: &mut World| {
        if let Some(Value::Array(items)) = document(world, object).pointer_mut(&pointer) {
            edit(items);
        }
    };
    Mutation { object, field: field.into(), apply: Box::new(apply) }
}

/// Every mutation of a world that changes something.
pub(crate) fn mutations(world: &World) -> Vec<Mutation> {
    let mut all = of_worker();
    all.extend(of_shoot(&world.pools()));
    all.extend(of_profile(world));
    for (index, pool) in world.pools().iter().enumerate() {
        all.extend(of_pool(index, pool));
    }
    all.retain(|mutation| mutation.of(world) != *world);
    all
}

fn of_worker() -> Vec<Mutation> {
    let infrastructure = |field: &str, pointer: &str, value: Value| {
        let (field, pointer) = (
            format!("spec.infrastructureProviderStatus.{field}"),
            format!("/spec/infrastructureProviderStatus/{pointer}"),
        );
        setting("Worker", field, pointer, value)
    };
    let dependencies = "status.providerStatus.vmoDependencies";
    vec![
        setting("Worker", "spec.region", "/spec/region", json!("northeurope")),
        setting("Worker", "spec.sshPublicKey", "/spec/sshPublicKey", json!("c3NoLXJzYSBCQg==")),
        setting("Worker", "spec.secretRef.name", "/spec/secretRef/name", json!("missing")),
        infrastructure("identity.id", "identity/id", json!("/identities/two")),
        infrastructure("identity", "identity", json!(null)),
        infrastructure("resourceGroup.name", "resourceGroup/name", json!("other")),
        infrastructure("networks.vnet.name", "networks/vnet/name", json!("vnet-z")),
        infrastructure("networks.vnet.resourceGroup", "networks/vnet/resourceGroup", json!("z")),
        infrastructure("networks.layout", "networks/layout", json!("SingleSubnet")),
        infrastructure("networks.layout", "networks/layout", json!("MultipleSubnet")),
        infrastructure("networks.subnets[1].name", "networks/subnets/1/name", json!("renamed")),
        infrastructure("networks.subnets[0].name", "networks/subnets/0/name", json!("renamed-too")),
        infrastructure("zoned", "zoned", json!(false)),
        Mutation {
            object: "Worker",
            field: "spec.infrastructureProviderStatus.networks.subnets[m-nodes].migrated".to_owned(),
            apply: Box::new(|world| {
                let subnet = world.worker.pointer_mut("/spec/infrastructureProviderStatus/networks/subnets/0").unwrap();
                if subnet.get("migrated").is_some() {
                    subnet["migrated"] = json!(false);
                }
            }),
        },
        editing("Worker", "spec.pools", "/spec/pools", |items| items.reverse()),
        editing("Worker", format!("{dependencies}[0].name"), "/status/providerStatus/vmoDependencies", |items| {
            items[0]["name"] = json!("vmo-alpha-ZZZZZZZZ");
        }),
        editing(
            "Worker",
            format!("{dependencies}[vmo-alpha-AbCd1234].id"),
            "/status/providerStatus/vmoDependencies",
            |items| {
                items[0]["id"] = json!("/vmss/moved");
            },
        ),
    ]
}

fn of_shoot(pools: &[String]) -> Vec<Mutation> {
    let rotation = "status.credentials.rotation";
    let mut all = vec![
        setting("Shoot", "spec.kubernetes.version", "/spec/kubernetes/version", json!("1.33.9")),
        setting("Shoot", "spec.kubernetes.kubeProxy.mode", "/spec/kubernetes/kubeProxy/mode", json!("IPVS")),
        setting(
            "Shoot",
            "spec.systemComponents.nodeLocalDNS.enabled",
            "/spec/systemComponents/nodeLocalDNS/enabled",
            json!(false),
        ),
        setting("Shoot", "spec.hibernation.enabled", "/spec/hibernation/enabled", json!(false)),
        setting("Shoot", "spec.purpose", "/spec/purpose", json!("testing")),
        setting("Shoot", "status.technicalID", "/status/technicalID", json!("shoot--p--renamed")),
        setting("Shoot", "status.advertisedAddresses", "/status/advertisedAddresses", json!([{"name": "x"}])),
    ];
    for kind in ["certificateAuthorities", "serviceAccountKey"] {
        let pointer = format!("/status/credentials/rotation/{kind}");
        let apply = move |world: &mut World| {
            if let Some(rotation) = world.shoot.pointer_mut(&pointer) {
                rotation["lastInitiationTime"] = json!("2026-01-01T00:00:00Z");
            }
        };
        all.push(Mutation {
            object: "Shoot",
            field: format!("{rotation}.{kind}.lastInitiationTime"),
            apply: Box::new(apply),
        });
    }
    all.push(Mutation {
        object: "Shoot",
        field: format!("{rotation}.certificateAuthorities.pendingWorkersRollouts[beta].lastInitiationTime"),
        apply: Box::new(|world| {
            let pointer = "/status/credentials/rotation/certificateAuthorities/pendingWorkersRollouts/0";
            if let Some(pending) = world.shoot.pointer_mut(pointer) {
                pending["lastInitiationTime"] = json!("2024-06-01T00:00:00Z");
            }
        }),
    });
    for (index, pool) in pools.iter().enumerate() {
        let field = format!("spec.provider.workers[{pool}].cri.name");
        all.push(setting("Shoot", field, format!("/spec/provider/workers/{index}/cri/name"), json!("docker")));
    }
    all
}

fn of_profile(world: &World) -> Vec<Mutation> {
    let of = |field: &str, pointer: &str, value: Value| {
        setting("CloudProfile", format!("spec.{field}"), format!("/spec/{pointer}"), value)
    };
    let images = "providerConfig.machineImages[gardenlinux].versions";
    let at = "providerConfig/machineImages/0/versions";
    let mut all = vec![
        editing("CloudProfile", "spec.machineTypes[Standard_New]", "/spec/machineTypes", |items| {
            items.push(json!({"name": "Standard_New"}))
        }),
        editing("CloudProfile", "spec.machineTypes[Standard_D4s_v5]", "/spec/machineTypes", |items| {
            drop(items.remove(0))
        }),
        editing("CloudProfile", "spec.machineTypes", "/spec/machineTypes", |items| items.reverse()),
        of(
            "machineTypes[Standard_D4s_v5].capabilities[azure-networking]",
            "machineTypes/0/capabilities/azure-networking",
            json!(["basic"]),
        ),
        editing("CloudProfile", "spec.providerConfig.machineImages", "/spec/providerConfig/machineImages", |items| {
            items.reverse()
        }),
    ];
    let domains = "providerConfig.countFaultDomains[westeurope].count";
    all.push(of(domains, "providerConfig/countFaultDomains/0/count", json!(2)));
    if world.cloud_profile["spec"].get("machineCapabilities").is_none() {
        all.extend([
            of(&format!("{images}[0].urn"), &format!("{at}/0/urn"), json!("replaced:a:b:c")),
            of(&format!("{images}[0].acceleratedNetworking"), &format!("{at}/0/acceleratedNetworking"), json!(false)),
            of(
                &format!("{images}[0].skipMarketplaceAgreement"),
                &format!("{at}/0/skipMarketplaceAgreement"),
                json!(true),
            ),
            of(&format!("{images}[1].id"), &format!("{at}/1/id"), json!("/arm/replaced")),
            of(
                &format!("{images}[2].sharedGalleryImageID"),
                &format!("{at}/2/sharedGalleryImageID"),
                json!("/replaced"),
            ),
            of(
                "providerConfig.machineTypes[Standard_D4s_v5].acceleratedNetworking",
                "providerConfig/machineTypes/0/acceleratedNetworking",
                json!(false),
            ),
        ]);
        return all;
    }
    for (index, flavor) in ["gen2", "gen1", "arm64"].into_iter().enumerate() {
        let id = "communityGalleryImageID";
        all.push(of(
            &format!("{images}[1877.3.0].capabilityFlavors[{index}].{id}"),
            &format!("{at}/0/capabilityFlavors/{index}/{id}"),
            json!(format!("/replaced/{flavor}")),
        ));
    }
    all.extend([
        editing("CloudProfile", "spec.machineCapabilities", "/spec/machineCapabilities", |items| items.reverse()),
        of("machineCapabilities[hypervisorType].values", "machineCapabilities/1/values", json!(["gen1", "gen2"])),
        of(
            "machineTypes[Standard_D4s_v5].capabilities[hypervisorType]",
            "machineTypes/0/capabilities/hypervisorType",
            json!(["gen1"]),
        ),
        editing("CloudProfile", format!("spec.{images}[1877.9.0]"), format!("/spec/{at}"), |items| {
            let mut another = items[0].clone();
            another["version"] = json!("1877.9.0");
            items.insert(0, another);
        }),
        editing("CloudProfile", format!("spec.{images}[1877.3.0]"), format!("/spec/{at}"), |items| {
            drop(items.remove(0))
        }),
        editing(
            "CloudProfile",
            format!("spec.{images}[1877.3.0].capabilityFlavors"),
            format!("/spec/{at}/0/capabilityFlavors"),
            |items| items.reverse(),
        ),
    ]);
    all
}

//! Subnets of the nodes, and accelerated networking.

use super::documents::{CloudProfileConfig, InfrastructureStatus, Subnet, SubnetLayout};
use super::image::{ACCELERATED, BASIC, NETWORKING};
use crate::provider::PoolProblem;
use wire::api::gardener::{Capabilities, CapabilityDefinition};

const NODES: &str = "nodes";

/// Returns the subnet of a zone, and whether its name is hashed. It is hashed if zones have their own subnets, unless
/// the subnet was migrated from an earlier layout.
///
/// # Errors
/// If zones have their own subnets, but this zone has none.
pub fn subnet_of_zone<'a>(
    infrastructure: &'a InfrastructureStatus,
    nodes_subnet: &'a Subnet,
    zone: &str,
) -> Result<(&'a Subnet, bool), PoolProblem> {
    if infrastructure.networks.layout == SubnetLayout::SingleSubnet {
        return Ok((nodes_subnet, false));
    }
    let subnet = infrastructure
        .networks
        .subnets
        .iter()
        .find(|subnet| subnet.purpose == NODES && subnet.zone.as_deref() == Some(zone))
        .ok_or_else(|| PoolProblem::ZoneSubnetMissing(zone.to_owned()))?;
    Ok((subnet, !subnet.migrated))
}

/// Whether both machine and image support accelerated networking. An image without capabilities supports everything.
#[must_use]
pub fn is_network_accelerated(
    machine: &Capabilities,
    image: Option<&Capabilities>,
    definitions: &[CapabilityDefinition],
) -> bool {
    let Some(definition) = definitions.iter().find(|definition| definition.name == NETWORKING) else { return false };
    let accelerates = |capabilities: Option<&Capabilities>| {
        let values = capabilities.and_then(|capabilities| capabilities.0.get(NETWORKING)).unwrap_or(&definition.values);
        values.iter().any(|value| value == ACCELERATED)
    };
    accelerates(Some(machine)) && accelerates(image)
}

/// In old-format profiles, only machine types marked in the provider config support accelerated networking.
pub fn restrict_by_profile(machine: &mut Capabilities, machine_type: &str, config: &CloudProfileConfig) {
    let accelerated = config
        .machine_types
        .iter()
        .any(|entry| entry.name == machine_type && entry.accelerated_networking == Some(true));
    if !accelerated {
        machine.0.insert(NETWORKING.to_owned(), vec![BASIC.to_owned()]);
    }
}

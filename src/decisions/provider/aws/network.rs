//! Subnets, security group and network interfaces of machines.

use serde_json::{Value, json};

use super::documents::{InfrastructureStatus, NetworkInterfaceConfig};
use crate::provider::PoolProblem;
use wire::api::gardener::Shoot;

const NODES: &str = "nodes";

/// More interfaces than any machine has. The limit bounds the memory for a wide range of network cards.
const MAX_INTERFACES: usize = 256;

/// The IP families of a shoot that are relevant for machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IpFamilies {
    /// Whether machines have an IPv6 address.
    pub(super) ipv6: bool,
    /// Whether machines have only an IPv6 address.
    pub(super) only_ipv6: bool,
}

impl IpFamilies {
    pub(super) fn of_shoot(shoot: &Shoot) -> Self {
        Self::of(shoot.spec.networking.as_ref().map_or(&[], |networking| &networking.ip_families))
    }

    fn of(families: &[String]) -> Self {
        let ipv6 = families.iter().any(|family| family == "IPv6");
        Self { ipv6, only_ipv6: ipv6 && families.len() == 1 }
    }
}

/// The first instance profile for nodes.
#[must_use]
pub fn nodes_instance_profile(infrastructure: &InfrastructureStatus) -> Option<&str> {
    let mut profiles = infrastructure.iam.instance_profiles.iter();
    profiles.find(|profile| profile.purpose == NODES).map(|profile| profile.name.as_str())
}

/// The first subnet for nodes in a zone.
///
/// # Errors
/// If the zone has no such subnet.
pub fn subnet_of_zone<'a>(infrastructure: &'a InfrastructureStatus, zone: &str) -> Result<&'a str, PoolProblem> {
    let mut subnets = infrastructure.vpc.subnets.iter();
    subnets
        .find(|subnet| subnet.purpose == NODES && subnet.zone == zone)
        .map(|subnet| subnet.id.as_str())
        .ok_or_else(|| PoolProblem::ZoneSubnetMissing(zone.to_owned()))
}

/// The interfaces of a machine: the listed ones, or by default a single one. `None` if only empty ranges are listed.
///
/// # Errors
/// If there are too many interfaces, or none for an IPv6 address.
pub(super) fn network_interfaces(
    listed: &[NetworkInterfaceConfig],
    subnet: &str,
    security_group: &str,
    families: IpFamilies,
) -> Result<Option<Value>, PoolProblem> {
    const PATH: &str = "providerConfig.networkInterfaces";
    let count: usize = listed.iter().map(|entry| cards(entry).count()).fold(0, usize::saturating_add);
    if count > MAX_INTERFACES {
        return Err(PoolProblem::field(PATH, format!("{count} are too many, at most {MAX_INTERFACES}")));
    }
    let mut interfaces = Vec::with_capacity(count.max(1));
    if listed.is_empty() {
        interfaces.push(json!({"subnetID": subnet, "securityGroupIDs": [security_group]}));
    }
    for entry in listed {
        interfaces.extend(cards(entry).map(|card| interface(entry, card, subnet, security_group)));
    }
    if families.ipv6 {
        let missing = || PoolProblem::field(PATH, "required: at least one interface, for the IPv6 address");
        let first = interfaces.first_mut().ok_or_else(missing)?;
        first["ipv6AddressCount"] = 1.into();
        first["ipv6PrefixCount"] = 1.into();
    }
    Ok((!interfaces.is_empty()).then(|| interfaces.into()))
}

/// The network cards that get this interface.
fn cards(entry: &NetworkInterfaceConfig) -> std::ops::RangeInclusive<i32> {
    match entry.network_card_index_range {
        Some(range) => range.from..=range.to,
        None => {
            let card = entry.network_card_index.unwrap_or_default();
            card..=card
        }
    }
}

fn interface(entry: &NetworkInterfaceConfig, card: i32, subnet: &str, security_group: &str) -> Value {
    let NetworkInterfaceConfig {
        network_card_index: _,
        network_card_index_range: _,
        device_index,
        interface_type: _,
        description,
        subnet_id,
    } = entry;
    json!({
        "subnetID": subnet_id.as_deref().unwrap_or(subnet),
        "securityGroupIDs": [security_group],
        "associatePublicIPAddress": false,
        "deleteOnTermination": true,
        "description": description,
        "interfaceType": entry.interface_type(),
        "networkCardIndex": card,
        "deviceIndex": device_index,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::aws::documents::CardRange;

    fn on_cards(from: i32, to: i32) -> Result<Option<Value>, PoolProblem> {
        let entry = NetworkInterfaceConfig {
            network_card_index_range: Some(CardRange { from, to }),
            ..NetworkInterfaceConfig::default()
        };
        let families = IpFamilies::of(&["IPv4".to_owned(), "IPv6".to_owned()]);
        network_interfaces(&[entry], "subnet-1", "sg-1", families)
    }

    #[test]
    fn empty_and_endless_ranges_are_errors() {
        assert_eq!(
            on_cards(3, 2).unwrap_err().to_string(),
            "providerConfig.networkInterfaces: required: at least one interface, for the IPv6 address"
        );
        assert_eq!(
            on_cards(0, i32::MAX).unwrap_err().to_string(),
            "providerConfig.networkInterfaces: 2147483648 are too many, at most 256"
        );
    }
}

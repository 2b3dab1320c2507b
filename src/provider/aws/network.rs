//! Subnets, security group and network interfaces of machines (spec/aws-worker.md section 4.1).

use super::documents::{InfrastructureStatus, NetworkInterfaceConfig};
use super::machine_class::{Ipv6Addresses, ListedInterface, NetworkInterface};
use crate::api::gardener::Shoot;
use crate::provider::PoolProblem;

const NODES: &str = "nodes";

/// More interfaces than any machine has; a wide range of network cards would fill the memory.
const MOST_INTERFACES: usize = 256;

/// The IP families of a shoot, as far as they matter to machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IpFamilies {
    /// Machines have an IPv6 address.
    pub(super) ipv6: bool,
    /// They have no other.
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

/// The first security group for nodes.
#[must_use]
pub fn nodes_security_group(infrastructure: &InfrastructureStatus) -> Option<&str> {
    let mut groups = infrastructure.vpc.security_groups.iter();
    groups.find(|group| group.purpose == NODES).map(|group| group.id.as_str())
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
/// When there is none.
pub fn subnet_of_zone<'a>(infrastructure: &'a InfrastructureStatus, zone: &str) -> Result<&'a str, PoolProblem> {
    let mut subnets = infrastructure.vpc.subnets.iter();
    subnets
        .find(|subnet| subnet.purpose == NODES && subnet.zone == zone)
        .map(|subnet| subnet.id.as_str())
        .ok_or_else(|| PoolProblem::ZoneSubnetMissing { zone: zone.to_owned() })
}

/// The interfaces of a machine: those that are listed, or a single plain one.
///
/// # Errors
/// When the list has too many, or none for an IPv6 address.
pub(super) fn network_interfaces(
    listed: &[NetworkInterfaceConfig],
    subnet: &str,
    security_group: &str,
    families: IpFamilies,
) -> Result<Vec<NetworkInterface>, PoolProblem> {
    const PATH: &str = "providerConfig.networkInterfaces";
    let interface = |subnet: &str, listed| NetworkInterface {
        subnet_id: subnet.to_owned(),
        security_group_ids: vec![security_group.to_owned()],
        listed,
        ipv6: None,
    };
    let count: usize = listed.iter().map(|entry| cards(entry).count()).fold(0, usize::saturating_add);
    if count > MOST_INTERFACES {
        return Err(PoolProblem::TooMany { path: PATH, count, most: MOST_INTERFACES });
    }
    let mut interfaces = Vec::with_capacity(count.max(1));
    if listed.is_empty() {
        interfaces.push(interface(subnet, None));
    }
    for entry in listed {
        let subnet = entry.subnet_id.as_deref().unwrap_or(subnet);
        interfaces.extend(cards(entry).map(|card| interface(subnet, Some(listed_interface(entry, card)))));
    }
    if families.ipv6 {
        let first = interfaces
            .first_mut()
            .ok_or(PoolProblem::Required { path: PATH, what: "at least one interface, for the IPv6 address" })?;
        first.ipv6 = Some(Ipv6Addresses { ipv6_address_count: 1, ipv6_prefix_count: 1 });
    }
    Ok(interfaces)
}

/// The network cards that get such an interface.
fn cards(entry: &NetworkInterfaceConfig) -> std::ops::RangeInclusive<i32> {
    match entry.network_card_index_range {
        Some(range) => range.from..=range.to,
        None => {
            let card = entry.network_card_index.unwrap_or_default();
            card..=card
        }
    }
}

fn listed_interface(entry: &NetworkInterfaceConfig, card: i32) -> ListedInterface {
    ListedInterface {
        associate_public_ip_address: false,
        delete_on_termination: true,
        description: entry.description.clone(),
        interface_type: entry.interface_type().to_owned(),
        network_card_index: card,
        device_index: entry.device_index,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::aws::documents::CardRange;

    fn on_cards(from: i32, to: i32) -> Result<Vec<NetworkInterface>, PoolProblem> {
        let entry = NetworkInterfaceConfig {
            network_card_index_range: Some(CardRange { from, to }),
            ..NetworkInterfaceConfig::default()
        };
        let families = IpFamilies::of(&["IPv4".to_owned(), "IPv6".to_owned()]);
        network_interfaces(&[entry], "subnet-1", "sg-1", families)
    }

    #[test]
    fn a_range_is_one_interface_for_each_card() {
        let interfaces = on_cards(1, 3).unwrap();
        let cards: Vec<_> =
            interfaces.iter().filter_map(|interface| Some(interface.listed.as_ref()?.network_card_index)).collect();
        assert_eq!(cards, [1, 2, 3]);
        assert_eq!(interfaces.iter().filter(|interface| interface.ipv6.is_some()).count(), 1);
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

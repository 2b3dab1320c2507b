//! The network interface of a machine.

use serde_json::{Value, json};

use super::documents::InfrastructureStatus;
use wire::api::gardener::Shoot;

/// Path of the infrastructure's address families.
pub(super) const STACK_PATH: &str = "networks.ipfamilies";
/// Default prefix length for the pods of a node.
const DEFAULT_NODE_MASK: i64 = 24;

/// IPv6 in addition to or instead of IPv4.
pub(super) struct Stack {
    pub(super) stack_type: &'static str,
    mask: i64,
}

/// `None` if the infrastructure has only IPv4. The Shoot decides whether machines are dual-stack.
pub(super) fn stack(infrastructure: &InfrastructureStatus, shoot: &Shoot) -> Option<Stack> {
    let families = &infrastructure.networks.ip_families;
    if families.is_empty() || families.iter().map(String::as_str).eq(["IPv4"]) {
        return None;
    }
    let of_shoot = shoot.spec.networking.as_ref().map_or(0, |networking| networking.ip_families.len());
    let settings = shoot.spec.kubernetes.kube_controller_manager.as_ref();
    Some(Stack {
        stack_type: if of_shoot > 1 { "IPV4_IPV6" } else { "IPV4_ONLY" },
        mask: settings.and_then(|settings| settings.node_cidr_mask_size).map_or(DEFAULT_NODE_MASK, i64::from),
    })
}

/// The interfaces of a machine, exactly one.
pub(super) fn network_interfaces(subnet: &str, stack: Option<&Stack>) -> Value {
    let mut interface = json!({"subnetwork": subnet, "disableExternalIP": true});
    if let Some(Stack { stack_type, mask }) = stack {
        interface["useAliasIPs"] = true.into();
        interface["stackType"] = (*stack_type).into();
        interface["ipv6accessType"] = "EXTERNAL".into();
        interface["ipCidrRange"] = format!("/{mask}").into();
        interface["subnetworkRangeName"] = "ipv4-pod-cidr".into();
    }
    json!([interface])
}

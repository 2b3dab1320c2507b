//! Members of a Shoot that replace nodes, by the inputs of class names that they become.

use serde_json::Value;

/// Input, and where a person edits it: in a pool, or in the Shoot where it begins with `spec` or `status`.
const MEMBERS: [(&str, &str); 9] = [
    ("kubernetesVersion", "kubernetes.version"),
    ("machineType", "machine.type"),
    ("machineImage", "machine.image"),
    ("machineImage.version", "machine.image.version"),
    ("shoot.spec.provider.workers[].cri.name", "cri.name"),
    ("kubeletConfig.kubeReserved", "kubernetes.kubelet.kubeReserved"),
    ("kubeletConfig.evictionHard", "kubernetes.kubelet.evictionHard"),
    ("kubeletConfig.cpuManagerPolicy", "kubernetes.kubelet.cpuManagerPolicy"),
    ("shoot.spec.systemComponents.nodeLocalDNS", "spec.systemComponents.nodeLocalDNS or spec.kubernetes.kubeProxy"),
];

/// The member of a Shoot that becomes an input of a class name, and whether it is one of the pool: what a pool does not have
/// of its own counts for the whole cluster.
#[must_use]
pub fn member_in_shoot(input: &str, pool: &Value) -> String {
    let member = member_of_input(input);
    let own = ["kubernetes.version", "kubernetes.kubelet"].iter().find(|own| member.starts_with(**own));
    match own.filter(|own| pool.pointer(&format!("/{}", own.replace('.', "/"))).is_none()) {
        Some(_) => format!("spec.{member}"),
        None => member.to_owned(),
    }
}

/// The member of a Shoot that becomes an input of a class name. Others have the same name in both.
#[must_use]
pub fn member_of_input(input: &str) -> &str {
    let known = MEMBERS.iter().find(|(known, _)| *known == input).map(|(_, member)| *member);
    known.or_else(|| input.strip_prefix("shoot.")).unwrap_or(input)
}

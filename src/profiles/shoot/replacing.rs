//! Fields of a Shoot that replace nodes, by the inputs of class names that they determine.

use serde_json::Value;

/// An input of the node agent key, and its source.
#[derive(Clone, Copy, Debug)]
pub struct ReplacingInput {
    /// Its name in hashes.
    pub input: &'static str,
    /// Path for users to edit: in a pool, or in the Shoot if it starts with `spec` or `status`.
    pub member: &'static str,
    /// When it replaces nodes, for docs/usage.md.
    pub text: &'static str,
}

/// All inputs of the key of a pool with rolling updates.
pub const REPLACING_INPUTS: [ReplacingInput; 12] = {
    const fn of(input: &'static str, member: &'static str, text: &'static str) -> ReplacingInput {
        ReplacingInput { input, member, text }
    }
    [
        of(
            "kubernetesVersion",
            "kubernetes.version",
            "minor version of the pool's `kubernetes.version`, else of the cluster's",
        ),
        of("machineType", "machine.type", "`machine.type`"),
        of("machineImage", "machine.image", "name or version of `machine.image`"),
        of("volume.size", "volume.size", "size of the root volume; also where it is added or removed"),
        of("volume.type", "volume.type", "type of the root volume"),
        of("shoot.spec.provider.workers[].cri.name", "cri.name", "`cri.name`"),
        of(
            "kubeletConfig.kubeReserved",
            "kubernetes.kubelet.kubeReserved",
            "`kubeReserved` of the pool's own `kubernetes.kubelet`, else of the cluster's; another spelling of the same amount is no change",
        ),
        of(
            "kubeletConfig.evictionHard",
            "kubernetes.kubelet.evictionHard",
            "the same for `evictionHard`, also an empty one",
        ),
        of("kubeletConfig.cpuManagerPolicy", "kubernetes.kubelet.cpuManagerPolicy", "the same for `cpuManagerPolicy`"),
        of(
            "shoot.spec.systemComponents.nodeLocalDNS",
            "spec.systemComponents.nodeLocalDNS or spec.kubernetes.kubeProxy",
            "Turning node-local DNS on or off rolls pools below 1.34, and newer pools with kube-proxy in the mode `IPVS`. In those, changing the mode rolls too",
        ),
        of(
            "shoot.status.credentials.rotation.certificateAuthorities.lastInitiationTime",
            "status.credentials.rotation.certificateAuthorities.lastInitiationTime",
            "a rotation of CAs. A rotation that was started without rollout replaces a pool's nodes only when you trigger that pool's rollout",
        ),
        of(
            "shoot.status.credentials.rotation.serviceAccountKey.lastInitiationTime",
            "status.credentials.rotation.serviceAccountKey.lastInitiationTime",
            "the same for the key of service accounts",
        ),
    ]
};

/// Path of the Shoot field that determines an input of a class name. Settings that a pool does not override are
/// cluster-wide.
#[must_use]
pub fn member_in_shoot(input: &str, pool: &Value) -> String {
    let member = member_of_input(input);
    let own = ["kubernetes.version", "kubernetes.kubelet"].iter().find(|own| member.starts_with(**own));
    match own.filter(|own| pool.pointer(&format!("/{}", own.replace('.', "/"))).is_none()) {
        Some(_) => format!("spec.{member}"),
        None => member.to_owned(),
    }
}

/// The Shoot field that determines an input of a class name. Unlisted inputs have the name of their field.
#[must_use]
pub fn member_of_input(input: &str) -> &str {
    let known = REPLACING_INPUTS.iter().find(|known| known.input == input).map(|known| known.member);
    // With in-place updates, only the version of the image is hashed.
    let known = known.or_else(|| (input == "machineImage.version").then_some("machine.image.version"));
    known.or_else(|| input.strip_prefix("shoot.")).unwrap_or(input)
}

//! The kinds that the API server serves, with their differences.

/// Which changes of an object increase its generation. Metadata does not, unless listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    Nothing,
    AllButStatus,
    /// Also annotations, although they are metadata.
    AllButStatusAndAnnotations,
    All,
}

/// A kind.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) is_namespaced: bool,
    /// Whether it has the subresource `status`.
    pub(crate) has_status: bool,
    pub(crate) counted: Counted,
    /// Whether a PUT needs no resource version.
    pub(crate) is_replaced_blindly: bool,
    /// Whether a PUT creates a missing object.
    pub(crate) is_made_by_replacement: bool,
}

impl Kind {
    /// The `apiVersion` of objects.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The name in error messages.
    pub(crate) fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }
}

const fn kind(group: &'static str, version: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind {
        group,
        version,
        kind,
        plural,
        is_namespaced: true,
        has_status: true,
        counted: Counted::AllButStatus,
        is_replaced_blindly: false,
        is_made_by_replacement: false,
    }
}

const EXTENSIONS: &str = "extensions.gardener.cloud";
const MACHINES: &str = "machine.sapcloud.io";

pub(crate) static WORKER: Kind = kind(EXTENSIONS, "v1alpha1", "Worker", "workers");
pub(crate) static CLUSTER: Kind = Kind { is_namespaced: false, ..kind(EXTENSIONS, "v1alpha1", "Cluster", "clusters") };
pub(crate) static MACHINE_DEPLOYMENT: Kind = kind(MACHINES, "v1alpha1", "MachineDeployment", "machinedeployments");
pub(crate) static MACHINE_SET: Kind = kind(MACHINES, "v1alpha1", "MachineSet", "machinesets");
pub(crate) static MACHINE: Kind = kind(MACHINES, "v1alpha1", "Machine", "machines");
pub(crate) static MACHINE_CLASS: Kind =
    Kind { has_status: false, counted: Counted::All, ..kind(MACHINES, "v1alpha1", "MachineClass", "machineclasses") };
pub(crate) static SECRET: Kind = Kind {
    has_status: false,
    counted: Counted::Nothing,
    is_replaced_blindly: true,
    ..kind("", "v1", "Secret", "secrets")
};
pub(crate) static POD: Kind =
    Kind { counted: Counted::Nothing, is_replaced_blindly: true, ..kind("", "v1", "Pod", "pods") };
pub(crate) static DEPLOYMENT: Kind = Kind {
    is_replaced_blindly: true,
    counted: Counted::AllButStatusAndAnnotations,
    ..kind("apps", "v1", "Deployment", "deployments")
};
pub(crate) static EVENT: Kind = Kind {
    has_status: false,
    counted: Counted::Nothing,
    is_replaced_blindly: true,
    is_made_by_replacement: true,
    ..kind("events.k8s.io", "v1", "Event", "events")
};
pub(crate) static LEASE: Kind = Kind {
    has_status: false,
    counted: Counted::Nothing,
    is_made_by_replacement: true,
    ..kind("coordination.k8s.io", "v1", "Lease", "leases")
};

/// All served kinds.
pub(crate) static KINDS: [&Kind; 11] = [
    &WORKER,
    &CLUSTER,
    &MACHINE_DEPLOYMENT,
    &MACHINE_SET,
    &MACHINE,
    &MACHINE_CLASS,
    &SECRET,
    &POD,
    &DEPLOYMENT,
    &EVENT,
    &LEASE,
];

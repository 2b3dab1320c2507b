//! Machine objects of the faker, without a VM or Node, for flows that label or count them.

use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Resource as _, ResourceExt as _};
use serde_json::json;

use super::faker::{deleted, exists, owned, resource};

/// Creates and deletes Machines until a MachineSet has this number.
pub(super) async fn keep(machines: &Api<DynamicObject>, set: &DynamicObject, count: i64) -> kube::Result<()> {
    let labels: Vec<String> = set.labels().iter().map(|(key, value)| format!("{key}={value}")).collect();
    let mut present = machines.list(&ListParams::default().labels(&labels.join(","))).await?.items;
    // Keep its own machines and those it would create. Orphans of other sets belong elsewhere.
    present.retain(|machine| machine.name_any().starts_with(&format!("{}-", set.name_any())));
    let present = owned(set, "MachineSet", machines, present).await?;
    let expected: Vec<String> = (0..count).map(|number| format!("{}-{number}", set.name_any())).collect();
    for name in expected.iter().filter(|name| !present.iter().any(|machine| machine.name_any() == **name)) {
        exists(machines.create(&PostParams::default(), &machine(set, name)).await)?;
        if has_node_agent_secret(set) {
            let patch = Patch::Merge(json!({"status": {"currentStatus": {"phase": "Running"}}}));
            deleted(machines.patch_status(name, &PatchParams::default(), &patch).await)?;
        }
    }
    for surplus in present.iter().filter(|machine| !expected.contains(&machine.name_any())) {
        deleted(machines.delete(&surplus.name_any(), &DeleteParams::default()).await)?;
    }
    Ok(())
}

/// Whether nodes are labelled with their node agent Secret. Only then it matters whether their machines run, and only then the
/// faker writes this.
fn has_node_agent_secret(set: &DynamicObject) -> bool {
    let labels = &set.data["spec"]["template"]["spec"]["nodeTemplate"]["metadata"]["labels"];
    !labels["worker.gardener.cloud/gardener-node-agent-secret-name"].is_null()
}

fn machine(set: &DynamicObject, name: &str) -> DynamicObject {
    let mut machine = DynamicObject::new(name, &resource("Machine"));
    machine.metadata.namespace = set.namespace();
    machine.metadata.labels = set.metadata.labels.clone();
    machine.metadata.owner_references = set.controller_owner_ref(&resource("MachineSet")).map(|owner| vec![owner]);
    machine.data = json!({ "spec": set.data["spec"]["template"]["spec"] });
    machine
}

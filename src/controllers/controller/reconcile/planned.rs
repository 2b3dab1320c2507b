//! The desired state of a Worker with everything that this process applies to a plan: pools of other Workers in the
//! namespace, zones that wait, and the policy for changed images.

use jiff::Timestamp;

use crate::controller::reconcile::reconcile_context::ReconcileContext;
use decisions::provider::{WorkerContext, WorkerError};
use decisions::worker::machines::machine_objects::MachineObjects;
use decisions::worker::plan::desired::{CloudView, DesiredState};

/// Plans the pools of the Worker. Zones that wait depend on `live`, so the plan has to be made again over objects that
/// are read again.
///
/// # Errors
/// If something that all pools share is missing or invalid.
pub(crate) fn planned<'a>(
    context: &ReconcileContext<'_>,
    inputs: WorkerContext<'a>,
    live: &MachineObjects,
    now: Timestamp,
) -> Result<DesiredState<'a>, WorkerError> {
    let provider = context.provider;
    let desired = DesiredState::new(provider, inputs, CloudView::Context)?.beside(context.shoot.others());
    let desired = desired.with_gate(provider, context.operation, live, now);
    Ok(desired.with_images(provider, context.controller.image_policy, live))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use crate::controller::run::context::ControllerContext;
    use crate::controller::test_seed::{CLUSTER, DEPLOYMENT, Seed, WORKER};
    use decisions::worker::plan::zone_by_zone::ANNOTATION;
    use runtime::process::endpoints::MetricsText;

    const SECOND: &str = "machinedeployments/shoot--garden--mail-web-z2";

    /// A steady Worker whose pool has three zones, with this setting in the Shoot.
    async fn settled(setting: Option<&str>) -> (Seed, Arc<ControllerContext>) {
        let (seed, context) = Seed::new();
        seed.merge(CLUSTER, json!({"spec": {"shoot": {"metadata": {"annotations": {ANNOTATION: setting}}}}}));
        seed.change_pool(|pool| {
            pool["zones"] = json!(["europe-west1-b", "europe-west1-c", "europe-west1-d"]);
            (pool["maxSurge"], pool["maxUnavailable"]) = (json!(1), json!(0));
        });
        seed.reconcile(&context).await.unwrap();
        seed.machines_come();
        seed.reconcile(&context).await.unwrap();
        assert_eq!(seed.state(), "Succeeded", "{}", seed.get(WORKER).unwrap()["status"]);
        seed.requested();
        (seed, context)
    }

    /// gardenlet changes the node agent Secret of the pool, and with it the classes.
    fn roll(seed: &Seed) {
        seed.change_pool(|pool| pool["nodeAgentSecretName"] = json!("gardener-node-agent-web-other"));
        seed.request("reconcile");
    }

    fn class(seed: &Seed, deployment: &str) -> String {
        let deployment = seed.get(deployment).unwrap();
        deployment["spec"]["template"]["spec"]["class"]["name"].as_str().unwrap().to_owned()
    }

    fn condition(seed: &Seed) -> Option<Value> {
        let conditions = seed.get(WORKER).unwrap()["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|condition| condition["type"] == "RollsHeld")
    }

    /// Reasons of the events since the last call, and the classes that were created.
    fn happened(seed: &Seed) -> (Vec<String>, usize) {
        let requested = seed.requested();
        let events = requested.iter().filter(|(line, _)| line == "POST events");
        let events = events.filter_map(|(_, event)| event["reason"].as_str().map(str::to_owned)).collect();
        (events, requested.iter().filter(|(line, _)| line == "POST machineclasses").count())
    }

    #[tokio::test(start_paused = true)]
    async fn zones_roll_one_after_the_other() {
        let (seed, context) = settled(Some("web")).await;
        assert_eq!(condition(&seed).unwrap()["reason"], "NothingHeld");
        let strategy = seed.get(SECOND).unwrap()["spec"]["strategy"]["rollingUpdate"].clone();
        assert_eq!(strategy, json!({"maxSurge": 1, "maxUnavailable": 0}), "undivided");
        roll(&seed);
        for (zone, state) in [("zones 2, 3 wait for zone 1", "Processing"), ("zone 3 waits for zone 2", "Processing")] {
            seed.reconcile(&context).await.unwrap();
            assert_eq!(seed.state(), state);
            let (events, classes) = happened(&seed);
            assert_eq!(classes, 1, "one zone at a time: {events:?}");
            assert!(events.contains(&"RollStarted".to_owned()), "{events:?}");
            assert_eq!(events.contains(&"RollHeld".to_owned()), zone.contains("zone 1"), "{events:?}");
            let condition = condition(&seed).unwrap();
            assert_eq!((condition["status"].as_str(), condition["reason"].as_str()), (Some("True"), Some("ZonesWait")));
            assert!(condition["message"].as_str().unwrap().contains(zone), "{condition}");
            let description = seed.last("/status/lastOperation/description");
            assert!(description.contains(zone) && description.contains(" at the latest"), "{description}");
            let metrics = context.metrics.text();
            assert!(
                metrics.contains(r#"rolls_held{namespace="shoot--garden--mail",reason="ZonesWait"} 1"#),
                "{metrics}"
            );
            seed.reconcile(&context).await.unwrap();
            assert_eq!(happened(&seed), (vec![], 0), "nothing more until the zone is done");
            seed.machines_come();
        }
        seed.reconcile(&context).await.unwrap();
        assert_eq!(condition(&seed).unwrap()["reason"], "NothingHeld");
        seed.machines_come();
        seed.reconcile(&context).await.unwrap();
        assert_eq!(seed.state(), "Succeeded");
        assert!(!context.metrics.text().contains("rolls_held{"));
        assert!(!seed.get(SECOND).unwrap()["metadata"]["annotations"].to_string().contains("\\\"w\\\""));
    }

    #[tokio::test(start_paused = true)]
    async fn all_zones_roll_without_the_setting() {
        let (seed, context) = settled(None).await;
        roll(&seed);
        seed.reconcile(&context).await.unwrap();
        assert_eq!((happened(&seed).1, condition(&seed)), (3, None));
    }

    /// Another program writes the class of a waiting zone while this controller gets a conflict elsewhere.
    #[tokio::test(start_paused = true)]
    async fn class_of_another_writer_survives_a_conflict() {
        let (seed, context) = settled(Some("*")).await;
        let old = class(&seed, SECOND);
        roll(&seed);
        seed.when(&format!("PATCH {DEPLOYMENT}"), |objects| {
            let deployment = objects.get_mut(SECOND).unwrap();
            deployment["spec"]["template"]["spec"]["class"]["name"] = json!("theirs");
            deployment["metadata"]["resourceVersion"] = json!("2000");
        });
        let mut is_first = true;
        seed.refuse(move |line, _| {
            (line == format!("PATCH {DEPLOYMENT}") && std::mem::take(&mut is_first)).then_some((409, "Conflict"))
        });
        seed.reconcile(&context).await.unwrap();
        assert_ne!(class(&seed, SECOND), old, "{:?}", seed.get(SECOND));
        let written = seed.requested().into_iter().filter(|(line, _)| *line == format!("PATCH {SECOND}"));
        for (_, patch) in written {
            assert_ne!(patch["spec"]["template"]["spec"]["class"]["name"], json!(old));
        }
    }
}

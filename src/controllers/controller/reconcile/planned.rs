//! The desired state of a Worker with everything that this process applies to a plan: pools of other Workers in the
//! namespace, zones that wait or are stopped, pools on hold, and the policy for changed images.

use jiff::Timestamp;

use crate::controller::reconcile::reconcile_context::ReconcileContext;
use decisions::provider::{WorkerContext, WorkerError};
use decisions::worker::machines::machine_objects::MachineObjects;
use decisions::worker::plan::desired::{CloudView, DesiredState};
use decisions::worker::plan::zone_facts::GateInputs;

/// Plans the pools of the Worker, and reserves the slots of the roll budget that they take. Zones that wait or
/// are stopped and pools on hold depend on `live`, so the plan has to be made again over objects that are read again.
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
    let inputs = GateInputs { provider, operation: context.operation, live, now, budget: None };
    let desired = match &context.controller.roll_slots {
        None => desired.with_gate(&inputs),
        Some(slots) => slots.decide(context.slot_owner(), &context.controller.cache, |budget| {
            desired.clone().with_gate(&GateInputs { budget: Some(budget), ..inputs })
        }),
    };
    Ok(desired.with_images(provider, context.controller.image_policy, live))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use crate::controller::run::context::ControllerContext;
    use crate::controller::run::roll_slots::RollSlots;
    use crate::controller::test_seed::{CLUSTER, DEPLOYMENT, NAMESPACE, Seed, WORKER};
    use crate::controller::test_support::watched;
    use decisions::provider::gcp::Gcp;
    use decisions::worker::plan::class_inputs::ANNOTATION as CLASS_INPUTS;
    use decisions::worker::plan::roll_budget::LET_ROLL_ANNOTATION;
    use decisions::worker::plan::slots::SlotOwner;
    use decisions::worker::plan::stops::{PAUSED_ANNOTATION, STOP_ANNOTATION};
    use decisions::worker::plan::zone_by_zone::ANNOTATION;
    use runtime::process::endpoints::MetricsText;
    use wire::api::gardener::NODE_AGENT_SECRET_LABEL;

    const SECOND: &str = "machinedeployments/shoot--garden--mail-web-z2";

    /// A steady Worker whose pool has three zones, with this setting in the Shoot.
    async fn settled(setting: Option<&str>) -> (Seed, Arc<ControllerContext>) {
        let (seed, context) = Seed::new();
        seed.merge(CLUSTER, json!({"spec": {"shoot": {"metadata": {"annotations": {ANNOTATION: setting}}}}}));
        seed.change_pool(|pool| {
            pool["zones"] = json!(["europe-west1-b", "europe-west1-c", "europe-west1-d"]);
            (pool["maxSurge"], pool["maxUnavailable"]) = (json!(1), json!(0));
            pool["labels"][NODE_AGENT_SECRET_LABEL] = pool["nodeAgentSecretName"].clone();
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
        seed.change_pool(|pool| {
            let key = json!("gardener-node-agent-web-other");
            pool["labels"][NODE_AGENT_SECRET_LABEL] = key.clone();
            pool["nodeAgentSecretName"] = key;
        });
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

    /// Sets or removes the annotation of the Worker, which has an operation in progress.
    fn stop(seed: &Seed, pools: Option<&str>) {
        seed.merge(WORKER, json!({"metadata": {"annotations": {STOP_ANNOTATION: pools}}}));
    }

    /// Names and bodies of the patches of machine deployments since the last call.
    fn patches(seed: &Seed) -> Vec<(String, Value)> {
        let requested = seed.requested().into_iter();
        requested.filter(|(line, _)| line.starts_with("PATCH machinedeployments/")).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn stop_pauses_and_resumes_a_roll() {
        let (seed, context) = settled(Some("web")).await;
        roll(&seed);
        seed.reconcile(&context).await.unwrap();
        happened(&seed);
        stop(&seed, Some("web"));
        seed.reconcile(&context).await.unwrap();
        let requested = seed.requested();
        let written: Vec<_> =
            requested.iter().filter(|(line, _)| line.starts_with("PATCH machinedeployments/")).collect();
        assert_eq!(written.len(), 1, "{written:?}");
        assert_eq!(
            (written[0].0.as_str(), &written[0].1["spec"]),
            (&*format!("PATCH {DEPLOYMENT}"), &json!({"paused": true}))
        );
        assert_eq!(written[0].1["metadata"]["annotations"], json!({PAUSED_ANNOTATION: "true"}));
        assert!(requested.iter().any(|(_, event)| event["reason"] == "RollStopped"), "{requested:?}");
        let held = condition(&seed).unwrap();
        assert_eq!((held["status"].as_str(), held["reason"].as_str()), (Some("True"), Some("Stopped")));
        let description = seed.last("/status/lastOperation/description");
        assert!(description.contains("no node can join zones 2, 3 of pool \"web\""), "{description}");
        let metric = r#"rolls_held{namespace="shoot--garden--mail",reason="Stopped"} 1"#;
        assert!(context.metrics.text().contains(metric), "{}", context.metrics.text());
        seed.reconcile(&context).await.unwrap();
        assert_eq!((patches(&seed), seed.state().as_str()), (vec![], "Processing"), "nothing more while it lasts");

        stop(&seed, None);
        seed.reconcile(&context).await.unwrap();
        let (events, classes) = happened(&seed);
        assert!(events.contains(&"RollResumed".to_owned()) && classes == 0, "{events:?}");
        let resumed = seed.get(DEPLOYMENT).unwrap();
        assert!(resumed["spec"]["paused"].is_null() && resumed["metadata"]["annotations"][PAUSED_ANNOTATION].is_null());
        assert_eq!(condition(&seed).unwrap()["reason"], "ZonesWait");
    }

    #[tokio::test(start_paused = true)]
    async fn pause_by_a_person_survives_a_conflict() {
        let (seed, context) = settled(None).await;
        roll(&seed);
        seed.reconcile(&context).await.unwrap();
        stop(&seed, Some("*"));
        seed.when(&format!("PATCH {DEPLOYMENT}"), |objects| {
            let deployment = objects.get_mut(DEPLOYMENT).unwrap();
            deployment["spec"]["paused"] = json!(true);
            deployment["metadata"]["resourceVersion"] = json!("2000");
        });
        seed.reconcile(&context).await.unwrap();
        let paused = seed.get(DEPLOYMENT).unwrap();
        assert!(paused["metadata"]["annotations"][PAUSED_ANNOTATION].is_null(), "it is theirs: {paused}");
        assert_eq!(paused["spec"]["paused"], true);
    }

    #[tokio::test(start_paused = true)]
    async fn stop_keeps_a_roll_from_starting() {
        let (seed, context) = settled(None).await;
        let old = class(&seed, SECOND);
        stop(&seed, Some("*"));
        roll(&seed);
        seed.reconcile(&context).await.unwrap();
        assert_eq!((class(&seed, SECOND), seed.state().as_str()), (old.clone(), "Processing"));
        assert_eq!(happened(&seed).1, 0, "no class is created");
        stop(&seed, Some(""));
        seed.reconcile(&context).await.unwrap();
        assert_ne!(class(&seed, SECOND), old);
        seed.machines_come();
        seed.reconcile(&context).await.unwrap();
        assert_eq!(seed.state(), "Succeeded");
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

    /// A release that renders other class names with the same node agent Secret.
    fn rename_classes(seed: &Seed) {
        for (name, deployment) in seed.all("machinedeployments/") {
            let class = deployment["spec"]["template"]["spec"]["class"]["name"].as_str().unwrap();
            let earlier = format!("{class}-earlier");
            for kind in ["machineclasses", "secrets"] {
                let mut object = seed.get(&format!("{kind}/{class}")).unwrap();
                object["metadata"]["name"] = json!(earlier);
                seed.remove(&format!("{kind}/{class}"));
                seed.put(&format!("{kind}/{earlier}"), object);
            }
            let annotations = json!({"metadata": {"annotations": {CLASS_INPUTS: null}}});
            seed.merge(&name, annotations);
            seed.merge(&name, json!({"spec": {"template": {"spec": {"class": {"name": earlier}}}}}));
        }
        seed.machines_come();
        seed.request("reconcile");
    }

    /// A Worker whose classes have other names than this program renders, and a controller with this budget.
    async fn renamed(limit: usize) -> (Seed, ControllerContext) {
        let (seed, context) = settled(None).await;
        rename_classes(&seed);
        drop(context);
        let context = another_controller(&seed, limit).await;
        seed.requested();
        (seed, context)
    }

    /// Another process with this budget, whose watches have reported all objects.
    async fn another_controller(seed: &Seed, limit: usize) -> ControllerContext {
        let mut context = Arc::into_inner(seed.controller()).unwrap();
        context.roll_slots = Some(Arc::new(RollSlots::new(limit, false)));
        context.shoot_namespace(NAMESPACE, &Gcp).read_machine_objects().await.unwrap();
        watched(&context);
        context
    }

    /// Number of slots in use.
    fn used_slots(context: &ControllerContext) -> usize {
        context.roll_slots.as_ref().unwrap().numbers(&context.cache).used.values().sum()
    }

    #[tokio::test(start_paused = true)]
    async fn pool_on_hold_succeeds_with_its_class() {
        let (seed, context) = renamed(0).await;
        let earlier = class(&seed, SECOND);
        seed.reconcile(&context).await.unwrap();
        assert_eq!(seed.state(), "Succeeded", "{}", seed.get(WORKER).unwrap()["status"]);
        assert_eq!(class(&seed, SECOND), earlier);
        let (events, classes) = happened(&seed);
        assert!(events.contains(&"RollHeld".to_owned()) && classes == 0, "{events:?}");
        let condition = condition(&seed).unwrap();
        assert_eq!((condition["status"].as_str(), condition["reason"].as_str()), (Some("True"), Some("BudgetUsedUp")));
        assert!(condition["message"].as_str().unwrap().contains("on hold"), "{condition}");
        let held = r#"rolls_held{namespace="shoot--garden--mail",reason="BudgetUsedUp"} 1"#;
        assert!(context.metrics.text().contains(held), "{}", context.metrics.text());
        assert!(seed.get(&format!("machineclasses/{earlier}")).is_some(), "it is no orphan");

        seed.request("reconcile");
        seed.reconcile(&context).await.unwrap();
        let writes = seed.requested().into_iter().map(|(line, _)| line).filter(|line| !line.starts_with("GET"));
        assert_eq!(writes.filter(|line| !line.starts_with("PATCH workers/")).collect::<Vec<_>>(), [""; 0]);

        seed.merge(WORKER, json!({"metadata": {"annotations": {LET_ROLL_ANNOTATION: "web"}}}));
        seed.request("reconcile");
        seed.reconcile(&context).await.unwrap();
        assert_ne!(class(&seed, SECOND), earlier);
        let (events, classes) = happened(&seed);
        assert!(events.contains(&"RollReleased".to_owned()) && classes == 3, "{events:?}");
        assert_eq!(used_slots(&context), 0, "it has no slot");
    }

    #[tokio::test(start_paused = true)]
    async fn slot_lasts_until_the_pool_is_done() {
        let (seed, context) = renamed(1).await;
        let earlier = class(&seed, SECOND);
        seed.reconcile(&context).await.unwrap();
        assert!(class(&seed, SECOND) != earlier && seed.state() == "Processing");
        assert_eq!(used_slots(&context), 1);
        seed.machines_fail();
        seed.reconcile(&context).await.unwrap();
        assert_eq!(used_slots(&context), 1, "a failure keeps the slot");
        let annotations = seed.get(SECOND).unwrap()["metadata"]["annotations"].to_string();
        assert!(annotations.contains("budget"), "{annotations}");
        seed.machines_come();
        let next = another_controller(&seed, 1).await;
        seed.reconcile(&next).await.unwrap();
        assert_eq!(seed.state(), "Succeeded", "{}", seed.get(WORKER).unwrap()["status"]);
        assert_eq!(used_slots(&next), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn used_slots_hold_other_pools() {
        let (seed, context) = renamed(1).await;
        let slots = context.roll_slots.as_ref().unwrap();
        let other = SlotOwner { namespace: "other", uid: "other" };
        let view = slots.view(other, &context.cache);
        assert_eq!((view.limit, view.free), (1, 1));
        slots.reserve_for_test(other, "a");
        let earlier = class(&seed, SECOND);
        seed.reconcile(&context).await.unwrap();
        assert!(class(&seed, SECOND) == earlier && seed.state() == "Succeeded");
        slots.forget("other");
        seed.request("reconcile");
        seed.reconcile(&context).await.unwrap();
        assert_ne!(class(&seed, SECOND), earlier, "a slot is free");
    }

    #[tokio::test(start_paused = true)]
    async fn unanswered_write_keeps_its_reservation() {
        for (code, used) in [(504, 1), (422, 0)] {
            let (seed, context) = renamed(1).await;
            seed.refuse(move |line, _| line.starts_with("PATCH machinedeployments/").then_some((code, "Refused")));
            let _ = seed.reconcile(&context).await;
            assert_eq!(used_slots(&context), used, "{code}");
        }
    }
}

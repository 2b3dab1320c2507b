//! Pure step of a deletion: the classes that machine-controller-manager needs to delete machines. It computes writes
//! that repair them, and messages about missing ones that can't be recreated.

use std::collections::{BTreeMap, BTreeSet};

use crate::pool::names::pool_prefix;
use crate::provider::MachinePlan;
use crate::worker::machines::machine_objects::MachineObjects;
use crate::worker::plan::Plan;
use crate::worker::plan::changes::MachineChanges;
use crate::worker::status::reconcile_outcome::Failure;
use wire::api::bounded_text::beginning;
use wire::api::gardener::{ErrorCode, Worker};

/// Limit of listed classes per reason, and of listed reasons.
const MOST: usize = 3;
/// Maximum length of a name or a reason in characters.
const LONGEST: usize = 300;
/// Advice if the cause can be corrected.
const ADVICE_CORRECT: &str = "made again as soon as that is put right";
/// Advice if there is no cause to correct.
const ADVICE_MANUAL: &str = "only a person can make it again, like another class of the pool";

/// Writes of Secrets and classes needed to delete machines: planned ones that are used or exist, if they are missing or
/// differ. Empty once no machine object is left that could use them. Deployments are never written.
#[must_use]
pub fn repairs<'a>(plan: &'a Plan, namespace: &str, live: &MachineObjects) -> Vec<MachineChanges<'a>> {
    if !live.uses_classes() {
        return Vec::new();
    }
    let used = live.used_classes();
    let is_meant = |machine: &&MachinePlan| {
        let name = machine.deployment.class_name.0.as_str();
        used.contains(name) || live.classes.get(name).is_some_and(|class| !class.is_being_deleted)
    };
    let changes = plan.machines().filter(is_meant).map(|machine| MachineChanges::of_class(machine, namespace, live));
    changes.filter(MachineChanges::is_to_write).collect()
}

/// Inputs that determine which classes can be recreated.
pub struct DeletionPrerequisites<'a> {
    /// The Worker.
    pub worker: &'a Worker,
    /// Technical ID of the shoot, which class names start with.
    pub technical_id: &'a str,
    /// The plan, or why there is none.
    pub plan: Result<&'a Plan, &'a Failure>,
    /// Messages of the API server for classes that it has rejected, by name.
    pub refused: &'a BTreeMap<String, String>,
    /// Whether the cloud credentials are known to be missing.
    pub without_credentials: bool,
}

/// Missing parts of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Missing {
    Class,
    Secret,
    Both,
    /// Nothing is missing, but the class can't be written as planned.
    Writing,
}

/// Why it can't be recreated.
struct Reason {
    text: String,
    help: &'static str,
    codes: BTreeSet<ErrorCode>,
}

impl DeletionPrerequisites<'_> {
    /// Missing prerequisites for deleting machines that can't be created, with the reasons. Bounded in length.
    #[must_use]
    pub fn missing(&self, live: &MachineObjects) -> Option<Failure> {
        let mut codes = BTreeSet::new();
        let mut texts: Vec<String> = Vec::new();
        if self.without_credentials && !live.machines.is_empty() {
            let reference = &self.worker.spec.secret_ref;
            let [namespace, name] =
                [&reference.namespace, &reference.name].map(|text| text.as_deref().unwrap_or_default());
            let name = beginning(&format!("{namespace}/{name}"), LONGEST);
            texts.push(format!("Secret {name} with the cloud credentials is missing, so no machine can be deleted"));
            codes.insert(ErrorCode::InfraUnauthenticated);
        }
        let needed: BTreeSet<&str> = live.machines.iter().map(|machine| &*machine.member.class).collect();
        let mut groups: BTreeMap<(Missing, String), Vec<&str>> = BTreeMap::new();
        for class in needed.into_iter().filter(|class| !class.is_empty()) {
            let Some(missing) = self.what_is_missing(class, live) else { continue };
            let Some(reason) = self.reason(class) else { continue };
            let mut text = beginning(&reason.text, LONGEST);
            if !reason.help.is_empty() {
                text.push_str("; ");
                text.push_str(reason.help);
            }
            codes.extend(reason.codes);
            groups.entry((missing, text)).or_default().push(class);
        }
        texts.extend(groups.iter().take(MOST).map(|((missing, reason), classes)| sentence(*missing, classes, reason)));
        if groups.len() > MOST {
            texts.push(format!("and {} more reasons why machine classes are missing", groups.len() - MOST));
        }
        (!texts.is_empty()).then(|| Failure { message: texts.join("; "), codes })
    }

    fn what_is_missing(&self, class: &str, live: &MachineObjects) -> Option<Missing> {
        match (live.classes.contains_key(class), live.class_secrets.contains_key(class)) {
            (false, false) => Some(Missing::Both),
            (false, true) => Some(Missing::Class),
            (true, false) => Some(Missing::Secret),
            (true, true) => self.refused.contains_key(class).then_some(Missing::Writing),
        }
    }

    /// Why a class can't be created; `None` if it will be.
    fn reason(&self, class: &str) -> Option<Reason> {
        let plan = match self.plan {
            Ok(plan) => plan,
            Err(failure) => {
                return Some(Reason {
                    text: failure.message.clone(),
                    help: ADVICE_CORRECT,
                    codes: failure.codes.clone(),
                });
            }
        };
        if let Some(result) = self.refused.get(class) {
            return Some(Reason { text: result.clone(), help: "", codes: BTreeSet::new() });
        }
        if plan.target_classes().iter().any(|target| target.0 == class) {
            return None;
        }
        let by_hand = |text: String| Reason { text, help: ADVICE_MANUAL, codes: BTreeSet::new() };
        let Some(pool) = self.pool_of(class) else {
            return Some(by_hand("the Worker has no such pool any more".to_owned()));
        };
        Some(match plan.unplanned().find(|error| error.pool == pool) {
            Some(error) => {
                let codes = error.problem.code_when_late().into_iter().collect();
                Reason { text: error.to_string(), help: ADVICE_CORRECT, codes }
            }
            None => by_hand(format!("pool {pool:?} has another class now")),
        })
    }

    /// The pool of a class, by its name. Pool names may start with another one's, so the longest match wins.
    fn pool_of(&self, class: &str) -> Option<&str> {
        let pools = self.worker.spec.pools.iter().map(|pool| pool.name.as_str());
        let of_class = pools.filter(|pool| {
            let rest = class.strip_prefix(&pool_prefix(self.technical_id, pool));
            rest.is_some_and(|rest| rest.starts_with('-'))
        });
        of_class.max_by_key(|pool| pool.len())
    }
}

fn sentence(missing: Missing, classes: &[&str], reason: &str) -> String {
    let mut names = classes.iter().take(MOST).map(|class| beginning(class, LONGEST)).collect::<Vec<_>>().join(", ");
    if classes.len() > MOST {
        names.push_str(&format!(" and {} more", classes.len() - MOST));
    }
    let [class, is, secret, its] =
        if classes.len() == 1 { ["class", "is", "Secret", "its"] } else { ["classes", "are", "Secrets", "their"] };
    match missing {
        Missing::Class => {
            format!("machine {class} {names} {is} missing, so {its} machines can't be deleted: {reason}")
        }
        Missing::Secret => {
            format!(
                "the {secret} of machine {class} {names} {is} missing, so {its} machines can't be deleted: {reason}"
            )
        }
        Missing::Both => {
            format!(
                "machine {class} {names} with {its} {secret} {is} missing, so {its} machines can't be deleted: {reason}"
            )
        }
        Missing::Writing => format!("machine {class} {names} can't be repaired: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::provider::test_support::{NAMESPACE, machine_plan};
    use crate::provider::{PoolPlan, PoolProblem, UserData};
    use crate::worker::machines::machine_objects::{DigestedObject, LiveDeployment};
    use crate::worker::plan::changes::{Write, class_document, class_secret};

    const CLASS: &str = "shoot--p--s-a-4f8a0-z1";

    /// A plan with the class in pool `a`, in which pool `a-b` can't be planned.
    fn plan() -> Plan {
        let pool = PoolPlan {
            pool: "a".to_owned(),
            machines: vec![machine_plan()],
            status_image: json!({}),
            in_place_hash: None,
        };
        Plan {
            pools: vec![Ok(pool), Err(PoolProblem::VolumeMissing.of_pool("a-b"))],
            provider_status: json!({}),
            ..Plan::default()
        }
    }

    fn worker() -> Worker {
        let pool =
            |name: &str| json!({"name": name, "machineType": "t", "machineImage": {"name": "i", "version": "1"}});
        let document = json!({
            "metadata": {"name": "w", "namespace": NAMESPACE},
            "spec": {
                "type": "azure", "pools": [pool("a"), pool("a-b")],
                "secretRef": {"name": "cloudprovider", "namespace": NAMESPACE},
            },
        });
        serde_json::from_str(&document.to_string()).unwrap()
    }

    /// One machine of each of these classes.
    fn machines_of(classes: &[&str]) -> MachineObjects {
        let machine = |class: &&str| serde_json::from_value(json!({"spec": {"class": {"name": class}}})).unwrap();
        MachineObjects { machines: classes.iter().map(machine).collect(), ..MachineObjects::default() }
    }

    fn with_class(mut live: MachineObjects, name: &str, class: Value) -> MachineObjects {
        live.classes.insert(name.to_owned(), DigestedObject::class(class).unwrap());
        live
    }

    fn with_secret(mut live: MachineObjects, name: &str, machine: &MachinePlan) -> MachineObjects {
        live.class_secrets.insert(name.to_owned(), DigestedObject::secret(class_secret(machine, NAMESPACE)));
        live
    }

    fn missing(plan: Result<&Plan, &Failure>, live: &MachineObjects) -> Option<Failure> {
        let worker = worker();
        let refused = BTreeMap::new();
        DeletionPrerequisites {
            worker: &worker,
            technical_id: NAMESPACE,
            plan,
            refused: &refused,
            without_credentials: false,
        }
        .missing(live)
    }

    #[test]
    fn repairs_used_classes() {
        let plan = plan();
        let missing = repairs(&plan, NAMESPACE, &machines_of(&[CLASS]));
        assert!(matches!(&*missing, [change] if matches!(change.secret, Some(Write::Create(_)))
            && matches!(change.class, Some(Write::Create(_))) && change.deployment.is_none()));

        let mut class = class_document(&machine_plan());
        let whole = with_secret(with_class(machines_of(&[CLASS]), CLASS, class.clone()), CLASS, &machine_plan());
        assert!(repairs(&plan, NAMESPACE, &whole).is_empty(), "nothing differs");

        class["credentialsSecretRef"] = json!({"name": "old"});
        let emptied = MachinePlan { user_data: UserData(Vec::new()), ..machine_plan() };
        let edited = with_secret(with_class(whole, CLASS, class), CLASS, &emptied);
        let edited = repairs(&plan, NAMESPACE, &edited);
        assert!(matches!(&*edited, [change] if matches!(change.secret, Some(Write::Replace(_)))
            && matches!(change.class, Some(Write::Replace(_)))));
    }

    #[test]
    fn does_not_create_unused_classes() {
        let plan = plan();
        assert!(repairs(&plan, NAMESPACE, &machines_of(&["shoot--p--s-a-old00-z1"])).is_empty());
        let differing = json!({"metadata": {"name": CLASS}});
        let unused = |class: &Value| with_class(machines_of(&["shoot--p--s-a-old00-z1"]), CLASS, class.clone());
        assert_eq!(repairs(&plan, NAMESPACE, &unused(&differing)).len(), 1, "what is there is repaired");
        let mut vanishing = differing.clone();
        vanishing["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert!(repairs(&plan, NAMESPACE, &unused(&vanishing)).is_empty());
        let without_machines = with_class(MachineObjects::default(), CLASS, differing);
        assert!(repairs(&plan, NAMESPACE, &without_machines).is_empty(), "the machines are gone");
    }

    #[test]
    fn deployment_uses_its_class() {
        let deployment = json!({
            "metadata": {"name": "d"}, "spec": {"template": {"spec": {"class": {"name": CLASS}}}},
        });
        let mut live = MachineObjects::default();
        live.deployments.insert("d".to_owned(), LiveDeployment::read_without_codes(deployment).unwrap());
        assert_eq!(repairs(&plan(), NAMESPACE, &live).len(), 1);
        assert_eq!(missing(Err(&Failure::new("no Cluster")), &live), None, "there is no machine to delete");
    }

    #[test]
    fn reports_missing_classes_with_reason() {
        let plan = plan();
        assert_eq!(missing(Ok(&plan), &machines_of(&[CLASS])), None, "it is made again");

        let failed = missing(Ok(&plan), &machines_of(&["shoot--p--s-a-b-00000-z1"])).unwrap();
        let target = "machine class shoot--p--s-a-b-00000-z1 with its Secret is missing, so its machines can't be deleted: \
                      pool \"a-b\": volume: required; made again as soon as that is put right";
        assert_eq!(failed.message, target);
        assert_eq!(failed.codes, [ErrorCode::ConfigurationProblem].into());

        let old = json!({"metadata": {"name": "shoot--p--s-a-old00-z1"}});
        let live = with_class(machines_of(&["shoot--p--s-a-old00-z1"]), "shoot--p--s-a-old00-z1", old);
        let text = missing(Ok(&plan), &live).unwrap().message;
        assert!(text.starts_with("the Secret of machine class shoot--p--s-a-old00-z1 is missing"), "{text}");
        assert!(text.contains("pool \"a\" has another class now; only a person can make it"), "{text}");

        let elsewhere = missing(Ok(&plan), &machines_of(&["other-z1"])).unwrap().message;
        assert!(elsewhere.contains("no such pool"), "{elsewhere}");

        let worker_error =
            Failure { codes: [ErrorCode::InfraUnauthenticated].into(), ..Failure::new("no credentials") };
        let failed = missing(Err(&worker_error), &machines_of(&[CLASS])).unwrap();
        assert!(failed.message.contains("no credentials") && failed.codes == worker_error.codes, "{failed:?}");
    }

    #[test]
    fn reports_rejections_and_missing_credentials() {
        let worker = worker();
        let plan = plan();
        let refused = [(CLASS.to_owned(), "Secret is immutable".to_owned())].into();
        let prerequisites = DeletionPrerequisites {
            worker: &worker,
            technical_id: NAMESPACE,
            plan: Ok(&plan),
            refused: &refused,
            without_credentials: true,
        };
        let live = with_class(machines_of(&[CLASS]), CLASS, json!({"metadata": {"name": CLASS}}));
        let text = prerequisites.missing(&with_secret(live, CLASS, &machine_plan())).unwrap().message;
        assert_eq!(
            text,
            "Secret shoot--p--s/cloudprovider with the cloud credentials is missing, so no machine can be deleted; \
             machine class shoot--p--s-a-4f8a0-z1 can't be repaired: Secret is immutable"
        );
        assert_eq!(prerequisites.missing(&MachineObjects::default()), None);
    }

    #[test]
    fn names_three_and_counts_rest() {
        let worker = worker();
        let plan = plan();
        let [class, secret, both] = ["lost-class", "lost-secret", "lost-both"];
        let three = with_secret(machines_of(&[class, secret, both]), class, &machine_plan());
        let three = with_class(three, secret, json!({"metadata": {"name": secret}}));
        let text = missing(Ok(&plan), &three).unwrap().message;
        assert!(
            [class, secret, both].iter().all(|name| text.contains(name)) && !text.contains(" more reasons"),
            "{text}"
        );

        let mut four =
            with_secret(with_class(three, CLASS, json!({"metadata": {"name": CLASS}})), CLASS, &machine_plan());
        four.machines.extend(machines_of(&[CLASS]).machines);
        let refused = [(CLASS.to_owned(), "Secret is immutable".to_owned())].into();
        let technical_id = NAMESPACE;
        let without_credentials = false;
        let prerequisites = DeletionPrerequisites {
            worker: &worker,
            technical_id,
            plan: Ok(&plan),
            refused: &refused,
            without_credentials,
        };
        let text = prerequisites.missing(&four).unwrap().message;
        assert!(text.ends_with("; and 1 more reasons why machine classes are missing"), "{text}");

        let of_one_reason = |count: usize| {
            let names: Vec<String> = (0..count).map(|number| format!("gone-{number}")).collect();
            missing(Ok(&plan), &machines_of(&names.iter().map(String::as_str).collect::<Vec<_>>())).unwrap().message
        };
        assert!(of_one_reason(3).contains(", gone-2 with their Secrets"), "{}", of_one_reason(3));
        assert!(of_one_reason(4).contains("gone-2 and 1 more with their Secrets"), "{}", of_one_reason(4));
    }

    #[test]
    fn message_is_bounded_without_user_data() {
        let reason = Failure::new("é".repeat(100_000));
        let classes: Vec<String> = (0..5000).map(|number| format!("{NAMESPACE}-a-{number:05}-z1")).collect();
        let live = machines_of(&classes.iter().map(String::as_str).collect::<Vec<_>>());
        let text = missing(Err(&reason), &live).unwrap().message;
        assert!(text.contains("and 4997 more") && text.len() < 1500, "{} bytes: {text}", text.len());
        let message = missing(Ok(&plan()), &live).unwrap().message;
        assert!(!message.contains("token"), "{message}");
    }
}

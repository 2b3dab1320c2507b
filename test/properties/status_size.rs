//! Size limits of a status: however many machines fail and whatever texts a cloud returns, the status can be written,
//! counts the machines that it does not name, contains everything that the autoscaler reads, and is written once.

use std::collections::BTreeMap;

use gardener_extension_worker::api::gardener::{ErrorCode, MachineDeploymentStatus, Worker};
use gardener_extension_worker::provider::azure::Azure;
use gardener_extension_worker::provider::{PoolPlan, PoolProblem};
use gardener_extension_worker::worker::machines::machine_objects::{FailedMachine, LiveDeployment};
use gardener_extension_worker::worker::machines::progress::{DeploymentProgress, Phase, Progress};
use gardener_extension_worker::worker::plan::Plan;
use gardener_extension_worker::worker::request::{Operation, Request};
use gardener_extension_worker::worker::status::conditions::pool_conditions;
use gardener_extension_worker::worker::status::events::{WorkerEvent, events};
use gardener_extension_worker::worker::status::every_node_ready::every_node_ready;
use gardener_extension_worker::worker::status::outcome::{Found, PendingDeletion, outcome};
use gardener_extension_worker::worker::status::pool_readiness::PoolReadiness;
use gardener_extension_worker::worker::status::published::{ProviderStatus, Published};
use gardener_extension_worker::worker::status::status_text::TextSize;
use gardener_extension_worker::worker::status::{Findings, StatusReport};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Size limit of a status. etcd accepts 1.5 MiB for an object, and a third of it is reserved for the specification.
const MOST_OF_STATUS: usize = 1 << 20;
/// Size limit of the texts in a status, including those of conditions.
const MOST_OF_TEXTS: usize = 256 * 1024;

const NOW: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// The failures of a Worker.
#[derive(Clone, Debug)]
struct Outage {
    pools: usize,
    zones: usize,
    /// Failed machines of each deployment except the first.
    machines: usize,
    /// Failed machines of the first deployment.
    machines_of_first: usize,
    /// Percentage of pools that can't be planned.
    unplanned: usize,
    /// Texts that the cloud returns.
    texts: Vec<String>,
    /// Whether the text contains a different number for each machine, as with request IDs.
    is_numbered: bool,
    /// Prefix of pool names, before the number.
    name: String,
}

fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => "[a-z ]{1,20}",
        1 => "[<>&\"\\\\\n\t;,]{1,20}",
        1 => "[\u{0}-\u{1f}\u{7f}-\u{9f}\u{202a}-\u{202e}\u{2066}-\u{2069}\u{feff}]{1,20}",
        1 => "\\PC{1,20}",
        1 => any::<String>(),
    ];
    (proptest::collection::vec(piece, 0..6), 1_usize..100).prop_map(|(pieces, times)| pieces.concat().repeat(times))
}

fn any_outage() -> impl Strategy<Value = Outage> {
    let size = prop_oneof![1_usize..5, 5_usize..1001];
    let name =
        prop_oneof![4 => Just("pool".to_owned()), 1 => any_text().prop_map(|text| text.chars().take(200).collect())];
    let texts = proptest::collection::vec(any_text(), 1..5);
    (size, 1_usize..4, 0_usize..4, 0_usize..1201, 0_usize..101, texts, any::<bool>(), name).prop_map(
        |(pools, zones, machines, machines_of_first, unplanned, texts, is_numbered, name)| Outage {
            pools,
            zones,
            machines,
            machines_of_first,
            unplanned,
            texts,
            is_numbered,
            name,
        },
    )
}

impl Outage {
    fn pool(&self, number: usize) -> String {
        format!("{}-{number}", self.name)
    }

    fn is_planned(&self, pool: usize) -> bool {
        pool * 37 % 100 >= self.unplanned
    }

    fn deployments(&self) -> impl Iterator<Item = (usize, String)> {
        let planned = (0..self.pools).filter(|pool| self.is_planned(*pool));
        planned.flat_map(move |pool| (1..=self.zones).map(move |zone| (pool, format!("{}-z{zone}", self.pool(pool)))))
    }

    fn plan(&self) -> Plan {
        let text = || self.texts[0].clone();
        let problem = || PoolProblem::ImageUnresolved {
            image: text(),
            version: text(),
            machine_type: text(),
            in_profile: text(),
            in_status: text(),
            fitting: text(),
        };
        let pool = |number: usize| match self.is_planned(number) {
            true => {
                Ok(PoolPlan { pool: self.pool(number), machines: vec![], status_image: json!({}), in_place_hash: None })
            }
            false => Err(problem().of_pool(&self.pool(number))),
        };
        Plan {
            pools: (0..self.pools).map(pool).collect(),
            provider_status: json!({"kind": "WorkerStatus"}),
            ..Plan::default()
        }
    }

    fn failed_machines(&self, deployment: usize, name: &str) -> Vec<FailedMachine> {
        let count = if deployment == 0 { self.machines_of_first } else { self.machines };
        let machine = |machine: usize| {
            let text = &self.texts[machine % self.texts.len()];
            let number = if self.is_numbered { format!("request {deployment}/{machine}: ") } else { String::new() };
            FailedMachine {
                name: format!("{name}-{machine:05}"),
                description: format!("{number}{text}"),
                codes: [ErrorCode::InfraQuotaExceeded].into(),
                is_creation: true,
            }
        };
        (0..count).map(machine).collect()
    }

    fn progress(&self) -> Progress {
        let deployment = |(number, (pool, name)): (usize, (usize, String))| {
            let failed = self.failed_machines(number, &name);
            DeploymentProgress {
                pool: self.pool(pool),
                phase: if failed.is_empty() { Phase::Pending } else { Phase::Failed(failed) },
                deployment: name,
                is_healthy: true,
                rolls: false,
                desired: 1,
                present: 1,
                updated: 1,
                available: 0,
                unavailable: 1,
                preserved: 0,
                unselected: 0,
                selected: 0,
                untaken_since: None,
            }
        };
        let deployments = self.deployments().enumerate().map(deployment).collect();
        Progress { namespace: "shoot--p--s".to_owned(), deployments, hibernated: false }
    }

    fn live(&self) -> BTreeMap<String, LiveDeployment> {
        let Some((_, name)) = self.deployments().next() else { return BTreeMap::new() };
        let failed = self.failed_machines(0, &name).into_iter().map(|machine| {
            json!({"name": machine.name, "lastOperation": {"description": machine.description, "type": "Create"}})
        });
        let document = json!({"metadata": {"name": name}, "status": {"failedMachines": failed.collect::<Vec<_>>()}});
        [(name, LiveDeployment::read(document, &Azure).unwrap())].into()
    }

    fn bounds(&self) -> Vec<MachineDeploymentStatus> {
        let of =
            |(_, name): (usize, String)| MachineDeploymentStatus { name, minimum: 1, maximum: 3, priority: Some(1) };
        self.deployments().map(of).collect()
    }
}

fn worker(status: &Value) -> Worker {
    let document = json!({"metadata": {"generation": 3}, "spec": {"type": "azure"}, "status": status});
    serde_json::from_str(&document.to_string()).unwrap()
}

/// The status that a reconcile writes for a Worker whose status is `before`.
fn written(outage: &Outage, before: &Value) -> Option<Value> {
    let (plan, progress, pending_deletion, worker) =
        (outage.plan(), outage.progress(), PendingDeletion::default(), worker(before));
    let write_errors = [format!("MachineClass can't be written: {}", outage.texts[0])];
    let found = Found {
        plan: &plan,
        write_errors: if outage.unplanned > 50 { &write_errors } else { &[] },
        progress: &progress,
        pending_deletion: &pending_deletion,
        deadline: NOW + jiff::SignedDuration::from_secs(60),
        ready_since: NOW,
    };
    let (outcome, _) = outcome(&found, NOW);
    let mut conditions = pool_conditions(&plan, found.write_errors, &progress).to_vec();
    conditions.push(every_node_ready(&outage.live(), false));
    let published = Published {
        machine_deployments: outage.bounds(),
        renew_time: false,
        provider_status: ProviderStatus {
            recorded: before["providerStatus"].clone(),
            target: plan.provider_status.clone(),
        },
    };
    let findings = Findings {
        operation: Operation::Reconcile,
        outcome: &outcome,
        published: Some(&published),
        deployed: Some((&plan, &progress)),
        conditions: &conditions,
        has_events: false,
    };
    StatusReport::of(&worker, &Request::of(&worker, NOW), findings, NOW)
        .patch(TextSize::Full)
        .map(|patch| patch["status"].clone())
}

fn texts(status: &Value) -> Vec<&str> {
    let conditions = status["conditions"].as_array().into_iter().flatten().map(|condition| &condition["message"]);
    let operation = [&status["lastOperation"]["description"], &status["lastError"]["description"]];
    conditions.chain(operation).filter_map(Value::as_str).collect()
}

/// Bytes of a document as the API server writes it, which escapes for HTML.
fn size(document: &Value) -> usize {
    document.to_string().chars().map(|one| if "<>&".contains(one) { 6 } else { one.len_utf8() }).sum()
}

fn is_deceptive(character: char) -> bool {
    character.is_control() && !"\n\t".contains(character)
        || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_status_can_be_written_and_counts_what_it_does_not_name(outage in any_outage()) {
        let status = written(&outage, &json!({})).unwrap();
        let bounds = status["machineDeployments"].as_array().map(Vec::as_slice).unwrap_or_default();
        prop_assert!(bounds.iter().eq(outage.bounds().iter().map(|bound| json!(bound)).collect::<Vec<_>>().iter()), "the autoscaler needs all");
        let of_texts: usize = texts(&status).into_iter().map(|text| size(&json!(text))).sum();
        prop_assert!(of_texts <= MOST_OF_TEXTS, "the texts have {of_texts} bytes");
        if outage.name == "pool" {
            prop_assert!(size(&status) <= MOST_OF_STATUS, "the status has {} bytes", size(&status));
        }
        for text in texts(&status) {
            prop_assert!(!text.contains(is_deceptive), "{text:?}");
        }
        prop_assert_eq!(written(&outage, &status), None, "it says it already");
    }

    #[test]
    fn failed_machines_are_named_or_counted(outage in any_outage()) {
        let outage = Outage { name: "pool".to_owned(), ..outage };
        let status = written(&outage, &json!({})).unwrap();
        let error = status["lastError"]["description"].as_str().unwrap_or_default();
        let failed: Vec<String> = outage.deployments().enumerate()
            .flat_map(|(number, (_, name))| outage.failed_machines(number, &name))
            .map(|machine| format!("{:?}", machine.name)).collect();
        let named = failed.iter().filter(|machine| error.contains(machine.as_str())).count();
        prop_assert!(named > 0 || failed.is_empty() || error.contains(" more"), "nothing of {} machines", failed.len());
        prop_assert!(named == failed.len() || error.contains(" more"), "{named} of {} machines in {error:?}", failed.len());
    }

    #[test]
    fn an_event_is_published_once_for_any_pool(outage in any_outage()) {
        let (plan, progress) = (outage.plan(), outage.progress());
        let status = written(&outage, &json!({})).unwrap();
        let first = events(&worker(&json!({})), &plan, &progress, &[]);
        let again = events(&worker(&status), &plan, &progress, &[]);
        let failed = |published: &[WorkerEvent]| published.iter().filter(|event| matches!(event, WorkerEvent::PoolFailed { .. })).count();
        prop_assert!(failed(&again) == 0, "{} of {} pools failed again", failed(&again), failed(&first));
        prop_assert!(PoolReadiness::recorded(status["conditions"].as_array().unwrap()).is_some());
    }
}

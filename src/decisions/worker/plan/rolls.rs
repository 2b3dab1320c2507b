//! Pure: which deployments start to replace their machines, and why, for events and metrics.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::worker::machines::machine_objects::{LiveDeployment, MachineObjects};
use crate::worker::plan::changes::{MachineChanges, Write};
use crate::worker::plan::class_inputs::{ANNOTATION, Detail, Difference, History, InputChange};

/// A deployment whose machines are replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roll {
    /// Name of the pool.
    pub pool: String,
    /// Name of the deployment.
    pub deployment: String,
    /// Name of the previous class.
    pub from: String,
    /// Name of the new class.
    pub to: String,
    /// Changed inputs of the class name, in human-readable form.
    pub inputs: Vec<String>,
    /// Category of the cause.
    pub cause: RollCause,
    /// Whether machines are updated in place.
    pub is_in_place: bool,
    /// Since when the deployment had waited for another zone, if it had.
    pub waited_since: Option<Timestamp>,
}

impl Roll {
    /// Whether the deployment has its new class.
    #[must_use]
    pub fn is_written(&self, deployments: &BTreeMap<String, LiveDeployment>) -> bool {
        let deployment = deployments.get(&self.deployment);
        deployment.is_some_and(|live| live.object.spec.template.spec.class.name == self.to)
    }
}

/// Source of the change: a fixed set, for metrics. Among several causes, the first in this order is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RollCause {
    /// The pool in the Worker: machine type, image, volumes, Kubernetes version, node agent.
    Pool,
    /// The provider's configuration of the pool.
    ProviderConfig,
    /// The infrastructure: subnets, identities, scale sets, server groups.
    Infrastructure,
    /// It was not recorded, because another program created the previous class.
    NotRecorded,
}

impl RollCause {
    /// All causes.
    pub const ALL: [Self; 4] = [Self::Pool, Self::ProviderConfig, Self::Infrastructure, Self::NotRecorded];

    /// Name of the cause in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pool => "pool",
            Self::ProviderConfig => "provider-config",
            Self::Infrastructure => "infrastructure",
            Self::NotRecorded => "not-recorded",
        }
    }

    /// The source of an input of a class name. `input` is named as in hash items or in records of any detail;
    /// `infrastructure_inputs` are those of its provider.
    #[must_use]
    pub fn of_input(input: &str, infrastructure_inputs: &[&str]) -> Self {
        let is_infrastructure = |detail: Detail| infrastructure_inputs.iter().any(|name| detail.name_of(name) == input);
        if input == Detail::Whole.name_of(input) {
            Self::NotRecorded
        } else if Detail::Roots.name_of(input) == "providerConfig" {
            Self::ProviderConfig
        } else if Detail::ALL.into_iter().any(is_infrastructure) {
            Self::Infrastructure
        } else {
            Self::Pool
        }
    }
}

/// The rolls among the changes. A deployment without machines has none to replace. `infrastructure_inputs` are those of the
/// provider.
#[must_use]
pub fn rolls(changes: &[MachineChanges<'_>], live: &MachineObjects, infrastructure_inputs: &[&str]) -> Vec<Roll> {
    let rolls = changes.iter().filter_map(|change| {
        let target = &change.machine.deployment;
        let before = live.deployments.get(&target.name.0)?;
        let from = &before.object.spec.template.spec.class.name;
        let Some(Write::Patch { after, .. }) = &change.deployment else { return None };
        let has_machines = before.object.status.replicas > 0;
        if from.is_empty() || *from == target.class_name.0 || !has_machines {
            return None;
        }
        let history = after["metadata"]["annotations"][ANNOTATION].as_str().and_then(History::read);
        let (inputs, cause) = match &history {
            None => (Vec::new(), RollCause::NotRecorded),
            Some(history) => cause_of(history, infrastructure_inputs),
        };
        Some(Roll {
            pool: target.pool_name.clone(),
            deployment: target.name.0.clone(),
            from: from.clone(),
            to: target.class_name.0.clone(),
            inputs,
            cause,
            is_in_place: target.strategy.in_place_update.is_some(),
            waited_since: before.waits_since(&target.class_name.0),
        })
    });
    rolls.collect()
}

pub(super) fn cause_of(history: &History, infrastructure_inputs: &[&str]) -> (Vec<String>, RollCause) {
    let Some(change) = history.changes().next() else { return (Vec::new(), RollCause::NotRecorded) };
    match change.difference {
        Difference::Unknown => (Vec::new(), RollCause::NotRecorded),
        Difference::Order => (vec!["the order of the inputs".to_owned()], RollCause::Pool),
        Difference::Inputs(changes) => {
            let causes = changes.iter().map(|change| RollCause::of_input(&change.input, infrastructure_inputs));
            (changes.iter().map(text_of).collect(), causes.min().unwrap_or(RollCause::NotRecorded))
        }
    }
}

fn text_of(change: &InputChange) -> String {
    let mut text = format!("{} {}", change.input, change.how);
    if !change.because.is_empty() {
        text.push_str(&format!(" (with it {})", change.because.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::provider::Provider;
    use crate::provider::aws::Aws;
    use crate::provider::azure::Azure;
    use crate::provider::gcp::Gcp;
    use crate::provider::openstack::OpenStack;
    use crate::provider::test_support::machine_plan;
    use crate::worker::machines::machine_objects::LiveDeployment;
    use crate::worker::plan::class_inputs::Generation;

    #[test]
    fn rolls_require_machines_of_another_class() {
        let machine = machine_plan();
        let name = machine.deployment.name.0.clone();
        let rolls_of = |class: &str, replicas: i32| {
            let document = json!({
                "metadata": {"name": name}, "status": {"replicas": replicas},
                "spec": {"template": {"spec": {"class": {"name": class}}}},
            });
            let deployments = [(name.clone(), LiveDeployment::read_without_codes(document).unwrap())].into();
            let live = MachineObjects { deployments, ..MachineObjects::default() };
            let patch = Write::Patch { patch: Value::Null, after: json!({}) };
            let change = MachineChanges {
                machine: &machine,
                secret: None,
                class: None,
                deployment: Some(patch),
                is_class_being_deleted: false,
            };
            rolls(&[change], &live, &[])
        };
        let rolls = rolls_of("old", 1);
        assert_eq!((rolls[0].from.as_str(), &rolls[0].to), ("old", &machine.deployment.class_name.0));
        assert_eq!(rolls[0].cause, RollCause::NotRecorded);
        assert!(rolls_of("old", 0).is_empty(), "no machine is replaced");
        assert!(rolls_of(&machine.deployment.class_name.0, 1).is_empty(), "the class is the same");
        assert!(rolls_of("", 1).is_empty(), "there was no class");
    }

    #[test]
    fn cause_includes_indirect_inputs() {
        let change = |because: &[&str]| InputChange {
            input: "nodeAgentSecretName".to_owned(),
            how: "changed",
            because: because.iter().map(|input| (*input).into()).collect(),
        };
        assert_eq!(text_of(&change(&[])), "nodeAgentSecretName changed");
        assert_eq!(text_of(&change(&["kubernetesVersion"])), "nodeAgentSecretName changed (with it kubernetesVersion)");
    }

    #[test]
    fn roll_is_written_with_new_class() {
        let roll = Roll {
            pool: "a".to_owned(),
            deployment: "a-z1".to_owned(),
            from: "old".to_owned(),
            to: "new".to_owned(),
            inputs: Vec::new(),
            cause: RollCause::Pool,
            is_in_place: false,
            waited_since: None,
        };
        let is_written = |name: &str, class: &str| {
            let document = json!({"spec": {"template": {"spec": {"class": {"name": class}}}}});
            roll.is_written(&[(name.to_owned(), LiveDeployment::read_without_codes(document).unwrap())].into())
        };
        assert!(is_written("a-z1", "new"));
        assert!(!is_written("a-z1", "old"), "the write has failed");
        assert!(!is_written("b-z1", "new"));
    }

    /// The cause that a record of this detail yields for a roll with these changed inputs.
    fn cause_at(detail: Detail, changed: &[&str], provider: &dyn Provider) -> RollCause {
        let inputs = |value: &str| {
            let inputs = changed.iter().map(|input| ((*input).to_owned(), value.to_owned()));
            detail.of(&inputs.collect())
        };
        let generation = |class: &str, inputs| Generation {
            class: class.to_owned(),
            since: Timestamp::UNIX_EPOCH,
            found: false,
            inputs: Some(inputs),
            owner: None,
        };
        let generations = vec![generation("new", inputs("1")), generation("old", inputs("0"))];
        let record = History { detail, generations, wait: None, mark: None }.write().unwrap();
        cause_of(&History::read(&record).unwrap(), provider.infrastructure_inputs()).1
    }

    #[test]
    fn causes_follow_the_names_that_providers_record() {
        let cases: [(&dyn Provider, &str, RollCause); 11] = [
            (&Azure, "machineType", RollCause::Pool),
            (&Azure, "nodeAgentSecretName", RollCause::Pool),
            (&Azure, "dataVolumes[d].size", RollCause::Pool),
            (&Aws, "volume.encrypted", RollCause::Pool),
            (&Aws, "providerConfig.dataVolumes[a].iops", RollCause::ProviderConfig),
            (&OpenStack, "providerConfig.machineLabels[a]", RollCause::ProviderConfig),
            (&Gcp, "providerConfig", RollCause::ProviderConfig),
            (&Azure, "infrastructureProviderStatus.identity.id", RollCause::Infrastructure),
            (&Azure, "infrastructureProviderStatus.networks.subnets[].name", RollCause::Infrastructure),
            (&Azure, "providerStatus.vmoDependencies[].name", RollCause::Infrastructure),
            (&OpenStack, "server group", RollCause::Infrastructure),
        ];
        for (provider, input, cause) in cases {
            for detail in [Detail::Fields, Detail::Lists, Detail::Roots] {
                assert_eq!(cause_at(detail, &[input], provider), cause, "{input} at {detail:?}");
            }
            assert_eq!(cause_at(Detail::Whole, &[input], provider), RollCause::NotRecorded, "{input}");
        }
    }

    #[test]
    fn infrastructure_counts_only_if_nothing_else_changed() {
        let [subnet, config] =
            ["infrastructureProviderStatus.networks.subnets[].name", "providerConfig.volume.caching"];
        let cause = |changed: &[&str]| cause_at(Detail::Fields, changed, &Azure);
        assert_eq!(cause(&[subnet, "machineType"]), RollCause::Pool);
        assert_eq!(cause(&[subnet, config]), RollCause::ProviderConfig);
        assert_eq!(cause(&[subnet, "providerStatus.vmoDependencies[].name"]), RollCause::Infrastructure);
    }
}

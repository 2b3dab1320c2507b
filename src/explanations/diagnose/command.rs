//! The command that helps with a finding, with all its arguments, so that it can be pasted.

use super::facts::{Facts, MACHINE_CONTROLLER_MANAGER};
use super::finding::{Finding, FindingKind};
use super::paste_command::{CommandCluster, PROGRAM, PasteCommand, word};
use decisions::worker::plan::roll_budget::LET_ROLL_ANNOTATION;
use decisions::worker::plan::stops::STOP_ANNOTATION;
use decisions::worker::plan::zone_by_zone::ANNOTATION;

/// Maximum number of machines in a command.
const MOST_MACHINES: usize = 20;

fn command(cluster: CommandCluster, text: String) -> PasteCommand {
    PasteCommand { cluster, text }
}

/// The command for a finding about a Worker that can't be decoded.
pub(super) fn show_worker(namespace: &str, name: &str) -> PasteCommand {
    command(CommandCluster::Seed, format!("kubectl -n {} get worker {} -o yaml", word(namespace), word(name)))
}

/// Adds its command to a finding.
pub(super) fn with_command(finding: Finding, facts: &Facts<'_>) -> Finding {
    if finding.command.is_some() {
        return finding;
    }
    let command = Paste { facts }.command(&finding);
    Finding { command: Some(command), ..finding }
}

struct Paste<'a> {
    facts: &'a Facts<'a>,
}

impl Paste<'_> {
    fn command(&self, finding: &Finding) -> PasteCommand {
        let worker = self.worker();
        match finding.kind {
            FindingKind::Undecodable | FindingKind::OperationFailed | FindingKind::Operation => {
                show_worker(self.facts.namespace(), &worker)
            }
            FindingKind::Malformed => self.show_object(&finding.subject),
            FindingKind::ShootFailed => self.annotate_shoot("retry"),
            FindingKind::SecretMissing | FindingKind::NotRequested => self.annotate_shoot("reconcile"),
            FindingKind::PoolInvalid | FindingKind::ImageNotResolved => self.explain(finding),
            FindingKind::NotTakenUp => {
                command(CommandCluster::Seed, format!("kubectl get pods -A -l app.kubernetes.io/name={PROGRAM}"))
            }
            FindingKind::ClassMissing | FindingKind::NoDeployment => {
                self.seed(&format!("annotate worker {} gardener.cloud/operation=reconcile", word(&worker)))
            }
            FindingKind::MachineControllerManager => {
                self.seed(&format!("describe deployment {MACHINE_CONTROLLER_MANAGER}"))
            }
            FindingKind::ZonesWait => {
                self.seed(&format!("annotate worker {} --overwrite {ANNOTATION}=", word(&worker)))
            }
            FindingKind::RollsStopped => {
                self.seed(&format!("annotate worker {} --overwrite {STOP_ANNOTATION}=", word(&worker)))
            }
            FindingKind::RollsOnHold => {
                self.seed(&format!("annotate worker {} --overwrite {LET_ROLL_ANNOTATION}=*", word(&worker)))
            }
            FindingKind::ZoneFails => self.seed("get machines"),
            FindingKind::Deletion => self.seed("get machinedeployments,machinesets,machines,machineclasses"),
            FindingKind::Frozen
            | FindingKind::Paused
            | FindingKind::NotObserved
            | FindingKind::NoMachineSet
            | FindingKind::DeploymentUnhealthy => match &finding.deployment {
                Some(deployment) => self.seed(&format!("describe machinedeployment {}", word(deployment))),
                None => self.seed("describe machinedeployments"),
            },
            FindingKind::MachinesToSelect => self.nodes_of_pool(&finding.subject),
            FindingKind::Preserved
            | FindingKind::CreationFailed
            | FindingKind::DrainBlocked
            | FindingKind::DeletionFailed
            | FindingKind::Unhealthy
            | FindingKind::NotJoined
            | FindingKind::Terminating => self.machine_command(finding),
        }
    }

    fn worker(&self) -> String {
        self.facts.worker.metadata.name.clone().unwrap_or_default()
    }

    fn seed(&self, arguments: &str) -> PasteCommand {
        command(CommandCluster::Seed, format!("kubectl -n {} {arguments}", word(self.facts.namespace())))
    }

    /// The subject is a kind and a name.
    fn show_object(&self, subject: &str) -> PasteCommand {
        let (kind, name) = subject.split_once(' ').unwrap_or(("workers", subject));
        self.seed(&format!("get {} {} -o yaml", word(&kind.to_lowercase()), word(name)))
    }

    /// Where the Cluster is unknown, the namespace of the project is derived from that of the shoot.
    fn annotate_shoot(&self, operation: &str) -> PasteCommand {
        let (namespace, name) = self.facts.shoot_key();
        let text = format!(
            "kubectl -n {} annotate shoot {} gardener.cloud/operation={operation}",
            word(&namespace),
            word(&name)
        );
        command(CommandCluster::Garden, text)
    }

    fn explain(&self, finding: &Finding) -> PasteCommand {
        let is_named = |pool: &&str| {
            finding.message.contains(&format!("pool {pool:?}")) || finding.subject == format!("pool {pool}")
        };
        let pools = self.facts.worker.spec.pools.iter().map(|pool| pool.name.as_str());
        let named: Vec<&str> = pools.filter(is_named).collect();
        let pool = match named.as_slice() {
            [pool] => format!(" --pool {}", word(pool)),
            _ => String::new(),
        };
        let name = format!("{}/{}", self.facts.namespace(), self.worker());
        command(CommandCluster::Seed, format!("{PROGRAM} explain {}{pool}", word(&name)))
    }

    fn nodes_of_pool(&self, subject: &str) -> PasteCommand {
        let pool = subject.strip_prefix("pool ").unwrap_or(subject);
        let label = format!("worker.gardener.cloud/pool={pool}");
        command(CommandCluster::Shoot, format!("kubectl get nodes -l {}", word(&label)))
    }

    fn machine_command(&self, finding: &Finding) -> PasteCommand {
        if finding.kind == FindingKind::Preserved && finding.machines.is_empty() {
            let of_deployment =
                finding.deployment.as_ref().map(|name| format!(" -l {}", word(&format!("name={name}"))));
            return self.seed(&format!("get machines{}", of_deployment.unwrap_or_default()));
        }
        if finding.kind == FindingKind::Preserved {
            let machines: Vec<String> = finding.machines.iter().take(MOST_MACHINES).map(|name| word(name)).collect();
            let machines = machines.join(" ");
            return self
                .seed(&format!("annotate machine {machines} --overwrite node.machine.sapcloud.io/preserve=false"));
        }
        if let Some((namespace, name)) = finding.disruption_budgets.first().and_then(|budget| budget.split_once('/')) {
            let text = format!("kubectl -n {} get pdb {} -o yaml", word(namespace), word(name));
            return command(CommandCluster::Shoot, text);
        }
        if finding.kind == FindingKind::DrainBlocked {
            return command(CommandCluster::Shoot, "kubectl get pdb -A".to_owned());
        }
        let known =
            finding.machines.iter().find_map(|name| self.facts.machines.iter().find(|machine| machine.name() == name));
        match (finding.kind, known) {
            (FindingKind::Unhealthy, Some(machine)) if machine.node().is_some() => {
                let node = machine.node().unwrap_or_default();
                command(CommandCluster::Shoot, format!("kubectl describe node {}", word(node)))
            }
            (_, Some(machine)) => self.seed(&format!("describe machine {}", word(machine.name()))),
            // A failed machine may already be deleted, but it is still in the logs.
            (_, None) => self
                .seed(&format!("logs deployment/{MACHINE_CONTROLLER_MANAGER} --all-containers --since=1h --tail=100")),
        }
    }
}

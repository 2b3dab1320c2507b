//! gardenlet's own client for Workers against our controller and the real machine-controller-manager: its operations on
//! the Worker of a shoot from creation to deletion, for every cloud.

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::api::Api;
use serde_json::{Value, json};
use test_support::arm::Arm;
use test_support::cluster::{
    self, CONTROLLER, ControlPlane, Deletion, GARDENER, GardenerPart, MachineControllerManager, Process, eventually,
};
use test_support::migration::{machine_controller, take_away};
use test_support::program;
use test_support::shoot::{Kind, SOON, Shoot};
use tokio::sync::OnceCell;

/// Our controller on a seed that these tests share.
struct Seed {
    controller: Process,
    _azure: Arm,
}

static SEED: OnceCell<Seed> = OnceCell::const_new();

async fn seed() -> Result<&'static ControlPlane> {
    let control_plane = cluster::shared().await?;
    let start = async || {
        let azure = Arm::start()?;
        let kubeconfig = control_plane.kubeconfig_file(CONTROLLER)?;
        let program = program::controller("controller", program::binary(), kubeconfig)
            .env("AZURE_RESOURCE_MANAGER_URL", azure.url())
            .env("AZURE_AUTHORITY_HOST", azure.url())
            .env("RUST_LOG", program::DEBUG_LOG);
        let controller = Process::start(program, control_plane.folder())?;
        anyhow::Ok(Seed { controller, _azure: azure })
    };
    SEED.get_or_try_init(start).await?.controller.ensure_running()?;
    Ok(control_plane)
}

/// gardenlet for one shoot.
struct Gardenlet {
    part: GardenerPart,
    namespace: String,
    /// The stored Shoot, its profile, and the Worker that provides the names of Secrets.
    shoot: Value,
    profile: Value,
    worker: Value,
    machines: Option<MachineControllerManager>,
    objects: Shoot,
}

/// Members with the same name in a pool of a Shoot and in a pool of a Worker.
const SAME: [&str; 13] = [
    "name",
    "minimum",
    "maximum",
    "maxSurge",
    "maxUnavailable",
    "annotations",
    "taints",
    "zones",
    "priority",
    "updateStrategy",
    "kubeletDataVolumeName",
    "providerConfig",
    "labels",
];

/// The pool of a Shoot that gardenlet would translate to this pool of a Worker.
fn pool_of_shoot(pool: &Value) -> Value {
    let volume = |volume: &Value| {
        let of = |member: &str| volume[member].clone();
        json!({"name": of("name"), "type": of("type"), "size": of("size"), "encrypted": of("encrypted")})
    };
    let mut of_shoot = json!({
        "cri": {"name": "containerd"},
        "machine": {"type": pool["machineType"], "image": pool["machineImage"], "architecture": pool["architecture"]},
        "kubernetes": {"version": pool["kubernetesVersion"]},
        "machineControllerManager": pool["machineControllerManager"],
    });
    for member in SAME {
        of_shoot[member] = pool[member].clone();
    }
    if pool["volume"].is_object() {
        of_shoot["volume"] = volume(&pool["volume"]);
    }
    let data_volumes = pool["dataVolumes"].as_array().into_iter().flatten();
    of_shoot["dataVolumes"] = data_volumes.map(volume).collect();
    of_shoot
}

impl Gardenlet {
    async fn new(cloud: &str, interval: &str) -> Result<Self> {
        Self::of_shoot(cloud, interval, None).await
    }

    /// Like [`Self::new`]. With a technical ID, the Shoot's namespace differs from it, as for a self-hosted Shoot.
    async fn of_shoot(cloud: &str, interval: &str, technical_id: Option<&str>) -> Result<Self> {
        let seed = seed().await?;
        let objects = Shoot::new(seed, &format!("gardenlet-{cloud}")).await?;
        let [worker, mut cluster] = objects.create_example_without_worker(cloud).await?;
        let mut shoot = cluster["spec"]["shoot"].take();
        shoot["metadata"]["name"] = "fleet".into();
        if let Some(technical_id) = technical_id {
            shoot["status"]["technicalID"] = technical_id.into();
        }
        let pools = worker["spec"]["pools"].as_array().context("no pools")?;
        for pool in pools {
            let name = pool["userDataSecretRef"]["name"].as_str().context("a Secret")?;
            // The key used by extensions of operating systems.
            objects
                .change(Kind::Secret, name, |secret| secret["stringData"] = json!({"cloud_config": "#!/bin/sh"}))
                .await?;
        }
        shoot["spec"]["provider"]["workers"] = pools.iter().map(pool_of_shoot).collect();
        let kubeconfig = seed.kubeconfig_file(GARDENER)?.display().to_string();
        let interval = format!("--interval={interval}");
        let arguments = ["--kubeconfig", &kubeconfig, &interval, "--timeout=1m"];
        Ok(Self {
            part: GardenerPart::start("worker-client", &arguments).await?,
            namespace: objects.namespace.clone(),
            shoot,
            profile: cluster["spec"]["cloudProfile"].take(),
            worker: worker["spec"].clone(),
            machines: Some(MachineControllerManager::start(seed, &objects.namespace, Deletion::Hastened).await?),
            objects,
        })
    }

    /// Runs one step. A step that begins a flow recreates the component.
    async fn step(&mut self, step: &str, begins: bool) -> Result<Value> {
        let query = match begins {
            true => json!({
                "do": step, "namespace": self.namespace, "shoot": self.shoot, "cloudProfile": self.profile,
                "worker": self.worker,
            }),
            false => json!({"do": step, "namespace": self.namespace, "cloudProfile": self.profile}),
        };
        let end = self.part.request(&query).await?;
        if !end["error"].is_null() {
            bail!("{step}: {}\n{}", end["error"], self.state_of_machines().await?);
        }
        Ok(end)
    }

    /// State of the Worker, its machine objects and machine-controller-manager, as part of the error of a failed step.
    async fn state_of_machines(&self) -> Result<String> {
        let mut text = self.objects.state_of_machines().await?;
        if let Some(seed) = SEED.get() {
            text += &format!("\nlast lines of the controller:\n{}", seed.controller.last_lines(30));
        }
        Ok(text)
    }

    /// Runs the steps of every flow that reconciles a shoot. Returns the published deployments and the total duration.
    async fn reconcile(&mut self) -> Result<Value> {
        self.step("cluster", true).await?;
        let mut seconds = 0.0;
        let mut published = Value::Null;
        for step in ["deploy", "published", "wait", "health"] {
            published = self.step(step, step == "deploy").await?;
            seconds += published["seconds"].as_f64().unwrap_or_default();
            if step == "published" {
                ensure!(published["machineDeployments"].is_array(), "no deployments are published");
            }
        }
        published["seconds"] = seconds.into();
        Ok(published)
    }

    fn pool(&mut self, index: usize) -> &mut Value {
        &mut self.shoot["spec"]["provider"]["workers"][index]
    }

    /// Names of the machines.
    async fn machines(&self) -> Result<std::collections::BTreeSet<String>> {
        self.objects.names(Kind::Machine).await
    }

    /// The minimum number of machines of all pools.
    fn expected(&self) -> u64 {
        let pools = self.shoot["spec"]["provider"]["workers"].as_array().into_iter().flatten();
        pools.map(|pool| pool["minimum"].as_u64().unwrap_or_default()).sum()
    }

    async fn ensure_machines(&self, number: u64) -> Result<()> {
        eventually(SOON, &format!("{number} machines are there"), async || {
            let machines = self.machines().await?;
            ensure!(machines.len() as u64 == number, "{machines:?}");
            Ok(())
        })
        .await
    }

    async fn created_and_unchanged(&mut self) -> Result<()> {
        let created = self.reconcile().await?;
        let deployments = created["machineDeployments"].as_array().context("no deployments are published")?;
        ensure!(!deployments.is_empty(), "no deployments are published");
        ensure!(self.objects.ready_nodes().await?.len() as u64 == self.expected(), "not all nodes are ready");
        let before = self.machines().await?;
        // More than a second passes between two flows of gardenlet. This test does not wait, because a flow must not
        // depend on that pause.
        let again = self.reconcile().await?;
        ensure!(again["machineDeployments"] == created["machineDeployments"], "{again}");
        ensure!(self.machines().await? == before, "machines were replaced by a reconcile without a change");
        Ok(())
    }

    async fn scaled(&mut self) -> Result<()> {
        let more = self.pool(0)["maximum"].as_u64().context("a maximum")? + 1;
        let before = self.expected();
        let minimum = self.pool(0)["minimum"].as_u64().context("a minimum")? + 1;
        self.pool(0)["maximum"] = more.into();
        self.pool(0)["minimum"] = minimum.into();
        self.reconcile().await?;
        self.ensure_machines(before + 1).await
    }

    /// A pool's labels, annotations and taints are applied to its nodes without replacing machines.
    async fn relabelled(&mut self) -> Result<()> {
        let before = self.machines().await?;
        let pool = self.pool(0);
        pool["labels"]["team"] = "storage".into();
        pool["annotations"]["note"] = "written by the owner".into();
        pool["taints"] = json!([{"key": "dedicated", "value": "storage", "effect": "NoSchedule"}]);
        let prefix = format!("{}-", pool["name"].as_str().context("a name")?);
        let prefix = format!("{}-{prefix}", self.namespace);
        self.reconcile().await?;
        let nodes: Api<Node> = Api::all(self.objects.client.clone());
        eventually(SOON, "the nodes are labelled, annotated and tainted", async || {
            let names = self.objects.ready_nodes().await?;
            let mut of_pool = names.iter().filter(|name| name.starts_with(&prefix)).peekable();
            ensure!(of_pool.peek().is_some(), "no nodes of {prefix} in {names:?}");
            for name in of_pool {
                let node = serde_json::to_value(nodes.get(name).await?)?;
                ensure!(node["metadata"]["labels"]["team"] == "storage", "{}", node["metadata"]["labels"]);
                let note = &node["metadata"]["annotations"]["note"];
                ensure!(note == "written by the owner", "{}", node["metadata"]["annotations"]);
                let taints = node["spec"]["taints"].as_array().context("no taints")?;
                ensure!(taints.iter().any(|taint| taint["key"] == "dedicated"), "{taints:?}");
            }
            Ok(())
        })
        .await?;
        ensure!(self.machines().await? == before, "labels, annotations or taints replaced machines");
        Ok(())
    }

    /// Annotations that other controllers write to a machine deployment are kept: machine-controller-manager and the
    /// autoscaler store notes there.
    async fn keeps_annotations_of_others(&mut self) -> Result<()> {
        let deployments = self.objects.list(Kind::MachineDeployment).await?;
        let pool = self.pool(0)["name"].as_str().context("a name")?.to_owned();
        let prefix = format!("{}-{pool}-", self.namespace);
        let mut names = deployments.iter().filter_map(|one| one["metadata"]["name"].as_str());
        let name = names.find(|name| name.starts_with(&prefix)).context("no deployment of the pool")?;
        let annotate =
            |object: &mut Value| object["metadata"]["annotations"]["somebody.example.org/note"] = "kept".into();
        self.objects.change(Kind::MachineDeployment, name, annotate).await?;
        self.pool(0)["annotations"]["note"] = "changed".into();
        self.reconcile().await?;
        let kept = self.objects.get(Kind::MachineDeployment, name).await?.context("it is gone")?;
        let (annotations, template) =
            (&kept["metadata"]["annotations"], &kept["spec"]["template"]["spec"]["nodeTemplate"]);
        ensure!(annotations["somebody.example.org/note"] == "kept", "{annotations}");
        ensure!(annotations["deployment.kubernetes.io/revision"].is_string(), "{annotations}");
        ensure!(template.to_string().contains("changed"), "{template}");
        Ok(())
    }

    /// A forced deletion deletes nothing in the cloud, whatever its state. The Worker is deleted, and the machine
    /// objects are left for gardenlet to delete.
    async fn destroyed_by_force(mut self) -> Result<()> {
        self.reconcile().await?;
        let before = self.machines().await?;
        self.machines.take().context("no machine-controller-manager")?.stop().await?;
        self.shoot["metadata"]["annotations"]["confirmation.gardener.cloud/force-deletion"] = "true".into();
        self.shoot["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        self.step("cluster", true).await?;
        self.step("destroy", false).await?;
        self.step("wait-cleanup", false).await?;
        ensure!(self.objects.get(Kind::Worker, "fleet").await?.is_none(), "the Worker is there");
        ensure!(self.machines().await? == before, "machines are gone that nobody has deleted at the cloud");
        Ok(())
    }

    /// The configuration of the pool's nodes gets a new name, as after a change of the image or version.
    async fn rolled(&mut self) -> Result<()> {
        let before = self.machines().await?;
        let name = self.pool(1)["name"].as_str().context("a name")?.to_owned();
        self.worker["pools"][1]["nodeAgentSecretName"] = format!("gardener-node-agent-{name}-of-another-image").into();
        self.reconcile().await?;
        let after = self.machines().await?;
        let is_rolled = |machine: &&String| machine.starts_with(&format!("{name}-"));
        ensure!(!after.iter().filter(is_rolled).any(|machine| before.contains(machine)), "{before:?} became {after:?}");
        ensure!(after.iter().filter(|one| !is_rolled(one)).all(|one| before.contains(one)), "{before:?}, {after:?}");
        Ok(())
    }

    async fn hibernated_and_woken_up(&mut self) -> Result<()> {
        self.shoot["spec"]["hibernation"] = json!({"enabled": true});
        self.reconcile().await?;
        self.ensure_machines(0).await?;
        self.shoot["spec"]["hibernation"] = json!({"enabled": false});
        self.reconcile().await?;
        self.ensure_machines(self.expected()).await
    }

    async fn moved(&mut self) -> Result<()> {
        let before = self.machines().await?;
        self.step("migrate", false).await?;
        self.step("wait-migrate", false).await?;
        self.step("keep", false).await?;
        self.machines.take().context("no machine-controller-manager")?.stop().await?;
        take_away(&self.objects).await?;
        self.step("restore", true).await?;
        // Started earlier, it would create machines in place of those about to be restored.
        eventually(SOON, "the controller starts machine-controller-manager", async || {
            let replicas = &machine_controller(&self.objects).await?["spec"]["replicas"];
            ensure!(*replicas == 1, "it has {replicas} replicas");
            Ok(())
        })
        .await?;
        self.machines =
            Some(MachineControllerManager::start(seed().await?, &self.namespace, Deletion::Hastened).await?);
        self.step("wait", false).await?;
        self.step("health", false).await?;
        ensure!(self.machines().await? == before, "other machines than before");
        let state = &self.objects.worker().await?["status"]["state"];
        ensure!(state.is_null(), "gardenlet has not taken the state away: {state}");
        self.reconcile().await?;
        ensure!(self.machines().await? == before, "the reconcile after a restore replaces machines");
        Ok(())
    }

    async fn pool_removed(&mut self) -> Result<()> {
        let pools = self.shoot["spec"]["provider"]["workers"].as_array_mut().context("no pools")?;
        let removed = pools.remove(1);
        self.reconcile().await?;
        let left =
            self.objects.names_of_pool(Kind::MachineDeployment, removed["name"].as_str().unwrap_or_default()).await?;
        ensure!(left.is_empty(), "{left:?} are left");
        self.ensure_machines(self.expected()).await
    }

    async fn destroyed(&mut self) -> Result<()> {
        self.step("destroy", false).await?;
        self.step("wait-cleanup", false).await?;
        self.objects.deleted().await
    }

    async fn whole_life(mut self) -> Result<()> {
        self.created_and_unchanged().await.context("created")?;
        self.scaled().await.context("scaled")?;
        self.relabelled().await.context("relabelled")?;
        self.keeps_annotations_of_others().await.context("annotations of others")?;
        self.rolled().await.context("rolled")?;
        self.hibernated_and_woken_up().await.context("hibernated and woken up")?;
        self.moved().await.context("moved")?;
        self.pool_removed().await.context("a pool removed")?;
        self.destroyed().await.context("destroyed")
    }
}

/// gardenlet's polling interval, and a tenth of a second. An operation that ends between two polls must be reported all
/// the same.
const PAUSES: [&str; 2] = ["5s", "100ms"];

async fn lives_under_gardenlet(cloud: &str) -> Result<()> {
    let lives = PAUSES.map(|pause| async move {
        Gardenlet::new(cloud, pause).await?.whole_life().await.with_context(|| format!("asked every {pause}"))
    });
    futures::future::try_join_all(lives).await?;
    Ok(())
}

#[tokio::test]
async fn gardenlet_s_client_on_azure() -> Result<()> {
    lives_under_gardenlet("azure").await
}

#[tokio::test]
async fn gardenlet_s_client_on_aws() -> Result<()> {
    lives_under_gardenlet("aws").await
}

#[tokio::test]
async fn gardenlet_s_client_on_gcp() -> Result<()> {
    lives_under_gardenlet("gcp").await
}

#[tokio::test]
async fn gardenlet_s_client_on_openstack() -> Result<()> {
    lives_under_gardenlet("openstack").await
}

#[tokio::test]
async fn gardenlet_s_client_on_alicloud() -> Result<()> {
    lives_under_gardenlet("alicloud").await
}

#[tokio::test]
async fn a_forced_deletion_leaves_machines_to_gardenlet() -> Result<()> {
    Gardenlet::new("aws", "100ms").await?.destroyed_by_force().await
}

#[tokio::test]
async fn a_shoot_whose_namespace_is_not_its_technical_id_has_a_whole_life() -> Result<()> {
    let mut gardenlet = Gardenlet::of_shoot("aws", "100ms", Some("shoot--garden--self")).await?;
    gardenlet.created_and_unchanged().await.context("created")?;
    for kind in [Kind::MachineDeployment, Kind::MachineClass, Kind::Machine] {
        let names = gardenlet.objects.names(kind).await?;
        let is_named = |name: &String| name.starts_with("shoot--garden--self-");
        ensure!(!names.is_empty() && names.iter().all(is_named), "{kind:?}: {names:?}");
    }
    gardenlet.scaled().await.context("scaled")?;
    gardenlet.hibernated_and_woken_up().await.context("hibernated and woken up")?;
    gardenlet.moved().await.context("moved")?;
    gardenlet.destroyed().await.context("destroyed")
}

//! Kills the controllers for images right before and right after each write: those that enrich, discover, mark the
//! latest, clean up, record first resolutions, announce upgrades and label machine templates.
//!
//! Objects for images are cluster-scoped, so this test has its own control plane. A first life without faults shows the
//! writes and the end state of each step. In a second life, each of these requests is stopped twice: before it reaches
//! the API server and after its execution. Each time, another process continues. Every step must have the same end
//! state as in the first life.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use gardener_extension_worker::api::capa::AwsMachineTemplate;
use gardener_extension_worker::api::image_objects::{ImageLookup, ImageSelection, MachineImage};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use test_support::image_objects::{READ, Stage, V1, V2, ami, template};
use test_support::proxy::{Call, Proxy, Treatment};
use tokio::time::{sleep, timeout};

use crate::controller::{Chatter, Controller};
use crate::dump::Dump;
use crate::report::{Row, Times};

/// Time limit for a step, including all kills.
const STEP: Duration = Duration::from_secs(120);
/// Interval of progress checks.
const TICK: Duration = Duration::from_millis(50);
/// After this many checks of the sources without a write, the step is complete.
const CHECKS: usize = 2;
const V3: &str = "capa-ami-ubuntu-24.04-v1.34.2-1791000000";

/// An action of a user or the cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// Create a lookup, a manual image, a selection and a template.
    Discover,
    /// Add a newer image.
    Newer,
    /// Move the selection to it.
    Move,
    /// Remove the older images, one of which the template uses.
    CleanUp,
    /// Delete the lookup, and with it all unused images.
    Forget,
}

impl Step {
    const ALL: [Self; 5] = [Self::Discover, Self::Newer, Self::Move, Self::CleanUp, Self::Forget];
}

/// Number of write requests by step and `method path`.
type Arrived = BTreeMap<(Step, String), u32>;

/// Kills at each write.
pub(crate) async fn run() -> Result<Row> {
    let stage = Stage::new().await?;
    stage.define_templates().await?;
    let namespace = stage.control_plane.namespace("images").await?;
    let undisturbed = Life::live(&stage, &namespace, &[]).await.context("images without faults")?;
    clear(&stage, &namespace).await?;
    let killed = Life::live(&stage, &namespace, &undisturbed.ends).await;
    let (mut violations, killed) = match killed {
        Ok(killed) => (Vec::new(), killed),
        Err(error) => (vec![format!("images: {error:#}")], Life::default()),
    };
    violations.extend(killed.violations);
    let both: BTreeSet<_> = killed.arrived.iter().filter(|(_, times)| **times > 1).map(|(write, _)| write).collect();
    for (step, request) in undisturbed.arrived.keys().filter(|write| !both.contains(write)) {
        violations.push(format!("images, {step:?}: {request} did not come twice again"));
    }
    Ok(Row {
        what: "images, killed before and after each write".to_owned(),
        covered: format!("{} of {} points", 2 * both.len(), 2 * killed.arrived.len()),
        undisturbed: Times::of(undisturbed.times),
        recovery: Times::of(killed.times),
        violations,
    })
}

/// The result of one life.
#[derive(Default)]
struct Life {
    /// The end state of each step.
    ends: Vec<Dump>,
    arrived: Arrived,
    times: Vec<Duration>,
    violations: Vec<String>,
}

impl Life {
    /// Runs all steps. Kills at each write if the expected end states are given.
    async fn live(stage: &Stage, namespace: &str, ends: &[Dump]) -> Result<Self> {
        let arrived = Arc::<Mutex<Arrived>>::default();
        let name = if ends.is_empty() { "images" } else { "killed-images" };
        let mut controller: Option<Controller> = None;
        let mut life = Self::default();
        for (index, step) in Step::ALL.into_iter().enumerate() {
            step.take(stage, namespace).await.with_context(|| format!("{step:?}"))?;
            let controller = match &mut controller {
                Some(controller) => controller,
                None => {
                    let proxy = Proxy::start_for_all(&stage.control_plane).await?;
                    let arguments = [&stage.arguments()[..], &["--image-machine-templates".to_owned()]].concat();
                    let folder = stage.control_plane.folder();
                    controller.insert(Controller::with(proxy, name, folder, Chatter::Debug, &arguments)?)
                }
            };
            controller.proxy.set_faults(counting(step, Arc::clone(&arrived), !ends.is_empty()));
            let start = Instant::now();
            let ended = timeout(STEP, end_of(stage, namespace, controller, ends.get(index))).await;
            match ended.unwrap_or_else(|_| bail!("it does not end\n{}", controller.last_words())) {
                Ok(end) => life.ends.push(end),
                Err(error) => {
                    life.violations.push(format!("images, {step:?}: {error:#}"));
                    break;
                }
            }
            life.times.push(start.elapsed());
        }
        if let Some(controller) = controller {
            controller.proxy.clear_faults();
            controller.stop().await?;
        }
        life.arrived = arrived.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(life)
    }
}

/// Counts write requests. If `kills` is set, stops the world at the first two of each kind.
fn counting(step: Step, arrived: Arc<Mutex<Arrived>>, kills: bool) -> impl FnMut(&Call) -> Treatment + Send + 'static {
    move |call| {
        if !call.writes() {
            return Treatment::Forward;
        }
        let mut arrived = arrived.lock().unwrap_or_else(PoisonError::into_inner);
        // Names of events contain message and time, so they differ in each life.
        let path = call.path.split_inclusive("/events/").next().unwrap_or_default();
        let times = arrived.entry((step, format!("{} {path}", call.method))).or_default();
        *times += 1;
        match *times {
            1 if kills => Treatment::StopBefore,
            2 if kills => Treatment::StopAfter,
            _ => Treatment::Forward,
        }
    }
}

/// Waits for the end of a step, with a new process after each kill.
async fn end_of(stage: &Stage, namespace: &str, controller: &mut Controller, expected: Option<&Dump>) -> Result<Dump> {
    let mut checked_before = checks(controller)?;
    controller.proxy.take_writes();
    loop {
        if controller.proxy.stops() {
            controller.proxy.stopped().await;
            controller.kill().await?;
            controller.restart()?;
            checked_before = checks(controller)?;
            continue;
        }
        controller.ensure_running().with_context(|| controller.last_words())?;
        let checked = checks(controller)?;
        if !controller.proxy.take_writes().is_empty() {
            checked_before = checked;
        } else if checked > checked_before + CHECKS {
            let end = dump(stage, namespace).await?;
            let Some(difference) = expected.and_then(|expected| expected.difference(&end)) else { return Ok(end) };
            ensure!(checked < checked_before + 10 * CHECKS, "{difference}");
        }
        sleep(TICK).await;
    }
}

fn checks(controller: &Controller) -> Result<usize> {
    Ok(controller.log()?.matches(READ).count())
}

impl Step {
    async fn take(self, stage: &Stage, namespace: &str) -> Result<()> {
        let listed = match self {
            Self::Discover => vec![ami(1, V1, "2026-09-22"), ami(3, V3, "2026-09-21"), ami(9, "mine", "2026-09-22")],
            Self::Newer | Self::Move => vec![
                ami(1, V1, "2026-09-22"),
                ami(2, V2, "2026-11-18"),
                ami(3, V3, "2026-09-21"),
                ami(9, "mine", "2026-09-22"),
            ],
            Self::CleanUp | Self::Forget => vec![ami(2, V2, "2026-11-18")],
        };
        match self {
            Self::Discover => {
                stage.lookup().await?;
                stage.make::<MachineImage>(hand_made()).await?;
                stage.selection(namespace, "selection", json!({})).await?;
                let labels = json!({"images.gardener-extension-worker/lookup": "capi", "topology.kubernetes.io/region": "eu-central-1"});
                templates(stage, namespace).create(&PostParams::default(), &template("nodes", labels)).await?;
            }
            Self::Newer | Self::CleanUp => {}
            Self::Move => {
                let newer = Patch::Merge(json!({"spec": {"images": {"1.34.2": "ami-00000002"}}}));
                let selections = stage.namespaced::<ImageSelection>(namespace);
                selections.patch("selection", &PatchParams::default(), &newer).await?;
            }
            Self::Forget => {
                Api::<ImageLookup>::all(stage.client.clone()).delete("capi", &DeleteParams::default()).await?;
            }
        }
        stage.list(&listed)
    }
}

fn hand_made() -> Value {
    let spec = json!({"provider": "aws", "region": "eu-central-1", "reference": {"ami": "ami-00000009"}, "image": "other", "version": "1.0.0"});
    json!({"metadata": {"name": "mine"}, "spec": spec})
}

fn templates(stage: &Stage, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(stage.client.clone(), namespace, &ApiResource::erase::<AwsMachineTemplate>(&()))
}

/// All objects, unnormalized.
async fn dump(stage: &Stage, namespace: &str) -> Result<Dump> {
    let client = || stage.client.clone();
    let kinds = [
        (Api::all_with(client(), &ApiResource::erase::<MachineImage>(&())), "MachineImage"),
        (Api::all_with(client(), &ApiResource::erase::<ImageLookup>(&())), "ImageLookup"),
        (Api::namespaced_with(client(), namespace, &ApiResource::erase::<ImageSelection>(&())), "ImageSelection"),
        (templates(stage, namespace), "AWSMachineTemplate"),
    ];
    let mut objects = BTreeMap::new();
    for (api, kind) in kinds {
        let api: Api<DynamicObject> = api;
        for mut object in api.list(&ListParams::default()).await? {
            object.metadata.managed_fields = None;
            let name = object.metadata.name.clone().unwrap_or_default();
            objects.insert(format!("{kind} {name}"), serde_json::to_value(object)?);
        }
    }
    Ok(Dump::of_all(namespace, &objects))
}

/// Deletes everything, so that the next life starts from the same state.
async fn clear(stage: &Stage, namespace: &str) -> Result<()> {
    let (all, any) = (DeleteParams::default(), ListParams::default());
    templates(stage, namespace).delete_collection(&all, &any).await?;
    stage.namespaced::<ImageSelection>(namespace).delete_collection(&all, &any).await?;
    Api::<ImageLookup>::all(stage.client.clone()).delete_collection(&all, &any).await?;
    Api::<MachineImage>::all(stage.client.clone()).delete_collection(&all, &any).await?;
    ensure!(stage.images().await?.is_empty(), "images are left");
    Ok(())
}

//! One life of a Worker: requests of gardenlet amid faults, then a calm in which everything must succeed.

mod boot_scripts;
mod budget;
mod deletion;
mod end;
mod images;
mod late_stop;
mod moves;
mod recreation;
mod requests;
mod stops;
mod troubles;
mod zones;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gardener_extension_worker::simulation;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::actor::Actor;
use crate::api_server::ApiServer;
use crate::api_server::kinds::{Kind, MACHINE, MACHINE_CLASS, MACHINE_DEPLOYMENT, MACHINE_SET, SECRET};
use crate::azure::Azure;
use crate::cloud::Cloud;
use crate::controllers::Controller;
use crate::dependency::Dependencies;
use crate::documents::{CLOUDS, Documents, NAMESPACE};
use crate::gardenlet::Gardenlet;
use crate::machines::MachineControllerManager;
use crate::network::{Faults, Network};
use crate::openstack::OpenStack;
use crate::random::Random;
use crate::rules::violations;
use crate::seeds::Theme;
use crate::sharder::{self, Sharder, of_another_shard};
use crate::trace::Trace;
use crate::{machines, people};
use images::Images;
use troubles::{LATE, SLOW, faults};

/// Start time of each life.
const BEGIN: i64 = 1_790_000_000;
/// How long gardenlet waits for an operation amid faults.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(240);
/// Time limit for the last request after all faults end. A machine takes a minute, and a stuck
/// machine-controller-manager two. A pending Worker is requeued after ten minutes; anything that only this repairs is a
/// defect.
const CALM: Duration = Duration::from_secs(540);
/// One of this many deletions amid faults is forced.
const ONE_FORCED_OF: u64 = 8;
/// Maximum number of writes between the deletion of the last machine and the relist.
const MOST_WRITES: u64 = 16;
/// Kinds to relist, selected by the seed. The watch of Workers continues, so only the list reveals deletions.
const RELISTED: [&[&Kind]; 4] = [
    &[&MACHINE_CLASS],
    &[&SECRET],
    &[&MACHINE_CLASS, &SECRET],
    &[&MACHINE_CLASS, &SECRET, &MACHINE_DEPLOYMENT, &MACHINE_SET, &MACHINE],
];

/// Arguments of controllers without and with leader election.
const ALONE: &[&str] = &[];
const ELECTED: &[&str] = &["--leader-election-namespace=garden", "--leader-election-lease-seconds=30"];
/// Controllers that are shards, with their arguments.
const SHARDS: [(&str, &[&str]); 2] = [
    ("controller-a", &[ELECTED[0], ELECTED[1], "--shard-ring=ring", "--shard-name=controller-a"]),
    ("controller-b", &[ELECTED[0], ELECTED[1], "--shard-ring=ring", "--shard-name=controller-b"]),
];

/// Update strategies of pools.
const STRATEGIES: [&str; 3] = ["AutoInPlaceUpdate", "ManualInPlaceUpdate", "AutoRollingUpdate"];

/// Configurations of controllers, one of which is suspended.
const SUSPENDABLE: [Controllers; 4] =
    [Controllers::Standby, Controllers::Shards, Controllers::Elected, Controllers::One];

/// The result of a life.
pub(crate) struct Ended {
    /// Short description of its course.
    pub(crate) plan: String,
    pub(crate) found: Vec<String>,
    /// The trace, if requested.
    pub(crate) trace: String,
    pub(crate) requests: usize,
    /// Seconds until the last request succeeded in the calm.
    pub(crate) calmed_after: u64,
}

/// Runs a life. The trace is only rendered if a rule was broken or `requests_trace` is set.
pub(crate) fn live(seed: u64, requests_trace: bool) -> Ended {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
    simulation::seed(seed);
    runtime.block_on(async {
        let mut life = Life::new(seed);
        life.run().await;
        life.ended(requests_trace)
    })
}

/// Which controllers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Controllers {
    One,
    /// One, with leader election.
    Elected,
    /// Two with leader election.
    Standby,
    /// Two without leader election, so both act as leaders.
    Two,
    /// Two shards, to which a sharder assigns Workers.
    Shards,
}

struct Life {
    random: Random,
    network: Network,
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    gardenlet: Gardenlet,
    cloud: Cloud,
    /// The cloud that pools depend on.
    dependencies: Dependencies,
    provider: &'static str,
    most_zones: usize,
    faults: Faults,
    kind: Controllers,
    controllers: Vec<Controller>,
    /// Tasks that end with the calm.
    disturbances: JoinSet<()>,
    /// Tasks that run all the time.
    surroundings: JoinSet<()>,
    steps: Vec<&'static str>,
    image: usize,
    images: Images,
    /// Index of the first pool's strategy in [`STRATEGIES`].
    first_strategy: usize,
    is_hibernated: bool,
    /// Whether any controller's clock is or was wrong.
    is_clock_wrong: bool,
    /// Whether gardenlet must repeat its request, because a user edited objects or a race occurred.
    is_edited: bool,
    /// Whether the autoscaler used bounds that were already outdated.
    is_scaled_late: Arc<AtomicBool>,
    /// Whether the sharder moves the Worker without need.
    is_rebalanced: Arc<AtomicBool>,
    theme: Theme,
    /// How a wait of zones, or a hold of pools, ends in the calm.
    end_of_wait: u64,
    /// Slots of the roll budget.
    slots: usize,
    /// Whether the Worker is deleted amid faults.
    is_deleted_in_trouble: bool,
    /// Whether this deletion is forced.
    is_deletion_forced: bool,
    /// Number of writes after the deletion of the last machine until a relist of everything, or of these kinds.
    relisted_after: Option<u64>,
    relisted: Option<&'static [&'static Kind]>,
    found: Vec<String>,
    calmed_after: u64,
}

impl Life {
    fn new(seed: u64) -> Self {
        let (random, began) = (Random::of(seed), Instant::now());
        let start = Timestamp::from_second(BEGIN).unwrap_or_default();
        let now: Arc<dyn Fn() -> Timestamp + Send + Sync> =
            Arc::new(move || start + SignedDuration::try_from(began.elapsed()).unwrap_or_default());
        let clock = Arc::clone(&now);
        let server = ApiServer::new(move || clock());
        let network = Network::new(server, Trace::begin(), random.clone());
        let kind = match random.below(12) {
            0 => Controllers::Elected,
            1 => Controllers::Standby,
            2 => Controllers::Two,
            _ => Controllers::One,
        };
        let theme = Theme::of(seed);
        let kind = match theme {
            Theme::Shards | Theme::MovedLate => Controllers::Shards,
            Theme::Suspended => SUSPENDABLE[usize::try_from(seed).unwrap_or_default() % SUSPENDABLE.len()],
            // Two controllers that both act as leaders would have different views of the cloud.
            Theme::ServerGroups | Theme::ScaleSets if kind == Controllers::Two => Controllers::Shards,
            _ => kind,
        };
        let (names, arguments): (&[&'static str], _) = match kind {
            Controllers::One => (&["controller-a"], ALONE),
            Controllers::Elected => (&["controller-a"], ELECTED),
            Controllers::Standby => (&["controller-a", "controller-b"], ELECTED),
            Controllers::Two => (&["controller-a", "controller-b"], ALONE),
            Controllers::Shards => (&[], ELECTED),
        };
        let mut controllers: Vec<_> =
            names.iter().map(|name| Controller::new(&network, name, arguments, &now)).collect();
        if kind == Controllers::Shards {
            controllers.extend(SHARDS.map(|(name, arguments)| Controller::new(&network, name, arguments, &now)));
        }
        let dependencies: Dependencies = match theme {
            Theme::ServerGroups => Some(Arc::new(OpenStack::new())),
            Theme::ScaleSets => Some(Arc::new(Azure::new(&random))),
            _ => None,
        };
        controllers = controllers.into_iter().map(|controller| controller.depending_on(&dependencies)).collect();
        let is_deleted_in_trouble = match theme {
            Theme::DeletedInTrouble | Theme::RelistedKinds => true,
            Theme::Shards => seed.is_multiple_of(5),
            Theme::MovedHibernated => seed.is_multiple_of(4),
            Theme::Everything
            | Theme::LetGoByHand
            | Theme::ScaledFirst
            | Theme::Recreated
            | Theme::BootScriptsReplaced
            | Theme::MovedLate
            | Theme::Suspended
            | Theme::ZoneByZone
            | Theme::Budget
            | Theme::Stopped => false,
            Theme::ServerGroups
            | Theme::ScaleSets
            | Theme::ImagesChanged
            | Theme::UpdatedInPlace
            | Theme::StoppedLate => seed.is_multiple_of(4),
        };
        let gardenlet = Gardenlet::new(Actor::new(&network, "gardenlet", NAMESPACE), Arc::clone(&now));
        // Enabling it for other themes would change the course of lives that once broke rules.
        let may_move_hibernated = matches!(theme, Theme::MovedHibernated | Theme::MovedLate);
        let gardenlet = if may_move_hibernated { gardenlet.mirroring_hibernation() } else { gardenlet };
        let provider = random.one_of(&CLOUDS).copied().unwrap_or("aws");
        let provider = dependencies.as_ref().map_or(provider, |dependency| dependency.provider());
        // Its zones need no infrastructure.
        let provider = match theme {
            Theme::ZoneByZone | Theme::Stopped => "gcp",
            // An identity is part of its class names, and no input of the key.
            Theme::Budget => "azure",
            _ => provider,
        };
        let most_zones = *random.one_of(&[1, 1, 1, 1, 1, 2, 3]).unwrap_or(&1);
        Self {
            cloud: Cloud::new(random.clone()),
            faults: match theme {
                Theme::ScaledFirst => Faults { lag: LATE, ..faults(&random) },
                Theme::MovedLate => Faults { way: SLOW, lag: LATE, ..faults(&random) },
                _ => faults(&random),
            },
            random,
            network,
            now,
            gardenlet,
            dependencies,
            provider,
            most_zones,
            kind,
            controllers,
            disturbances: JoinSet::new(),
            surroundings: JoinSet::new(),
            steps: Vec::new(),
            image: 0,
            images: Images::default(),
            first_strategy: usize::try_from(seed % 3).unwrap_or_default(),
            is_hibernated: false,
            is_clock_wrong: false,
            is_edited: false,
            is_scaled_late: Arc::default(),
            is_rebalanced: Arc::default(),
            theme,
            end_of_wait: seed % 6,
            slots: usize::try_from(1 + seed % 2).unwrap_or(1),
            is_deleted_in_trouble,
            is_deletion_forced: is_deleted_in_trouble && seed.is_multiple_of(ONE_FORCED_OF),
            relisted_after: (seed % 2 == 1 || theme == Theme::RelistedKinds).then_some(seed / 2 % MOST_WRITES),
            relisted: (theme == Theme::RelistedKinds).then(|| some_kinds(seed)),
            found: Vec::new(),
            calmed_after: 0,
        }
    }

    fn actor(&self, author: &'static str) -> Actor {
        Actor::new(&self.network, author, NAMESPACE)
    }

    async fn run(&mut self) {
        self.surround();
        self.network.set_faults(self.faults);
        let is_disturbed = self.random.happens(800);
        if is_disturbed {
            self.disturb();
        }
        if self.theme == Theme::LetGoByHand {
            self.is_edited = true;
            self.disturbances.spawn(people::release(self.actor("person"), self.random.clone()));
        }
        self.create();
        self.controllers.iter_mut().for_each(Controller::start);
        match self.theme {
            Theme::ZoneByZone => self.change_zones().await,
            Theme::Budget => self.change_budget().await,
            Theme::Stopped => self.change_stops().await,
            _ => self.some_steps().await,
        }
        if self.theme == Theme::Recreated && !self.recreated().await {
            return;
        }
        if self.theme == Theme::MovedHibernated {
            self.misfortune().await;
            self.move_hibernated().await;
        }
        if self.theme == Theme::StoppedLate {
            self.stop_late().await;
        }
        if self.theme == Theme::MovedLate {
            self.move_late().await;
        }
        // Gardener's API server rejects the deletion of a shoot that is moving.
        if self.is_deleted_in_trouble && !self.gardenlet.is_moving() {
            self.delete_in_trouble().await;
        } else {
            self.misfortune().await;
            if self.theme == Theme::ScaledFirst {
                self.outrun().await;
            }
            self.calm();
            if self.theme == Theme::ZoneByZone {
                self.check_zones().await;
            }
            if self.theme == Theme::Budget {
                self.check_budget().await;
            }
            if self.theme == Theme::Stopped {
                self.check_stops().await;
            }
            self.end().await;
        }
    }

    /// gardenlet creates the shoot with some of its pools.
    fn create(&mut self) {
        self.steps.push("create");
        let mut documents = Documents::of(self.provider);
        let mut pools = self.pools();
        let most = *self.random.one_of(&[1, 1, 1, 1, 1, 1, 1, 2, 2, 4]).unwrap_or(&1);
        // With two pools' Secrets and the credentials, there are enough Secrets for the controller to list their
        // versions.
        pools.truncate(match self.theme {
            Theme::BootScriptsReplaced => most.max(2),
            Theme::Budget => 4,
            _ => most,
        });
        documents.worker["spec"]["pools"] = Value::Array(pools);
        if let Some(dependency) = &self.dependencies {
            dependency.prepare(&mut documents, &self.random);
        }
        self.gardenlet.create(&documents);
    }

    /// All possible pools of the shoot.
    fn pools(&self) -> Vec<Value> {
        let mut pools = Documents::pools(self.provider, self.most_zones);
        if self.theme == Theme::UpdatedInPlace {
            let strategies = STRATEGIES.iter().cycle().skip(self.first_strategy);
            for (pool, strategy) in pools.iter_mut().zip(strategies) {
                pool["updateStrategy"] = json!(strategy);
                (pool["maxSurge"], pool["maxUnavailable"]) = (json!(0), json!(1));
            }
        }
        if matches!(self.theme, Theme::ZoneByZone | Theme::Stopped) {
            pools.iter_mut().take(1).for_each(zones::spread);
        }
        if self.theme == Theme::Budget {
            pools.iter_mut().for_each(budget::label);
        }
        pools
    }

    async fn some_steps(&mut self) {
        for _ in 0..=self.random.below(3) {
            self.misfortune().await;
            self.step().await;
        }
    }

    /// Whether gardenlet must repeat its request. With two controllers that both act as leaders, one may start an
    /// operation that the other continues, which only the write fence prevents. Then no controller publishes the bounds
    /// again, so gardenlet waits in vain and must repeat the request.
    fn must_request(&self) -> bool {
        self.network.take_forgotten()
            || self.is_edited
            || self.is_scaled_late.load(Ordering::Relaxed)
            || self.kind == Controllers::Two
    }

    fn controllers_at_work(&self) -> usize {
        match self.kind {
            Controllers::One | Controllers::Elected => 1,
            Controllers::Standby | Controllers::Two | Controllers::Shards => 2,
        }
    }

    /// Starts the actors that run all the time.
    fn surround(&mut self) {
        let manager = MachineControllerManager::new(
            self.actor(machines::NAME),
            self.cloud.clone(),
            self.random.clone(),
            *self.random.one_of(&[50, 400, 3000]).unwrap_or(&50),
            Arc::clone(&self.now),
        );
        let manager = if self.relisted.is_some() { manager.holding_used_ones() } else { manager };
        let has_zones = matches!(self.theme, Theme::ZoneByZone | Theme::Stopped);
        let manager = if has_zones { manager.omitting_deleted_ones() } else { manager };
        self.surroundings.spawn(manager.run());
        if self.kind == Controllers::Shards {
            let sharder = Sharder {
                leases: Actor::new(&self.network, "sharder", sharder::LEASES),
                workers: self.actor("sharder"),
                random: self.random.clone(),
                now: Arc::clone(&self.now),
                rebalances: Arc::clone(&self.is_rebalanced),
            };
            self.surroundings.spawn(sharder.run());
        }
        if let Some(dependency) = self.dependencies.clone().filter(|dependency| dependency.takes_a_while()) {
            let random = self.random.clone();
            self.surroundings.spawn(async move {
                loop {
                    sleep(random.millis(1_000, 30_000)).await;
                    dependency.complete();
                }
            });
        }
        self.surroundings.spawn(people::collect_garbage(self.actor("garbage"), self.random.clone()));
    }

    fn ended(self, requests_trace: bool) -> Ended {
        let store = self.network.server.store();
        // Of two processes, each may use all slots before it observes those of the other.
        let processes = if self.controllers_at_work() > 1 { 2 } else { 1 };
        let slots = (self.theme == Theme::Budget).then_some(self.slots.max(1) * processes);
        let mut found = violations(&store.log, self.kind != Controllers::Two, slots, &self.network.trace);
        found.extend(self.network.violations());
        found.extend(self.found.iter().cloned());
        if self.kind == Controllers::Shards {
            found.extend(of_another_shard(&store.log).into_iter().take(5));
        }
        let plan = format!("{} {:?}: {}; {:?}", self.provider, self.kind, self.steps.join(", "), self.faults);
        let trace =
            if requests_trace || !found.is_empty() { self.network.trace.text(&store.log) } else { String::new() };
        Ended { plan, found, trace, requests: self.network.trace.requests(), calmed_after: self.calmed_after }
    }
}

fn some_kinds(seed: u64) -> &'static [&'static Kind] {
    let index = usize::try_from(seed / (2 * MOST_WRITES)).unwrap_or_default() % RELISTED.len();
    RELISTED[index]
}

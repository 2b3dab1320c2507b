//! Metrics for Prometheus (docs/metrics.md). Label values come from fixed sets, except namespaces, whose series are
//! removed with the Worker.

use std::collections::BTreeMap;
use std::hash::Hash;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry, Unit};

use crate::controller::report::gauges::Gauges;
use crate::controller::report::version_metrics::VersionMetrics;
use crate::image_controller::metrics::ImageMetrics;
use decisions::worker::plan::Plan;
use decisions::worker::plan::rolls::{Roll, RollCause};
use explanations::preview::dry_run::{MachineObjectKind, WouldBe};
use runtime::cluster::request_metrics::RequestObserver;
use runtime::process::endpoints::MetricsText;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReconcileResult {
    Succeeded,
    /// It continues with the next event.
    Waiting,
    /// It is retried.
    Failed,
}

impl ReconcileResult {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Waiting => "waiting",
            Self::Failed => "failed",
        }
    }
}

/// Number of pools of one Worker by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PoolNumbers {
    /// All machines are up to date and available.
    pub(crate) ready: i64,
    /// Machines are missing, outdated or unhealthy.
    pub(crate) waiting: i64,
    /// The pool can't be planned, or its machines can't be created.
    pub(crate) failed: i64,
}

/// Number of Workers by how they compare with what a shadow controller would write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShadowNumbers {
    pub(crate) same: i64,
    pub(crate) differing: i64,
    /// Workers with an operation in progress.
    pub(crate) under_way: i64,
    pub(crate) unplanned: i64,
    pub(crate) differences: BTreeMap<(MachineObjectKind, WouldBe), i64>,
    /// Deployments whose machines would be replaced, by cause.
    pub(crate) rolls: BTreeMap<&'static str, i64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StandingLabels {
    standing: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DifferenceLabels {
    kind: &'static str,
    would_be: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabels {
    worker_type: String,
    operation: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReconcileLabels {
    worker_type: String,
    operation: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PhaseLabels {
    phase: &'static str,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct PoolsLabels {
    namespace: String,
    state: &'static str,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct HeldLabels {
    namespace: String,
    reason: &'static str,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct NamespaceLabels {
    namespace: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RollLabels {
    cause: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    verb: &'static str,
    resource: &'static str,
    code: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CodeLabels {
    code: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WaitLabels {
    on: &'static str,
}

/// Histogram buckets in seconds. A reconcile takes milliseconds, or seconds with a slow API server.
const SECONDS: [f64; 12] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// Labels of a metric with one series.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct NoLabels {}

/// Slots of the roll budget.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlotNumbers {
    /// At most this many pools of the seed have an unrequested roll in progress.
    pub(crate) limit: usize,
    /// Number of slots in use by namespace, without those that use none.
    pub(crate) used: BTreeMap<String, usize>,
}

/// The roll budget; absent without `--roll-budget`.
struct BudgetMetrics {
    slots: Gauges<NoLabels>,
    used: Gauges<NamespaceLabels>,
    /// Counts the slots when metrics are read.
    numbers: OnceLock<Box<dyn Fn() -> SlotNumbers + Send + Sync>>,
}

impl BudgetMetrics {
    fn registered(registry: &mut Registry) -> Self {
        Self {
            slots: registered(registry, "roll_budget", "Slots of the roll budget; absent without one"),
            used: registered(
                registry,
                "roll_budget_used",
                "Slots of the roll budget in use; absent while a namespace uses none",
            ),
            numbers: OnceLock::new(),
        }
    }

    fn count(&self) {
        let Some(numbers) = self.numbers.get() else { return };
        let SlotNumbers { limit, used } = numbers();
        self.slots.set(NoLabels {}, i64::try_from(limit).ok());
        let used = used.into_iter().filter_map(|(namespace, used)| Some((namespace, i64::try_from(used).ok()?)));
        self.used.replace(used.map(|(namespace, used)| (NamespaceLabels { namespace }, used)));
    }
}

/// Histogram buckets in seconds, up to the limit of waits for another zone.
const WAIT_SECONDS: [f64; 8] = [60.0, 300.0, 900.0, 1_800.0, 3_600.0, 7_200.0, 14_400.0, 21_600.0];

type Durations<Labels> = Family<Labels, Histogram, fn() -> Histogram>;

fn seconds() -> Histogram {
    Histogram::new(SECONDS)
}

pub struct Metrics {
    registry: Registry,
    reconciles: Family<ReconcileLabels, Counter>,
    reconcile_seconds: Durations<OperationLabels>,
    phase_seconds: Durations<PhaseLabels>,
    noop_reconciles: Family<OperationLabels, Counter>,
    pools: Gauges<PoolsLabels>,
    failing_since: Gauges<NamespaceLabels>,
    rolls_held: Gauges<HeldLabels>,
    roll_budget: BudgetMetrics,
    rolls: Family<RollLabels, Counter>,
    roll_wait: Histogram,
    api_requests: Family<RequestLabels, Counter>,
    errors: Family<CodeLabels, Counter>,
    waits: Family<WaitLabels, Counter>,
    leader: Gauge,
    shard: Gauge,
    leader_changes: Counter,
    shadow_workers: Family<StandingLabels, Gauge>,
    shadow_differences: Family<DifferenceLabels, Gauge>,
    shadow_rolls: Family<RollLabels, Gauge>,
    /// With `--version-forecast`: versions of pools.
    pub(crate) versions: VersionMetrics,
    /// With `--images`: objects for machine images.
    pub(crate) images: ImageMetrics,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("gardener_extension_worker");
        let it = &mut registry;
        let mut metrics = Self {
            reconciles: registered(it, "reconciles", "Reconciles by result"),
            reconcile_seconds: durations(it, "reconcile_duration", "Duration of a reconcile"),
            phase_seconds: durations(it, "phase_duration", "Duration of a step of a reconcile"),
            noop_reconciles: registered(
                it,
                "noop_reconciles",
                "Operations that found nothing to do and wrote no machine object",
            ),
            pools: registered(it, "pools", "Pools by state"),
            failing_since: registered(
                it,
                "failing_since_timestamp",
                "Since when the operation of a Worker fails; absent while it does not",
            ),
            rolls_held: registered(
                it,
                "rolls_held",
                "Pools with zones that wait for another zone, are stopped or are on hold, by reason",
            ),
            roll_budget: BudgetMetrics::registered(it),
            rolls: registered(it, "rolls", "Deployments whose machines are replaced, by cause"),
            roll_wait: Histogram::new(WAIT_SECONDS),
            api_requests: registered(it, "api_requests", "Requests to the API server"),
            errors: registered(it, "errors", "Failed reconciles by Gardener error code"),
            waits: registered(it, "waits", "Reconciles that ended waiting, by what they wait for"),
            leader: registered(it, "leader", "1 while this process is leader, or a shard"),
            shard: registered(it, "shard", "1 while this process is a shard"),
            leader_changes: registered(
                it,
                "leader_changes",
                "Times this process became or ceased to be leader, or a shard",
            ),
            shadow_workers: registered(
                it,
                "shadow_workers",
                "Dry run: Workers by comparison with what this controller would write",
            ),
            shadow_differences: registered(
                it,
                "shadow_differences",
                "Dry run: machine objects that differ from what this controller would write",
            ),
            shadow_rolls: registered(
                it,
                "shadow_rolls",
                "Dry run: machine deployments whose machines would be replaced, by cause",
            ),
            versions: VersionMetrics::default(),
            images: ImageMetrics::default(),
            registry: Registry::default(),
        };
        metrics.register_others(&mut registry);
        metrics.registry = registry;
        metrics
    }
}

impl Metrics {
    /// Registers the metrics of other files and those with initial values.
    fn register_others(&self, registry: &mut Registry) {
        for cause in RollCause::ALL {
            // Starts at zero, because Prometheus would otherwise not see the first roll of a cause as an increase.
            drop(self.rolls.get_or_create(&RollLabels { cause: cause.as_str() }));
        }
        let help = "How long zones had waited for another zone when they rolled";
        registry.register_with_unit("roll_wait", help, Unit::Seconds, self.roll_wait.clone());
        self.versions.register(registry);
        self.images.register(registry);
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "Version of this program", build);
    }
}

/// Creates and registers a metric.
fn registered<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

/// Creates and registers a histogram of durations in seconds.
fn durations<Labels>(registry: &mut Registry, name: &str, help: &str) -> Durations<Labels>
where
    Labels: Clone + Eq + Hash,
    Durations<Labels>: Metric,
{
    let metric = Durations::new_with_constructor(seconds as fn() -> Histogram);
    registry.register_with_unit(name, help, Unit::Seconds, metric.clone());
    metric
}

impl MetricsText for Metrics {
    fn text(&self) -> String {
        let mut text = String::new();
        self.roll_budget.count();
        // Writing to a string can't fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

impl Metrics {
    /// Records a finished reconcile.
    pub(crate) fn reconciled(
        &self,
        worker_type: &str,
        operation: &'static str,
        result: ReconcileResult,
        took: Duration,
    ) {
        let worker_type = worker_type.to_owned();
        self.reconcile_seconds
            .get_or_create(&OperationLabels { worker_type: worker_type.clone(), operation })
            .observe(took.as_secs_f64());
        self.reconciles.get_or_create(&ReconcileLabels { worker_type, operation, result: result.as_str() }).inc();
    }

    /// Counts a no-op operation.
    pub(crate) fn noop(&self, worker_type: &str, operation: &'static str) {
        self.noop_reconciles.get_or_create(&OperationLabels { worker_type: worker_type.to_owned(), operation }).inc();
    }

    /// Records the duration of a step. Its name is one of a fixed set.
    pub(crate) fn phase(&self, phase: &'static str, took: Duration) {
        self.phase_seconds.get_or_create(&PhaseLabels { phase }).observe(took.as_secs_f64());
    }

    /// Sets the number of pools by state in a namespace.
    pub(crate) fn pools(&self, namespace: &str, numbers: PoolNumbers) {
        for (state, number) in [("ready", numbers.ready), ("waiting", numbers.waiting), ("failed", numbers.failed)] {
            self.pools.set(PoolsLabels { namespace: namespace.to_owned(), state }, Some(number));
        }
    }

    /// Sets since when (in Unix seconds) the operation of the Worker in a namespace fails; `None` if it does not.
    pub(crate) fn failing_since(&self, namespace: &str, since: Option<i64>) {
        self.failing_since.set(NamespaceLabels { namespace: namespace.to_owned() }, since);
    }

    /// Sets the number of pools with zones that wait, are stopped or are on hold in a namespace, by reason. Without any, the series is absent.
    pub(crate) fn rolls_held(&self, namespace: &str, numbers: [(&'static str, usize); 4]) {
        for (reason, number) in numbers {
            let number = i64::try_from(number).ok().filter(|number| *number > 0);
            self.rolls_held.set(HeldLabels { namespace: namespace.to_owned(), reason }, number);
        }
    }

    /// Reports the slots of the roll budget, counted whenever metrics are read.
    pub(crate) fn report_slots(&self, numbers: impl Fn() -> SlotNumbers + Send + Sync + 'static) {
        // A process has one budget.
        let _ = self.roll_budget.numbers.set(Box::new(numbers));
    }

    /// Removes the series of a deleted Worker's namespace.
    pub(crate) fn forget(&self, namespace: &str) {
        for state in ["ready", "waiting", "failed"] {
            self.pools.set(PoolsLabels { namespace: namespace.to_owned(), state }, None);
        }
        self.failing_since(namespace, None);
        self.rolls_held(namespace, Plan::default().held_pools());
        self.versions.forget(namespace);
    }

    /// Counts a roll that starts now, and records how long it had waited for another zone.
    pub(crate) fn rolled(&self, roll: &Roll, now: Timestamp) {
        self.rolls.get_or_create(&RollLabels { cause: roll.cause.as_str() }).inc();
        if let Some(since) = roll.waited_since {
            self.roll_wait.observe(now.duration_since(since).as_secs_f64());
        }
    }

    /// Counts a request to the API server; `code` is `None` if there was no answer.
    pub(crate) fn count_request(&self, verb: &'static str, resource: &str, code: Option<u16>) {
        let labels = RequestLabels { verb, resource: cached_resource(resource), code: code_class(code) };
        self.api_requests.get_or_create(&labels).inc();
    }

    /// Returns a callback that counts requests.
    pub(crate) fn request_observer(self: &Arc<Self>) -> RequestObserver {
        let metrics = Arc::clone(self);
        Arc::new(move |verb, resource, code| metrics.count_request(verb, resource, code))
    }

    /// Counts a failed reconcile by Gardener error code, `none` without a code.
    pub(crate) fn error(&self, code: &'static str) {
        self.errors.get_or_create(&CodeLabels { code }).inc();
    }

    /// Counts a reconcile that ended waiting.
    pub(crate) fn waiting(&self, on: &'static str) {
        self.waits.get_or_create(&WaitLabels { on }).inc();
    }

    /// Sets the number of Workers by comparison result.
    pub(crate) fn shadow(&self, numbers: ShadowNumbers) {
        for (standing, number) in [
            ("same", numbers.same),
            ("differs", numbers.differing),
            ("under-way", numbers.under_way),
            ("unplanned", numbers.unplanned),
        ] {
            self.shadow_workers.get_or_create(&StandingLabels { standing }).set(number);
        }
        for kind in MachineObjectKind::ALL {
            for would_be in WouldBe::ALL {
                let number = numbers.differences.get(&(kind, would_be)).copied().unwrap_or_default();
                let labels = DifferenceLabels { kind: kind.as_str(), would_be: would_be.as_str() };
                self.shadow_differences.get_or_create(&labels).set(number);
            }
        }
        for cause in RollCause::ALL.map(RollCause::as_str) {
            let number = numbers.rolls.get(cause).copied().unwrap_or_default();
            self.shadow_rolls.get_or_create(&RollLabels { cause }).set(number);
        }
    }

    /// Called when this process gains or loses leadership, or its shard's lease.
    pub(crate) fn leads(&self, leads: bool, as_shard: bool) {
        self.leader.set(i64::from(leads));
        self.shard.set(i64::from(leads && as_shard));
        self.leader_changes.inc();
    }
}

/// Resources that this program requests. All others are counted as `other`.
const RESOURCES: [&str; 24] = [
    "awsmachinetemplates",
    "cloudprofiles",
    "clusters",
    "customresourcedefinitions",
    "deployments",
    "events",
    "imagelookups",
    "imageselections",
    "leases",
    "machineclasses",
    "machinedeployments",
    "machineimages",
    "machines",
    "machinesets",
    "mutatingwebhookconfigurations",
    "namespacedcloudprofiles",
    "namespaces",
    "nodes",
    "pods",
    "secrets",
    "shootstates",
    "validatingwebhookconfigurations",
    "verticalpodautoscalers",
    "workers",
];

fn cached_resource(resource: &str) -> &'static str {
    RESOURCES.into_iter().find(|cached| *cached == resource).unwrap_or("other")
}

/// Codes with a meaning of their own are kept; the others are grouped by their first digit.
fn code_class(code: Option<u16>) -> &'static str {
    match code {
        None => "none",
        Some(200) => "200",
        Some(201) => "201",
        Some(401) => "401",
        Some(403) => "403",
        Some(404) => "404",
        Some(409) => "409",
        Some(410) => "410",
        Some(422) => "422",
        Some(429) => "429",
        Some(500) => "500",
        Some(503) => "503",
        Some(504) => "504",
        Some(code) => match code / 100 {
            2 => "2xx",
            3 => "3xx",
            4 => "4xx",
            5 => "5xx",
            _ => "other",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profiles::versions::notices::PoolVersions;

    #[test]
    fn hostile_requests_make_no_new_series() {
        let metrics = Metrics::default();
        for number in 0..1000 {
            metrics.count_request("get", &format!("resource-{number}"), Some(number));
        }
        let series = metrics.text().lines().filter(|line| line.contains("_api_requests_total{")).count();
        assert!(series <= 20, "{series} series");
    }

    #[test]
    fn deleted_worker_leaves_no_metrics() {
        let metrics = Metrics::default();
        let before = metrics.text();
        metrics.pools("shoot--p--s", PoolNumbers { ready: 1, ..PoolNumbers::default() });
        metrics.failing_since("shoot--p--s", Some(1));
        let stuck =
            PoolVersions { pool: "a".to_owned(), stuck: Some(Timestamp::UNIX_EPOCH), ..PoolVersions::default() };
        metrics.versions.set("shoot--p--s", &vec![stuck.clone(); 1000]);
        assert!(metrics.text().contains(r#"_pool_stuck_timestamp{namespace="shoot--p--s",pool="a"} 0"#));
        metrics.versions.set("shoot--p--s", &[PoolVersions { pool: "b".to_owned(), ..stuck.clone() }]);
        assert!(!metrics.text().contains(r#"pool="a""#), "a pool that is gone leaves: {}", metrics.text());
        assert!(metrics.text().contains(r#"_pool_stuck_timestamp{namespace="shoot--p--s",pool="b"} 0"#));
        metrics.versions.set("shoot--p--s", &[PoolVersions { stuck: None, ..stuck }]);
        assert!(!metrics.text().contains("_pool_stuck_timestamp{"), "what is over leaves: {}", metrics.text());
        assert!(metrics.text().contains(r#"_pools{namespace="shoot--p--s",state="ready"} 1"#), "{}", metrics.text());
        metrics.forget("shoot--p--s");
        assert_eq!(metrics.text(), before);
    }

    #[test]
    fn counts_responses_by_outcome() {
        let classes = [200, 202, 302, 409, 418, 500, 502, 600, 99].map(|code| code_class(Some(code)));
        assert_eq!(classes, ["200", "2xx", "3xx", "409", "4xx", "500", "5xx", "other", "other"]);
        assert_eq!(code_class(None), "none");
    }

    #[test]
    fn a_dry_run_reports_how_workers_compare() {
        let metrics = Metrics::default();
        let different = (MachineObjectKind::ALL[0], WouldBe::ALL[0]);
        metrics.shadow(ShadowNumbers {
            same: 4,
            differing: 3,
            differences: [(different, 2)].into(),
            rolls: [("pool", 5)].into(),
            ..ShadowNumbers::default()
        });
        let text = metrics.text();
        for (series, number) in [(r#"{standing="same"}"#, 4), (r#"{standing="differs"}"#, 3), (r#"{cause="pool"}"#, 5)]
        {
            assert!(text.contains(&format!("{series} {number}\n")), "{series} {number}: {text}");
        }
        let kind = different.0.as_str();
        let would_be = different.1.as_str();
        assert!(text.contains(&format!(r#"kind="{kind}",would_be="{would_be}"}} 2"#)), "{text}");
        metrics.shadow(ShadowNumbers::default());
        assert!(metrics.text().contains(r#"{standing="differs"} 0"#), "what is over is not told any more");
    }
}

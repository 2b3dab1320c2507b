//! Generates the series for the tests of alert rules: this program's metrics, minute by minute, for a healthy seed and
//! for simulated incidents. Calls of the runtime record them, so a renamed metric or label changes a series.
//!
//! They are stored in test/charts/incidents.yaml, the input of promtool (test/charts). To regenerate it:
//! `UPDATE_GOLDEN=1 cargo test -p gardener-extension-worker-controllers incidents`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{Request, Response};
use jiff::Timestamp;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::{BoxError, Layer, Service, ServiceExt};

use crate::controller::reconcile::result::ReconcileResult as Reconciled;
use crate::controller::report::metrics::{Metrics, SlotNumbers};
use crate::controller::report::reconcile_metrics::{Ended, record};
use decisions::provider::Provider as _;
use decisions::provider::azure::Azure;
use decisions::worker::machines::progress::{DeploymentProgress, Phase, Progress};
use decisions::worker::plan::Plan;
use decisions::worker::plan::roll_budget::test_support::held_pool;
use decisions::worker::plan::rolls::{Roll, RollCause};
use decisions::worker::plan::stops::test_support::stopped_pool;
use decisions::worker::plan::zone_waits::test_support::waiting_pool;
use decisions::worker::plan::zone_waits::{WaitCause, WaitingPool};
use decisions::worker::request::Operation;
use decisions::worker::status::reconcile_outcome::{Failure, ReconcileOutcome};
use profiles::images::objects::numbers::ImageNumbers;
use profiles::versions::notices::PoolVersions;
use runtime::cluster::request_metrics::RequestCount;
use runtime::process::endpoints::MetricsText;
use runtime::webhook::{Denial, Observer as _, ReviewRequest, Verdict, WebhookMetrics};
use wire::api::gardener::ErrorCode;

const FILE: &str = "test/charts/incidents.yaml";
/// Number of samples, one for each minute.
const MINUTES: usize = 181;
const LAST_HEALTHY: usize = 60;
/// Number of Workers on the seed.
const WORKERS: usize = 7;
/// Number of slots in the roll budget.
const SLOTS: usize = 3;
/// Reconciles of each Worker within a minute.
const CHECKS: usize = 8;

/// State and reviews of one webhook command within a minute.
#[derive(Clone, Copy)]
struct Reviews {
    /// Whether the pod runs.
    pod: bool,
    /// Number of reviews that fail with an internal error.
    failed: usize,
    /// Number of slow reviews.
    slow: usize,
    /// When the certificate expires, in seconds since the start.
    expires: i64,
    /// Whether the API server rejects the certificate.
    refused: bool,
}

/// Positions of the webhook commands in [`WEBHOOKS`].
const ADMISSION: usize = 0;
const SIDECAR: usize = 1;
const WEBHOOKS: [(&str, &str, &str); 2] = [
    ("gardener_extension_worker_admission", "/webhooks/validate", "shoots"),
    ("gardener_extension_worker_sidecar", "/sidecar/azure", "deployments"),
];

/// State and events of the seed and the garden within a minute.
struct Minute {
    /// The webhooks of the garden and of the seed.
    webhooks: [Reviews; 2],
    /// Whether the pods run.
    pods: bool,
    /// Whether the first process restarts at this minute.
    restarts: bool,
    /// Which of the two processes lead.
    leads: [bool; 2],
    /// Number of failing Workers, counted from the first.
    failing: usize,
    /// Whether they fail before they are planned.
    unplanned: bool,
    /// Number of slow reconciles of each Worker, counted from the first.
    slow: usize,
    /// Whether the zone that other zones of a pool wait for fails because of its class.
    zone_fails: bool,
    /// Whether the roll budget holds a pool.
    is_held: bool,
    /// Whether a user has stopped the roll of a pool.
    is_stopped: bool,
    /// Numbers of the Workers that use a slot of the roll budget each.
    slots: Range<usize>,
    /// Whether the sources of images can't be read.
    lookup_fails: bool,
    /// The versions of a pool of each Worker.
    versions: PoolVersions,
    /// The causes of rolls that start.
    rolls: Vec<RollCause>,
    /// Requests with method, path and status code (`None` without a response), and how often they occur.
    results: Vec<(&'static str, &'static str, Option<u16>, usize)>,
}

const STATUS: &str = "/apis/extensions.gardener.cloud/v1alpha1/namespaces/shoot--p--0/workers/s/status";
const CLASSES: &str = "/apis/machine.sapcloud.io/v1alpha1/namespaces/shoot--p--0/machineclasses";
const SECRET: &str = "/api/v1/namespaces/shoot--p--0/secrets/cloudprovider";

impl Minute {
    /// A healthy seed: a CloudProfile offers a new image, and many shoots adopt it in their maintenance. Once, a user
    /// changes a configuration and a subnet, and a restarting API server is briefly unavailable.
    fn healthy(at: usize) -> Self {
        let mut rolls = vec![RollCause::Pool; 2];
        let mut results =
            vec![("PATCH", STATUS, Some(200), 60), ("PATCH", STATUS, Some(409), 1), ("GET", SECRET, Some(404), 1)];
        if at == LAST_HEALTHY + 1 {
            rolls.extend([RollCause::ProviderConfig, RollCause::Infrastructure]);
            results.push(("PATCH", STATUS, None, 40));
        }
        let reviews = Reviews { pod: true, failed: 0, slow: 0, expires: 30 * 24 * 60 * 60, refused: false };
        let versions = PoolVersions {
            pool: "a".to_owned(),
            image_expires: after_days(60),
            kubernetes_expires: after_days(60),
            update_available: true,
            declined_update: None,
            stuck: after_days(60),
        };
        Self {
            webhooks: [reviews; 2],
            pods: true,
            restarts: false,
            leads: [true, false],
            failing: 0,
            unplanned: false,
            slow: 0,
            zone_fails: false,
            is_held: false,
            is_stopped: false,
            slots: 0..0,
            lookup_fails: false,
            versions,
            rolls,
            results,
        }
    }
}

fn after_days(days: i64) -> Option<Timestamp> {
    Some(Timestamp::constant(days * 24 * 60 * 60, 0))
}

/// The cause of a roll that Azure records for a zone whose subnet has another name.
fn cause_of_new_subnet() -> RollCause {
    let input = "infrastructureProviderStatus.networks.subnets[].name";
    RollCause::of_input(input, Azure.infrastructure_inputs())
}

/// A failure that starts after an hour.
struct Incident {
    what: &'static str,
    fires: &'static str,
    /// The time at which the alert has certainly fired.
    after: &'static str,
    /// Changes the state of each minute after the start, counted from 0.
    changes: fn(usize, &mut Minute),
}

const INCIDENTS: [Incident; 28] = [
    Incident {
        what: "The pods are evicted, and their image can't be pulled.",
        fires: "WorkerControllerDown",
        after: "80m",
        changes: |_, minute| minute.pods = false,
    },
    Incident {
        what: "The leases can't be written.",
        fires: "WorkerControllerWithoutLeader",
        after: "70m",
        changes: |_, minute| minute.leads = [false, false],
    },
    Incident {
        what: "Two installations with different names of the lease serve the same seed.",
        fires: "WorkerControllerSeveralLeaders",
        after: "70m",
        changes: |_, minute| minute.leads = [true, true],
    },
    Incident {
        what: "The quota of one shoot's subscription is used up.",
        fires: "WorkerFails",
        after: "100m",
        // Other Workers use all slots of the roll budget and don't fail.
        changes: |_, minute| (minute.failing, minute.slots) = (1, 1..1 + SLOTS),
    },
    Incident {
        what: "Somebody took an image out of a CloudProfile that all shoots use.",
        fires: "WorkersFailTogether",
        after: "75m",
        changes: |_, minute| minute.failing = 6,
    },
    Incident {
        what: "The controller is updated, and the new one can't read the Clusters of its seed.",
        fires: "WorkersFailTogether",
        after: "75m",
        changes: |since, minute| {
            minute.restarts = since == 0;
            (minute.failing, minute.unplanned) = (WORKERS, true);
        },
    },
    Incident {
        what: "Another controller has written a class into a machine deployment, and this one takes it back.",
        fires: "WorkerRollNotRecorded",
        after: "65m",
        changes: |since, minute| {
            if since == 0 {
                minute.rolls.push(RollCause::NotRecorded);
            }
        },
    },
    Incident {
        what: "An infrastructure controller names the subnets of all shoots anew.",
        fires: "WorkersRollTogether",
        after: "80m",
        changes: |_, minute| minute.rolls.extend([cause_of_new_subnet(); 5]),
    },
    Incident {
        what: "An image that does not boot reaches the first zone of a pool whose zones roll one after the other.",
        fires: "WorkerZoneFails",
        after: "140m",
        changes: |_, minute| minute.zone_fails = true,
    },
    Incident {
        what: "A release renders another class name for a pool, and no slot of the roll budget is free for a day.",
        fires: "WorkerRollsHeld",
        after: "1520m",
        changes: |_, minute| minute.is_held = true,
    },
    Incident {
        what: "An owner stops the roll of a pool and forgets it.",
        fires: "WorkerRollsStopped",
        after: "1520m",
        changes: |_, minute| minute.is_stopped = true,
    },
    Incident {
        what: "The machines of all pools with a slot of the roll budget do not start.",
        fires: "WorkerFails, WorkerRollBudgetStuck",
        after: "190m",
        changes: |_, minute| (minute.failing, minute.slots) = (SLOTS, 0..SLOTS),
    },
    Incident {
        what: "A CloudProfile lets the newest version of an image expire.",
        fires: "WorkerPoolsStuck",
        after: "140m",
        changes: |_, minute| minute.versions.stuck = after_days(13),
    },
    Incident {
        what: "A Kubernetes version expires whose shoots are not updated automatically.",
        fires: "WorkerPoolVersionsExpire",
        after: "140m",
        changes: |_, minute| minute.versions.kubernetes_expires = after_days(6),
    },
    Incident {
        what: "A listing of images ends too early, and nobody writes it again.",
        fires: "WorkerImageLookupFails",
        after: "140m",
        changes: |_, minute| minute.lookup_fails = true,
    },
    Incident {
        what: "The chart was upgraded without its role.",
        fires: "WorkerRequestsForbidden",
        after: "70m",
        changes: |_, minute| minute.results.push(("POST", CLASSES, Some(403), 1)),
    },
    Incident {
        what: "The API server throttles everybody.",
        fires: "WorkerRequestsUnanswered",
        after: "80m",
        changes: |_, minute| minute.results.push(("PATCH", STATUS, Some(429), 20)),
    },
    Incident {
        what: "The API server answers slowly, its etcd needs defragmentation.",
        fires: "WorkerReconcilesSlow",
        after: "90m",
        changes: |_, minute| minute.slow = CHECKS / 2,
    },
    Incident {
        what: "The runtime cluster has no node for the admission webhook.",
        fires: "WorkerAdmissionDown",
        after: "80m",
        changes: |_, minute| minute.webhooks[ADMISSION].pod = false,
    },
    Incident {
        what: "The garden gives the admission webhook no parent of a NamespacedCloudProfile.",
        fires: "WorkerAdmissionReviewsFail",
        after: "90m",
        changes: |_, minute| minute.webhooks[ADMISSION].failed = 2,
    },
    Incident {
        what: "Profiles of 1.5 MiB are written by a loop.",
        fires: "WorkerAdmissionReviewsSlow",
        after: "90m",
        changes: |_, minute| minute.webhooks[ADMISSION].slow = 5,
    },
    Incident {
        what: "The Secret of the admission webhook can't be written.",
        fires: "WorkerAdmissionCertificateExpires",
        after: "140m",
        changes: |_, minute| minute.webhooks[ADMISSION].expires = 24 * 60 * 60,
    },
    Incident {
        what: "A process whose clock is 40 days ahead has written the Secret of the admission webhook.",
        fires: "WorkerAdmissionCertificateRefused",
        after: "70m",
        changes: |_, minute| minute.webhooks[ADMISSION].refused = true,
    },
    Incident {
        what: "The image of the webhook for the sidecar can't be pulled.",
        fires: "WorkerSidecarDown",
        after: "80m",
        changes: |_, minute| minute.webhooks[SIDECAR].pod = false,
    },
    Incident {
        what: "The webhook for the sidecar may not read Clusters.",
        fires: "WorkerSidecarReviewsFail",
        after: "90m",
        changes: |_, minute| minute.webhooks[SIDECAR].failed = 2,
    },
    Incident {
        what: "The seed answers the webhook for the sidecar slowly.",
        fires: "WorkerSidecarReviewsSlow",
        after: "90m",
        changes: |_, minute| minute.webhooks[SIDECAR].slow = 5,
    },
    Incident {
        what: "The Secret of the webhook for the sidecar can't be written.",
        fires: "WorkerSidecarCertificateExpires",
        after: "140m",
        changes: |_, minute| minute.webhooks[SIDECAR].expires = 24 * 60 * 60,
    },
    Incident {
        what: "A process whose clock is 40 days ahead has written the Secret of the webhook for the sidecar.",
        fires: "WorkerSidecarCertificateRefused",
        after: "70m",
        changes: |_, minute| minute.webhooks[SIDECAR].refused = true,
    },
];

/// Both processes of the controller, each with its metrics, and one process of each webhook command.
struct Processes {
    metrics: [Arc<Metrics>; 2],
    led: [bool; 2],
    webhooks: [WebhookMetrics; 2],
    slots: Arc<Mutex<Range<usize>>>,
}

impl Default for Processes {
    fn default() -> Self {
        let webhooks = WEBHOOKS.map(|(prefix, path, resource)| {
            let resources: &'static [&'static str] = if resource == "shoots" { &["shoots"] } else { &["deployments"] };
            WebhookMetrics::new(prefix, vec![path.to_owned()], resources)
        });
        Self { metrics: Default::default(), led: Default::default(), webhooks, slots: Arc::default() }
    }
}

impl Processes {
    /// Records the events of one minute through the runtime.
    async fn live(&mut self, minute: &Minute) {
        if minute.restarts {
            (self.metrics[0], self.led[0]) = Default::default();
        }
        for ((metrics, leads), led) in self.metrics.iter().zip(minute.leads).zip(&mut self.led) {
            if leads != *led {
                metrics.leads(leads, false);
                *led = leads;
            }
        }
        let metrics = &self.metrics[0];
        if !minute.leads[0] {
            return;
        }
        self.slots.lock().clone_from(&minute.slots);
        let slots = Arc::clone(&self.slots);
        metrics.report_slots(move || {
            let used = slots.lock().clone().map(|number| (format!("shoot--p--{number}"), 1));
            SlotNumbers { limit: SLOTS, used: used.collect() }
        });
        let failing_since = minute.lookup_fails.then(|| Timestamp::constant(3600, 0));
        let lookups = vec![("capi".to_owned(), failing_since)];
        metrics.images.set(&ImageNumbers { lookups, ..ImageNumbers::default() }, |_| Timestamp::constant(3600, 0));
        for cause in &minute.rolls {
            metrics.rolled(&roll(*cause), Timestamp::UNIX_EPOCH);
        }
        for number in 0..WORKERS {
            let fails = number < minute.failing;
            let mut pass = if fails && minute.unplanned { unplanned() } else { pass(number, fails) };
            if number == 0 {
                pass.plan.iter_mut().for_each(|plan| {
                    plan.waits.pools = vec![waiting(minute.zone_fails)];
                    plan.budget.held = if minute.is_held { vec![held_pool()] } else { Vec::new() };
                    plan.stops.pools =
                        if minute.is_stopped { vec![stopped_pool(Timestamp::UNIX_EPOCH)] } else { Vec::new() };
                });
            }
            if pass.plan.is_some() {
                metrics.versions.set(&format!("shoot--p--{number}"), std::slice::from_ref(&minute.versions));
            }
            for check in 0..CHECKS {
                // Durations whose sums are exact as floating-point numbers.
                let took = if check < minute.slow { Duration::from_secs(12) } else { Duration::from_millis(125) };
                let ended = Ended {
                    namespace: &format!("shoot--p--{number}"),
                    worker_type: "azure",
                    operation: Operation::Reconcile,
                    begins: false,
                    failing_since: fails.then(|| Timestamp::constant(3600, 0)),
                };
                record(metrics, ended, &pass, took);
            }
        }
        for (method, uri, code, times) in &minute.results {
            let answering = tower::service_fn(|_: Request<Body>| {
                let outcome = code.map(|code| Response::builder().status(code).body(()).unwrap());
                async move { outcome.ok_or_else(|| BoxError::from("connection refused")) }
            });
            let mut client = RequestCount(metrics.request_observer()).layer(answering);
            for _ in 0..*times {
                let request = Request::builder().method(*method).uri(*uri).body(Body::empty()).unwrap();
                drop(client.ready().await.unwrap().call(request).await);
            }
        }
    }
}

/// Records the reviews of one minute.
fn review(metrics: &WebhookMetrics, (_, path, resource): (&str, &str, &str), reviews: Reviews) {
    let request = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": "UPDATE", "resource": {"resource": resource}, "name": "s",
    }});
    let request = ReviewRequest::parse(&request.to_string().into()).unwrap();
    metrics.certificate_expires(reviews.expires);
    metrics.certificate_refused(reviews.refused);
    // Durations whose sums are exact as floating-point numbers.
    let (quick, slow) = (Duration::from_micros(15_625), Duration::from_secs(5));
    for number in 0..10 {
        let took = if number < reviews.slow { slow } else { quick };
        metrics.reviewed(path, &request, &Verdict::ALLOWED, took);
    }
    for _ in 0..reviews.failed {
        metrics.reviewed(path, &request, &Verdict::Denied(Denial::internal(String::new())), quick);
    }
}

fn roll(cause: RollCause) -> Roll {
    let [pool, deployment, from, to] = ["a", "a-z1", "old", "new"].map(str::to_owned);
    Roll { pool, deployment, from, to, inputs: Vec::new(), cause, is_in_place: false, waited_since: None }
}

/// A pool with zones that wait for another one.
fn waiting(zone_fails: bool) -> WaitingPool {
    let pool = waiting_pool(Timestamp::UNIX_EPOCH);
    match zone_fails {
        true => WaitingPool { cause: WaitCause::Failing { zones: vec![1], failure: None }, ..pool },
        false => pool,
    }
}

/// The result of reconciling a Worker with two pools.
fn pass(number: usize, fails: bool) -> Reconciled {
    let deployment = |pool: &str| DeploymentProgress {
        pool: pool.to_owned(),
        deployment: format!("shoot--p--{number}-{pool}-z1"),
        phase: if fails { Phase::Failed(Vec::new()) } else { Phase::Ready },
        is_healthy: !fails,
        rolls: false,
        desired: 3,
        present: 3,
        updated: 3,
        available: 3,
        unavailable: 0,
        preserved: 0,
        unselected: 0,
        selected: 0,
        untaken_since: None,
    };
    let failure = Failure { message: String::new(), codes: BTreeSet::from([ErrorCode::InfraQuotaExceeded]) };
    Reconciled {
        plan: Some(Plan { pools: Vec::new(), provider_status: Value::Null, ..Plan::default() }),
        progress: Some(Progress {
            namespace: format!("shoot--p--{number}"),
            deployments: vec![deployment("a"), deployment("b")],
            hibernated: false,
        }),
        steps: vec![("apply", Duration::from_millis(125))],
        ..Reconciled::of(if fails { ReconcileOutcome::Failed(failure) } else { ReconcileOutcome::Succeeded })
    }
}

/// The result of reconciling a Worker whose Cluster can't be read.
fn unplanned() -> Reconciled {
    Reconciled::of(ReconcileOutcome::Failed(Failure::new("the Cluster can't be read")))
}

/// The samples of each series, one for each minute.
type Series = BTreeMap<String, Vec<Option<f64>>>;

/// The series that Prometheus records if the incident happens after an hour.
async fn recorded(incident: Option<&Incident>) -> Series {
    let (mut processes, mut series) = (Processes::default(), Series::new());
    for at in 0..MINUTES {
        let mut minute = Minute::healthy(at);
        if let (Some(incident), Some(since)) = (incident, at.checked_sub(LAST_HEALTHY + 1)) {
            (incident.changes)(since, &mut minute);
        }
        for (position, (metrics, reviews)) in processes.webhooks.iter().zip(minute.webhooks).enumerate() {
            if reviews.pod {
                review(metrics, WEBHOOKS[position], reviews);
                scrape(&metrics.text(), ["v", "s"][position], at, &mut series);
            }
        }
        if !minute.pods {
            continue;
        }
        processes.live(&minute).await;
        for (pod, metrics) in ["a", "b"].into_iter().zip(&processes.metrics) {
            scrape(&metrics.text(), pod, at, &mut series);
        }
    }
    series
}

/// Adds the samples of an exposition. Prometheus sets the label `pod` from its target.
fn scrape(exposition: &str, pod: &str, at: usize, series: &mut Series) {
    // The version of the program must not change the series.
    let is_news = |line: &&str| !line.starts_with('#') && !line.contains("_build_info{");
    for line in exposition.lines().filter(is_news) {
        let (sample, value) = line.rsplit_once(' ').unwrap();
        let name = match sample.split_once('{') {
            Some((name, labels)) => format!("{name}{{pod=\"{pod}\",{labels}"),
            None => format!("{sample}{{pod=\"{pod}\"}}"),
        };
        series.entry(name).or_insert_with(|| vec![None; MINUTES])[at] = Some(value.parse().unwrap());
    }
}

/// Formats samples in promtool's notation: `1+2x3` means 1, 3, 5, 7, and `_x3` means three missing samples.
fn notation(samples: &[Option<f64>]) -> String {
    let mut words = Vec::new();
    let mut rest = samples;
    while let Some(first) = rest.first() {
        let Some(first) = *first else {
            let missing = rest.iter().take_while(|sample| sample.is_none()).count();
            words.push(format!("_x{missing}"));
            rest = &rest[missing..];
            continue;
        };
        let step = rest.get(1).copied().flatten().map_or(0.0, |second| second - first);
        let is_next = |pair: &&[Option<f64>]| matches!(**pair, [Some(one), Some(next)] if next - one == step);
        let steps = rest.windows(2).take_while(is_next).count();
        words.push(match step {
            // YAML reads a plain `0x180` as a number, and promtool would use it as one sample of 384.
            0.0 if first == 0.0 => format!("0+0x{steps}"),
            0.0 => format!("{first}x{steps}"),
            step => format!("{first}{step:+}x{steps}"),
        });
        rest = &rest[steps + 1..];
    }
    words.join(" ")
}

fn notations(series: &Series) -> BTreeMap<&str, String> {
    series.iter().map(|(name, samples)| (name.as_str(), notation(samples))).collect()
}

#[tokio::test]
async fn the_series_of_incidents_are_those_of_this_program() {
    let healthy = recorded(None).await;
    let healthy = notations(&healthy);
    let mut text = "\
# What Prometheus records of the program's own metrics, a sample each minute, in promtool's notation. An incident changes
# some of the series of a healthy seed after an hour (null: they are not there) and fires its alerts.
# Made by test/charts/incidents.rs. To make it again: UPDATE_GOLDEN=1 cargo test -p gardener-extension-worker-controllers incidents
healthy:
"
    .to_owned();
    for (name, samples) in &healthy {
        writeln!(text, "  {name}: {samples}").unwrap();
    }
    text.push_str("incidents:\n");
    for incident in &INCIDENTS {
        let Incident { what, fires, after, .. } = incident;
        writeln!(text, "  - what: {what}\n    fires: {fires}\n    after: {after}\n    series:").unwrap();
        let series = recorded(Some(incident)).await;
        let series = notations(&series);
        for (name, samples) in series.iter().filter(|(name, samples)| healthy.get(*name) != Some(samples)) {
            writeln!(text, "      {name}: {samples}").unwrap();
        }
        for name in healthy.keys().filter(|name| !series.contains_key(*name)) {
            writeln!(text, "      {name}: null").unwrap();
        }
    }

    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(FILE);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(file, text).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(file).unwrap();
    let differing = kept.lines().zip(text.lines()).find(|(kept, now)| kept != now);
    assert!(
        kept == text,
        "{FILE} is not what the program measures, first at {differing:?}\n\
         Make it again with: UPDATE_GOLDEN=1 cargo test -p gardener-extension-worker-controllers incidents"
    );
}

#[test]
fn samples_in_promtools_notation() {
    for (samples, expected) in [
        (vec![Some(1.0)], "1x0"),
        (vec![Some(1.0), Some(1.0), Some(1.0)], "1x2"),
        (vec![Some(1.0), Some(3.0), Some(5.0), None, None, Some(0.5)], "1+2x2 _x2 0.5x0"),
        (vec![None, Some(2.0), Some(1.0)], "_x1 2-1x1"),
        (vec![Some(0.0), Some(0.0), Some(4.0), Some(4.0)], "0+0x1 4x1"),
    ] {
        assert_eq!(notation(&samples), expected);
    }
}

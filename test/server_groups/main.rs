//! Server groups of OpenStack, over real HTTP against a stand-in for Keystone and Nova.
//! `cargo test --test server_groups`.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test")]

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use anyhow::{anyhow, ensure};
use gardener_extension_worker::api::gardener::ErrorCode;
use gardener_extension_worker::api::gotext::yaml;
use gardener_extension_worker::cli::input::{WorkerInput, workers_of_documents};
use gardener_extension_worker::cloud::WriteAccess;
use gardener_extension_worker::cloud::dependency::{CleanUp, Cloud, DependencyRequest, DependencyState, UsedByClasses};
use gardener_extension_worker::cloud::openstack::OpenStack;
use gardener_extension_worker::provider::openstack::server_groups::needs;
use gardener_extension_worker::worker::machines::machine_objects::MachineObjects;
use gardener_extension_worker::worker::request::decode;
use serde_json::{Value, json};
use test_support::cluster::eventually;
use test_support::openstack::{Fault, OpenStack as StandIn, Project, made};

/// Time limit for operations that usually take moments.
const SOON: Duration = Duration::from_secs(20);
/// Prefix of the names of the shoot's groups.
const UID: &str = "6f1a2a0e-4c1f-4be5";

/// A project that no other test uses.
fn stand_in() -> Project {
    static OPENSTACK: LazyLock<StandIn> = LazyLock::new(|| StandIn::start().unwrap());
    static NUMBER: AtomicU32 = AtomicU32::new(1);
    OPENSTACK.project(&format!("project-{}", NUMBER.fetch_add(1, Ordering::Relaxed)))
}

/// A process of the extension, and the number of its callbacks.
struct Process {
    cloud: OpenStack,
    rings: Arc<Mutex<u32>>,
}

impl Process {
    fn new(access: WriteAccess) -> Self {
        let rings = Arc::new(Mutex::new(0));
        let ring = Arc::clone(&rings);
        let cloud = OpenStack::new(Arc::new(move || access), Arc::new(move |_| *ring.lock().unwrap() += 1));
        Self { cloud, rings }
    }

    async fn ensure(&self, worker: &WorkerInput) -> DependencyState {
        let context = decode::context_of(&worker.worker, worker.cluster.as_ref(), &worker.secrets).unwrap();
        let live = MachineObjects::default();
        let request = DependencyRequest { context: &context, live: &live, begins: true, has_moved: false };
        self.cloud.ensure(request).await.unwrap()
    }

    async fn clean_up(&self, worker: &WorkerInput, used: &[&str]) -> CleanUp {
        let used = used.iter().map(|id| (*id).to_owned()).collect();
        self.clean_up_with(worker, UsedByClasses::Read(used)).await
    }

    async fn clean_up_with(&self, worker: &WorkerInput, used: UsedByClasses) -> CleanUp {
        let context = decode::context_of(&worker.worker, worker.cluster.as_ref(), &worker.secrets).unwrap();
        self.cloud.clean_up(&context, used).await.unwrap()
    }
}

/// The Worker of `example/openstack.yaml`, with a policy for pool `search` and these records. Its cloud is the
/// stand-in.
fn worker(stand_in: &Project, policy: &str, records: Value) -> WorkerInput {
    worker_with(stand_in, policy, records, json!({}))
}

fn worker_with(stand_in: &Project, policy: &str, records: Value, credentials: Value) -> WorkerInput {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("example/openstack.yaml");
    let mut documents = yaml::documents(&std::fs::read_to_string(&path).unwrap()).unwrap();
    for document in &mut documents {
        if document["kind"] == "Worker" {
            document["metadata"]["uid"] = json!("uid of the Worker");
            document["spec"]["pools"][1]["providerConfig"]["serverGroup"] = json!({ "policy": policy });
            document["status"]["providerStatus"] = json!({
                "apiVersion": "openstack.provider.extensions.gardener.cloud/v1alpha1",
                "kind": "WorkerStatus",
                "serverGroupDependencies": records,
            });
        }
        if document["metadata"]["name"] == "cloudprovider" {
            document["stringData"]["authURL"] = json!(stand_in.auth_url());
            document["stringData"]["password"] = json!("top-secret");
            for (key, value) in credentials.as_object().unwrap() {
                document["stringData"][key] = value.clone();
            }
        }
    }
    workers_of_documents(&path, documents).unwrap().remove(0)
}

fn records(state: &DependencyState) -> Value {
    state.dependencies.as_ref().unwrap().records.clone()
}

#[tokio::test]
async fn a_group_is_made_once_whenever_the_process_ends() {
    let stand_in = stand_in();
    let none = worker(&stand_in, "soft-anti-affinity", json!([]));
    let first = Process::new(WriteAccess::Allowed).ensure(&none).await;
    assert!(first.records_changed && first.has_something);
    assert_eq!(stand_in.calls(), ["authenticate", "list", "create 2.15"]);
    let record = &records(&first)[0];
    assert_eq!((&record["poolName"], &record["id"]), (&json!("search"), &json!(made(1))));
    assert!(record["name"].as_str().unwrap().starts_with(UID), "{record}");
    // The process ended before the record was written. The next one finds the existing group.
    let second = Process::new(WriteAccess::Allowed).ensure(&none).await;
    assert_eq!((records(&second), stand_in.names().len()), (records(&first), 1));
    // With the record, only this group is read, and the result is valid until an operation begins.
    stand_in.calls();
    let third =
        Process::new(WriteAccess::Allowed).ensure(&worker(&stand_in, "soft-anti-affinity", records(&first))).await;
    assert!(!third.records_changed);
    assert_eq!(stand_in.calls(), ["authenticate".to_owned(), format!("get {}", made(1))]);
}

#[tokio::test]
async fn new_policy_replaces_group_after_its_last_class() {
    let stand_in = stand_in();
    let process = Process::new(WriteAccess::Allowed);
    let before = records(&process.ensure(&worker(&stand_in, "affinity", json!([]))).await);
    let foreign = "shoot--garden--forge-eu-web-x7k2p";
    for name in [foreign, "shoot--garden--forge-search-x7k2p", "unrelated"] {
        stand_in.set(|state| state.groups.push(json!({"id": name, "name": name, "policies": ["made-up"]})));
    }
    stand_in.set(|state| state.page = 2);
    let changed = process.ensure(&worker(&stand_in, "anti-affinity", before.clone())).await;
    assert_eq!(records(&changed)[0]["id"], made(2));
    let now = worker(&stand_in, "anti-affinity", records(&changed));
    let before_looking = stand_in.names();
    assert!(matches!(process.clean_up_with(&now, UsedByClasses::Seen(Vec::new())).await, CleanUp::Unneeded));
    assert_eq!(stand_in.names(), before_looking, "nobody has said what classes refer to");
    assert!(matches!(process.clean_up(&now, &[&made(1)]).await, CleanUp::Done(None)));
    assert!(stand_in.names().iter().any(|name| before[0]["name"] == **name), "a class refers to it");
    assert!(matches!(process.clean_up(&now, &[]).await, CleanUp::Done(None)));
    let left = stand_in.names();
    assert_eq!(left[..2], [foreign, "unrelated"]);
    assert_eq!(left.len(), 3);
    stand_in.calls();
    assert!(matches!(process.clean_up_with(&now, UsedByClasses::Seen(Vec::new())).await, CleanUp::Done(None)));
    assert_eq!(
        stand_in.calls(),
        ["authenticate", "list", "list offset=2", "list offset=3"],
        "two pages, and their end"
    );
    // Without a policy, the group is no longer needed, and its record is removed with it.
    let deleted = worker(&stand_in, "", records(&changed));
    let CleanUp::Done(Some(patch)) = process.clean_up(&deleted, &[]).await else { panic!("the record has to go") };
    assert_eq!((patch, stand_in.names().len()), (json!({"serverGroupDependencies": null}), 2));
}

#[tokio::test]
async fn worker_resources_are_deleted_with_it() {
    let stand_in = stand_in();
    let process = Process::new(WriteAccess::Allowed);
    let made = worker(&stand_in, "affinity", json!([]));
    process.ensure(&made).await;
    // Created, but not recorded.
    let removed = process.cloud.remove(&made.worker, made.cluster.as_ref(), &made.secrets).await.unwrap();
    assert!(matches!(removed, CleanUp::Done(None)), "{removed:?}");
    assert_eq!(stand_in.names(), Vec::<String>::new());
    let record = json!([{"poolName": "search", "id": "gone", "name": "x"}]);
    let recorded = worker(&stand_in, "affinity", record);
    let removed = process.cloud.remove(&recorded.worker, recorded.cluster.as_ref(), &recorded.secrets).await.unwrap();
    assert!(matches!(removed, CleanUp::Done(Some(_))), "{removed:?}");
}

#[tokio::test]
async fn unrecorded_group_is_deleted_with_the_worker() {
    let stand_in = stand_in();
    let process = Process::new(WriteAccess::Allowed);
    process.ensure(&worker(&stand_in, "affinity", json!([]))).await;
    let mut taken_back = worker(&stand_in, "", json!([]));
    for selectable in [json!([]), json!(["affinity"])] {
        stand_in.calls();
        let cluster = taken_back.cluster.as_mut().unwrap();
        let config = &mut Arc::make_mut(cluster.spec.cloud_profile.as_mut().unwrap()).spec.provider_config;
        let mut document: Value = serde_json::from_str(config.as_ref().unwrap().get()).unwrap();
        document["serverGroupPolicies"] = selectable.clone();
        *config = Some(serde_json::value::to_raw_value(&document).unwrap());
        let cluster = taken_back.cluster.as_ref();
        let removed = process.cloud.remove(&taken_back.worker, cluster, &taken_back.secrets).await.unwrap();
        assert!(matches!(removed, CleanUp::Done(None)), "{removed:?}");
        assert_eq!(stand_in.calls().is_empty(), selectable == json!([]), "who offers no policies has no groups");
    }
    assert_eq!(stand_in.names(), Vec::<String>::new());
}

#[tokio::test]
async fn failures_have_the_code_of_their_cause_and_keep_the_record() {
    let record = json!([{"poolName": "search", "id": "old", "name": "old"}]);
    for (call, status, body, words, code) in [
        (
            "authenticate",
            401,
            r#"{"error":{"code":401,"message":"requires authentication"}}"#,
            "asking Keystone",
            Some(ErrorCode::InfraUnauthenticated),
        ),
        (
            "get",
            401,
            r#"{"error":{"code":401,"message":"expired"}}"#,
            "status 401: expired",
            Some(ErrorCode::InfraUnauthenticated),
        ),
        ("get", 500, "boom", "status 500: boom", Some(ErrorCode::RetryableInfraDependencies)),
        ("get", 200, "<html>", "unreadable answer", None),
        (
            "create",
            403,
            r#"{"forbidden":{"code":403,"message":"Quota exceeded, too many server groups."}}"#,
            "too many server groups",
            Some(ErrorCode::InfraQuotaExceeded),
        ),
        (
            "create",
            403,
            r#"{"forbidden":{"code":403,"message":"no"}}"#,
            "status 403: no",
            Some(ErrorCode::InfraUnauthorized),
        ),
        ("create", 409, r#"{"conflictingRequest":{"code":409,"message":"busy"}}"#, "busy", None),
        ("create", 429, "slow down", "status 429", Some(ErrorCode::InfraRateLimitsExceeded)),
        ("create", 400, r#"{"badRequest":{"code":400,"message":"Invalid input"}}"#, "Invalid input", None),
    ] {
        let stand_in = stand_in();
        stand_in.set(|state| state.fails = vec![Fault::of(call, status, body).times(2)]);
        let process = Process::new(WriteAccess::Allowed);
        let state = process.ensure(&worker(&stand_in, "affinity", record.clone())).await;
        let failure = &state.dependencies.as_ref().unwrap().failures["search"];
        assert!(failure.message.contains(words), "{call} {status}: {failure}");
        assert!(!failure.message.contains("top-secret"));
        assert_eq!((failure.code, records(&state)), (code, record.clone()), "{call} {status}");
        assert!(state.check_again.is_some() && !state.records_changed);
        stand_in.set(|state| state.fails.clear());
        let state = process.ensure(&worker(&stand_in, "affinity", record.clone())).await;
        assert_eq!(records(&state)[0]["id"], made(1), "{call} {status}: it is tried again");
    }
}

#[tokio::test]
async fn a_deletion_that_fails_keeps_the_record_and_is_tried_again() {
    let stand_in = stand_in();
    let process = Process::new(WriteAccess::Allowed);
    let made = records(&process.ensure(&worker(&stand_in, "affinity", json!([]))).await);
    stand_in.set(|state| state.fails = vec![Fault::of("delete", 409, "in use").times(1)]);
    let deleted = worker(&stand_in, "", made);
    let CleanUp::Failed(failure, _) = process.clean_up(&deleted, &[]).await else { panic!("the deletion fails") };
    assert!(failure.message.contains("in use"), "{failure:?}");
    assert_eq!(stand_in.names().len(), 1);
    eventually(SOON, "the next try", async || match process.clean_up(&deleted, &[]).await {
        CleanUp::Done(Some(_)) => Ok(()),
        other => Err(anyhow!("{other:?}")),
    })
    .await
    .unwrap();
    assert_eq!(stand_in.names(), Vec::<String>::new());
}

#[tokio::test]
async fn proxy_page_deletes_nothing() {
    let stand_in = stand_in();
    let process = Process::new(WriteAccess::Allowed);
    let made = records(&process.ensure(&worker(&stand_in, "affinity", json!([]))).await);
    stand_in.set(|state| state.fails = vec![Fault::of("delete", 200, "<html>please log in</html>").times(1)]);
    let CleanUp::Failed(failure, _) = process.clean_up(&worker(&stand_in, "", made), &[]).await else {
        panic!("nobody would know of it any more")
    };
    assert!(failure.message.contains("deleting a server group"), "{failure:?}");
    assert!(!failure.message.contains("log in"), "what it says may be anything: {failure:?}");
}

#[tokio::test]
async fn a_404_of_a_proxy_is_not_believed() {
    let stand_in = stand_in();
    let made = records(&Process::new(WriteAccess::Allowed).ensure(&worker(&stand_in, "affinity", json!([]))).await);
    let page = |call| Fault::of(call, 404, "<html>no such host</html>").times(1);
    stand_in.set(|state| state.fails = vec![page("get"), page("delete")]);
    let process = Process::new(WriteAccess::Allowed);
    let state = process.ensure(&worker(&stand_in, "affinity", made.clone())).await;
    let failure = &state.dependencies.as_ref().unwrap().failures["search"];
    assert!(failure.message.contains("reading its server group"), "{failure:?}");
    let CleanUp::Failed(failure, _) = process.clean_up(&worker(&stand_in, "", made), &[]).await else {
        panic!("nobody would know of it any more")
    };
    assert!(failure.message.contains("deleting a server group"), "{failure:?}");
    assert_eq!(stand_in.names().len(), 1);
}

#[tokio::test]
async fn an_expired_token_is_renewed() {
    let stand_in = stand_in();
    stand_in.set(|state| state.fails = vec![Fault::of("list", 401, "").times(1)]);
    let state = Process::new(WriteAccess::Allowed).ensure(&worker(&stand_in, "affinity", json!([]))).await;
    assert_eq!(records(&state)[0]["id"], made(1));
    assert_eq!(stand_in.calls(), ["authenticate", "list", "authenticate", "list", "create"]);
}

#[tokio::test]
async fn a_slow_cloud_holds_nobody_up() {
    let stand_in = stand_in();
    stand_in.set(|state| state.delay = Duration::from_millis(600));
    let process = Process::new(WriteAccess::Allowed);
    let requested = worker(&stand_in, "affinity", json!([]));
    let begun = Instant::now();
    let state = process.ensure(&requested).await;
    assert!(begun.elapsed() < Duration::from_millis(1500));
    assert!(state.dependencies.unwrap().waiting.contains_key("search"));
    let called_back = async || {
        ensure!(*process.rings.lock().unwrap() > 0);
        Ok(())
    };
    eventually(SOON, "somebody is called back", called_back).await.unwrap();
    assert_eq!(stand_in.names().len(), 1);
}

#[tokio::test]
async fn who_does_not_lead_and_a_dry_run_change_nothing() {
    let stand_in = stand_in();
    let requested = worker(&stand_in, "affinity", json!([]));
    let denied = Process::new(WriteAccess::Denied).ensure(&requested).await;
    assert!(denied.dependencies.unwrap().failures["search"].message.contains("lead"));
    let pretended = Process::new(WriteAccess::DryRun).ensure(&requested).await;
    assert!(!pretended.records_changed && records(&pretended)[0]["id"].as_str().unwrap().starts_with(UID));
    assert_eq!(stand_in.names(), Vec::<String>::new());
}

#[tokio::test]
async fn only_keystone_gets_the_credentials() {
    let none = || json!({"password": ""});
    let with = |keys: &[(&str, &str)]| {
        let mut credentials = none();
        keys.iter().for_each(|(key, value)| credentials[*key] = json!(value));
        credentials
    };
    let password = json!({
        "identity": {"methods": ["password"], "password":
            {"user": {"name": "example", "domain": {"name": "example"}, "password": "top-secret"}}},
        "scope": {"project": {"name": "example", "domain": {"name": "example"}}},
    });
    let application = |credential: Value| json!({"identity": {"methods": ["application_credential"], "application_credential": credential}});
    let secret = ("applicationCredentialSecret", "top-secret");
    for (credentials, reported) in [
        (json!({}), password),
        (with(&[secret, ("applicationCredentialID", "i")]), application(json!({"id": "i", "secret": "top-secret"}))),
        (
            with(&[secret, ("applicationCredentialName", "n")]),
            application(
                json!({"name": "n", "secret": "top-secret", "user": {"name": "example", "domain": {"name": "example"}}}),
            ),
        ),
    ] {
        let stand_in = stand_in();
        let requested = worker_with(&stand_in, "affinity", json!([]), credentials);
        Process::new(WriteAccess::Allowed).ensure(&requested).await;
        assert_eq!(stand_in.set(|state| state.identity["auth"].clone()), reported);
        let context = decode::context_of(&requested.worker, requested.cluster.as_ref(), &requested.secrets).unwrap();
        assert!(!format!("{:?}", needs(&context).unwrap()).contains("top-secret"));
    }
}

//! Writes Kubernetes events about any object.
//!
//! The name of an event includes the version of its object. A process that crashes before it writes the status, and
//! repeats the reconcile, does not publish the event twice.

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, PostParams};
use kube::{Client, Resource};
use sha2::{Digest as _, Sha256};
use tracing::warn;

use crate::cluster::identity::Identity;
use crate::cluster::too_large::is_too_large;
use crate::process::clock::Clock;
use crate::process::failure_reason::reason;
use wire::api::bounded_text::shortened;

const CONTROLLER: &str = "gardener-extension-worker";
/// Namespace for events about cluster-scoped objects.
const DEFAULT_NAMESPACE: &str = "default";
/// Longest notes in bytes: what fits into a line of `kubectl describe`, and less for when even that is rejected. The API
/// server accepts 1024.
pub const MAX_NOTE_BYTES: [usize; 2] = [200, 100];
/// Maximum length of an object name.
pub const MAX_NAME_LENGTH: usize = 253;

/// Content of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventNote {
    /// Whether a user has to act.
    pub is_warning: bool,
    /// Machine-readable reason, in CamelCase.
    pub reason: &'static str,
    /// Machine-readable action, in CamelCase.
    pub action: &'static str,
    /// Human-readable description.
    pub note: String,
}

pub struct EventRecorder {
    client: Client,
    clock: Clock,
}

impl EventRecorder {
    pub fn new(client: Client, clock: Clock) -> Self {
        Self { client, clock }
    }

    /// Publishes an event about an object version. Failures are logged and not retried.
    pub async fn publish<K: Resource<DynamicType = ()>>(&self, object: &Identity, note: EventNote) {
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace(object));
        for longest in MAX_NOTE_BYTES {
            let event = event::<K>(object, &note, longest, self.clock.now());
            match api.create(&PostParams::default(), &event).await {
                Ok(_) => return,
                // An earlier attempt published it before the status was written.
                Err(kube::Error::Api(status)) if status.is_already_exists() => return,
                Err(error) if is_too_large(&error) => warn!(error = reason(&error), longest, "event is too large"),
                Err(error) => {
                    warn!(error = reason(&error), "event can't be written");
                    return;
                }
            }
        }
    }
}

fn namespace(object: &Identity) -> &str {
    if object.namespace.is_empty() { DEFAULT_NAMESPACE } else { &object.namespace }
}

/// Builds the event, with a note of at most `longest` bytes.
pub fn event<K: Resource<DynamicType = ()>>(
    object: &Identity,
    note: &EventNote,
    longest: usize,
    now: Timestamp,
) -> Event {
    let EventNote { is_warning, reason, action, note } = note;
    let note = shortened(note, longest);
    let mut digest = Sha256::new();
    for part in [&object.uid, &object.version.to_string(), *reason, &note] {
        digest.update(part);
        digest.update([0]);
    }
    let suffix = format!(".{}", &hex::encode(digest.finalize())[..16]);
    // Names of Kubernetes objects are ASCII.
    let name: String = object.name.chars().take(MAX_NAME_LENGTH - suffix.len()).collect();
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{}{suffix}", name.trim_end_matches(['.', '-']))),
            namespace: Some(namespace(object).to_owned()),
            ..ObjectMeta::default()
        },
        event_time: Some(MicroTime(now)),
        type_: Some(if *is_warning { "Warning" } else { "Normal" }.to_owned()),
        reason: Some((*reason).to_owned()),
        action: Some((*action).to_owned()),
        note: Some(note),
        regarding: Some(reference::<K>(object)),
        reporting_controller: Some(CONTROLLER.to_owned()),
        reporting_instance: Some(CONTROLLER.to_owned()),
        ..Event::default()
    }
}

fn reference<K: Resource<DynamicType = ()>>(object: &Identity) -> ObjectReference {
    ObjectReference {
        api_version: Some(K::api_version(&()).into_owned()),
        kind: Some(K::kind(&()).into_owned()),
        namespace: Some(object.namespace.clone()).filter(|namespace| !namespace.is_empty()),
        name: Some(object.name.clone()),
        uid: Some(object.uid.clone()),
        resource_version: Some(object.version.to_string()),
        field_path: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::cluster::test_support::{ApiServer, document, logged, refusal};
    use wire::api::gardener::{Cluster, Worker};

    fn worker() -> Identity {
        Identity { namespace: "ns".to_owned(), name: "w".to_owned(), uid: "u".to_owned(), version: 7 }
    }

    fn note(note: &str) -> EventNote {
        EventNote { is_warning: true, reason: "ImageNotFound", action: "Reconcile", note: note.to_owned() }
    }

    #[test]
    fn event_references_its_object() {
        let event = event::<Worker>(&worker(), &note("no image"), 100, Timestamp::UNIX_EPOCH);
        let name = event.metadata.name.clone().unwrap();
        assert!(name.starts_with("w."), "{name}");
        let regarding = json!({"apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Worker", "namespace": "ns", "name": "w",
            "uid": "u", "resourceVersion": "7"});
        let expected = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": name, "namespace": "ns"},
            "eventTime": "1970-01-01T00:00:00.000000Z", "type": "Warning", "reason": "ImageNotFound", "action": "Reconcile",
            "note": "no image", "regarding": regarding, "reportingController": "gardener-extension-worker",
            "reportingInstance": "gardener-extension-worker"});
        assert_eq!(serde_json::to_value(event).unwrap(), expected);
    }

    #[test]
    fn events_of_cluster_scoped_objects_use_default_namespace() {
        let cluster = Identity { namespace: String::new(), ..worker() };
        let event = event::<Cluster>(&cluster, &note("no image"), 100, Timestamp::UNIX_EPOCH);
        assert_eq!(event.metadata.namespace.as_deref(), Some("default"));
        assert_eq!(event.regarding.unwrap().namespace, None);
    }

    #[test]
    fn event_name_truncates_object_name() {
        let name_of = |name: String, version| {
            let object = Identity { name, version, ..worker() };
            event::<Worker>(&object, &note("no image"), 100, Timestamp::UNIX_EPOCH).metadata.name.unwrap()
        };
        let short = "w".repeat(200);
        let long = "w".repeat(MAX_NAME_LENGTH);
        assert!(name_of(short.clone(), 7).starts_with(&format!("{short}.")));
        let name = name_of(long, 7);
        assert!(name.len() == MAX_NAME_LENGTH && name.starts_with(&short), "{name}");
        assert_eq!(name_of(short.clone(), 7), name_of(short.clone(), 7), "of the same version it is the same event");
        assert_ne!(name_of(short.clone(), 7), name_of(short, 8));
    }

    /// Events sent to an API server that rejects this many requests, and the log.
    async fn published(refused: usize, code: u16, reason: &'static str) -> (Vec<Value>, String) {
        let left = std::sync::Mutex::new(refused);
        let server = ApiServer::new(move |requested| {
            let mut left = left.lock().unwrap();
            match left.checked_sub(1) {
                Some(fewer) => {
                    *left = fewer;
                    refusal(code, reason)
                }
                None => document(&requested.body),
            }
        });
        let recorder = EventRecorder::new(server.client.clone(), Clock::default());
        let ((), log) = logged(recorder.publish::<Worker>(&worker(), note(&"n".repeat(2000)))).await;
        let requested = server.requested();
        assert!(
            requested.iter().all(|requested| requested.line == "POST /apis/events.k8s.io/v1/namespaces/ns/events"),
            "{requested:?}"
        );
        (requested.into_iter().map(|requested| requested.body).collect(), log)
    }

    #[tokio::test]
    async fn shortens_event_that_is_too_large() {
        for (refused, code, reason, requests, logged) in [
            (0, 0, "", 1, ""),
            (1, 413, "RequestEntityTooLarge", 2, "event is too large"),
            (2, 413, "RequestEntityTooLarge", 2, "event is too large"),
            (1, 403, "Forbidden", 1, "event can't be written"),
            // A crashed process has already published it.
            (1, 409, "AlreadyExists", 1, ""),
        ] {
            let (events, log) = published(refused, code, reason).await;
            let what = format!("{refused} times {code}: {log}");
            assert_eq!(events.len(), requests, "{what}");
            assert!(log.contains(logged) && log.is_empty() == logged.is_empty(), "{what}");
            for (event, longest) in events.iter().zip(MAX_NOTE_BYTES) {
                let length = event["note"].as_str().unwrap().len();
                assert!((longest / 2..=longest).contains(&length), "{what}: {length}");
            }
        }
    }
}

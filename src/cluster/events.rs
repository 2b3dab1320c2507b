//! Events: how they are written, whatever they are about.
//!
//! An event has its name from the version of the object that it was found with, so that a process that dies before it has
//! written the status, and finds the same again, does not tell it twice.

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, PostParams};
use kube::{Client, Resource};
use sha2::{Digest as _, Sha256};
use tracing::warn;

use crate::api::bounded_text::shortened;
use crate::cluster::identity::Identity;
use crate::cluster::too_large::is_too_large;
use crate::process::clock::Clock;
use crate::process::failure_reason::reason;

/// Who writes the events.
const CONTROLLER: &str = "gardener-extension-worker";
/// Where events about objects without a namespace are.
const OF_NO_NAMESPACE: &str = "default";
/// The API server takes no longer note; what refuses even that gets a short one.
pub(crate) const LONGEST_NOTES: [usize; 2] = [1024, 256];
/// The longest name of an object.
pub(crate) const LONGEST_NAME: usize = 253;

/// What an event says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventNote {
    /// Whether somebody has to do something.
    pub(crate) is_warning: bool,
    /// Why, in one word.
    pub(crate) reason: &'static str,
    /// What was done, in one word.
    pub(crate) action: &'static str,
    /// What happened, for people.
    pub(crate) note: String,
}

/// Writes events.
pub(crate) struct EventRecorder {
    client: Client,
    clock: Clock,
}

impl EventRecorder {
    /// One that writes with this client, and dates by this clock.
    pub(crate) fn new(client: Client, clock: Clock) -> Self {
        Self { client, clock }
    }

    /// Writes an event about an object in that version. What can't be written is logged and given up.
    pub(crate) async fn publish<K: Resource<DynamicType = ()>>(&self, object: &Identity, note: EventNote) {
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace(object));
        for longest in LONGEST_NOTES {
            let event = event::<K>(object, &note, longest, self.clock.now());
            match api.create(&PostParams::default(), &event).await {
                Ok(_) => return,
                // It was published before the status could be written.
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
    if object.namespace.is_empty() { OF_NO_NAMESPACE } else { &object.namespace }
}

/// The event, with a note of at most so many bytes.
pub(crate) fn event<K: Resource<DynamicType = ()>>(
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
    // A name of a Kubernetes object has only ASCII characters.
    let name: String = object.name.chars().take(LONGEST_NAME - suffix.len()).collect();
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

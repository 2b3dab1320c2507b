//! Derives Workers from their Shoots, as gardenlet would write them. A Shoot and its CloudProfile are enough, because
//! state that only the cloud has is assumed. The assumptions are the same before and after a change, so they alone
//! never change a class name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::cloud_profile::SharedCloudProfile;
use super::difference::{ChangedObject, apply, difference};
use super::finding::FindingKind;
use super::inputs::{Document, ExistingWorker, Inputs, ShootSource};
use super::rendered_pools::Failure;
use decisions::provider::Providers;
use decisions::worker::plan::class_images::ImagePolicy;
use profiles::shoot::{Garden, Reservation, Surroundings, is_stored, stored_shoot, worker};
use wire::api::gardener::Worker;
use wire::api::secret::SecretContent;

impl Inputs {
    /// The inputs of a Shoot, either a manifest or a stored one. The Worker is derived during the comparison.
    #[must_use]
    pub fn of_shoot(
        shoot: Value,
        profile: Arc<SharedCloudProfile>,
        source: Arc<ShootSource>,
        providers: Providers,
    ) -> Self {
        let named = json!({
            "kind": "Worker", "spec": {"type": shoot["spec"]["provider"]["type"]},
            "metadata": {"name": shoot["metadata"]["name"], "namespace": shoot["metadata"]["namespace"]},
        });
        Self {
            worker: Arc::new(Document::new(named)),
            shoot: Some(Arc::new(Document::new(shoot))),
            cloud_profile: Some(profile),
            secrets: Arc::default(),
            providers,
            image_policy: ImagePolicy::default(),
            made_from_shoot: Some(source),
        }
    }
}

/// Derives the Workers of both sides. A side whose Worker was given stays as it is.
///
/// # Errors
/// If no Worker can be derived from a Shoot; the error has the kind of finding that reports it.
pub(super) fn both_made(
    old: Option<&Inputs>,
    new: Option<&Inputs>,
) -> Result<(Option<Inputs>, Option<Inputs>), (FindingKind, Failure)> {
    let of = |inputs: &Inputs, before: Option<&Inputs>| match &inputs.made_from_shoot {
        Some(source) => source.stored(inputs, before).and_then(|stored| source.made(&stored, before)),
        None => Ok(inputs.clone()),
    };
    let old = old.map(|old| of(old, None)).transpose();
    let old = old.map_err(|failure| (FindingKind::CannotBeEvaluated, failure))?;
    let new = new.map(|new| of(new, old.as_ref())).transpose();
    Ok((old, new.map_err(|failure| (FindingKind::CannotBePlanned, failure))?))
}

impl ExistingWorker {
    /// The Worker after an edit of its Shoot; `made` is the Worker derived from the edited Shoot.
    fn edited(&self, made: &Value) -> Arc<Document<Worker>> {
        let changes = difference(&ChangedObject::Worker, &self.made, made, &["spec"]);
        match changes.is_empty() {
            true => Arc::clone(&self.worker),
            false => Arc::new(Document::new(apply(&self.worker.value, &changes))),
        }
    }
}

/// Assumed UID of a Shoot that has none yet.
const PRESUMED_UID: &str = "00000000-0000-0000-0000-000000000000";

impl ShootSource {
    /// The Shoot as the API server stores it after an update of the one in `before`.
    fn stored(&self, written: &Inputs, before: Option<&Inputs>) -> Result<Inputs, Failure> {
        let (Some(shoot), Some(profile)) = (&written.shoot, &written.cloud_profile) else { return Ok(written.clone()) };
        let before = before.and_then(|before| before.shoot.as_ref()).map(|shoot| &shoot.value);
        let mut shoot = shoot.value.clone();
        // Users don't write the status, so the old one is kept.
        if let (None, Some(status)) = (shoot.get("status"), before.and_then(|before| before.get("status"))) {
            set(&mut shoot, &[], "status", status.clone());
        }
        let technical_id = technical_id(&shoot);
        set(&mut shoot, &["status"], "technicalID", technical_id.into());
        if shoot["metadata"]["uid"].is_null() {
            let uid = before.map_or_else(|| PRESUMED_UID.into(), |before| before["metadata"]["uid"].clone());
            set(&mut shoot, &["metadata"], "uid", uid);
        }
        let has_dns = |shoot: &Value| shoot.pointer("/spec/systemComponents/nodeLocalDNS").is_some();
        let is_given_dns = before.map_or(!is_stored(&shoot), has_dns);
        if self.node_local_dns && is_given_dns && !has_dns(&shoot) {
            set(&mut shoot, &["spec", "systemComponents"], "nodeLocalDNS", json!({"enabled": true}));
        }
        let garden = Garden {
            reservation: self.reservation.unwrap_or_else(|| Reservation::of_stored(before.unwrap_or(&shoot))),
            node_local_dns: false,
            now: self.now,
        };
        let complete = profile.complete().map_err(|error| Failure::unreadable(&error.within("CloudProfile")))?;
        // A stored Shoot has been admitted, so its images stay.
        let itself = is_stored(&shoot).then(|| shoot.clone());
        let stored = stored_shoot(&shoot, before.or(itself.as_ref()), complete, &garden)?;
        Ok(Inputs { shoot: Some(Arc::new(Document::new(stored))), ..written.clone() })
    }

    /// The inputs of a stored Shoot with its Worker. Node templates stay as they were in `before`.
    pub(super) fn made(&self, stored: &Inputs, before: Option<&Inputs>) -> Result<Inputs, Failure> {
        let Some(written) = self.written(stored, before)? else { return Ok(stored.clone()) };
        let existing = self.existing.as_ref();
        let made =
            existing.map_or_else(|| Arc::new(Document::new(written.clone())), |existing| existing.edited(&written));
        let mut inputs = Inputs { worker: made, ..stored.clone() };
        let mut secrets = existing.map(|existing| (*existing.secrets).clone()).unwrap_or_default();
        let unread = Arc::new(SecretContent::unread(BTreeMap::new()));
        for (namespace, name) in inputs.secret_references() {
            if secrets.get(&namespace, &name).is_none() {
                secrets.insert(&namespace, &name, Arc::clone(&unread));
            }
        }
        inputs.secrets = Arc::new(secrets);
        Ok(inputs)
    }

    /// The Worker that gardenlet writes; `None` without a Shoot or a CloudProfile.
    fn written(&self, stored: &Inputs, before: Option<&Inputs>) -> Result<Option<Value>, Failure> {
        let (Some(shoot), Some(profile)) = (&stored.shoot, &stored.cloud_profile) else { return Ok(None) };
        let complete = profile.complete().map_err(|error| Failure::unreadable(&error.within("CloudProfile")))?;
        let provider = &shoot.value["spec"]["provider"];
        let pools = provider["workers"].as_array().into_iter().flatten();
        let images: Vec<&Value> = pools.clone().filter_map(|pool| pool.pointer("/machine/image")).collect();
        let zones: BTreeSet<&str> =
            pools.flat_map(|pool| pool["zones"].as_array().into_iter().flatten()).filter_map(Value::as_str).collect();
        let served = stored.providers.for_worker_type(provider["type"].as_str().unwrap_or_default())?;
        let presumed = || served.presumed_infrastructure(&provider["infrastructureConfig"], &zones, &images);
        let infrastructure = self.infrastructure_status.clone().or_else(presumed);
        let unknown = || Failure {
            code: None,
            message: "nothing is known of the infrastructure of such a Shoot".to_owned(),
            lacks_object: false,
        };
        let existing = self.existing.as_ref().map(|existing| &existing.worker);
        let existing = before.map(|before| &before.worker).or(existing);
        let surroundings = Surroundings {
            infrastructure_status: Some(infrastructure.as_ref().ok_or_else(unknown)?),
            ssh_public_key: self.ssh_public_key.as_deref(),
            existing_worker: existing.map(|existing| &existing.value["spec"]),
            is_bootstrapping: false,
        };
        Ok(Some(worker(&shoot.value, complete, &surroundings)?))
    }

    /// Adds what the Worker in the seed reveals; `of_seed` also has its Cluster.
    ///
    /// # Errors
    /// If gardenlet can't derive a Worker from that Shoot.
    pub fn with_worker(&self, of_seed: &Inputs) -> Result<Self, Failure> {
        let spec = &of_seed.worker.value["spec"];
        let infrastructure = spec.get("infrastructureProviderStatus").filter(|status| !status.is_null());
        let key = spec["sshPublicKey"].as_str().and_then(|key| String::from_utf8(STANDARD.decode(key).ok()?).ok());
        let mut known = Self { infrastructure_status: infrastructure.cloned(), ssh_public_key: key, ..self.clone() };
        let written = known.written(&known.stored(of_seed, None)?, Some(of_seed))?;
        known.existing = written.map(|made| ExistingWorker {
            worker: Arc::clone(&of_seed.worker),
            made: Arc::new(made),
            secrets: Arc::clone(&of_seed.secrets),
        });
        Ok(known)
    }
}

impl Inputs {
    /// The inputs with the Worker that gardenlet would write, if they come from a Shoot.
    ///
    /// # Errors
    /// If no Worker can be derived from the Shoot.
    pub fn made(&self) -> Result<Self, Failure> {
        let (made, _) = both_made(Some(self), None).map_err(|(_, failure)| failure)?;
        Ok(made.unwrap_or_else(|| self.clone()))
    }
}

/// Sets a field, unless a value of another type is in its path. Such a Shoot is rejected later.
fn set(shoot: &mut Value, parents: &[&str], member: &str, value: Value) {
    let mut location = shoot;
    for parent in parents {
        let Some(members) = location.as_object_mut() else { return };
        location = members.entry(*parent).or_insert(Value::Null);
        if location.is_null() {
            *location = json!({});
        }
    }
    if let Some(members) = location.as_object_mut() {
        members.insert(member.to_owned(), value);
    }
}

/// The name of a shoot in its seed. For a manifest, it is computed as Gardener does.
pub fn technical_id(shoot: &Value) -> String {
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    text(&shoot["status"]["technicalID"]).unwrap_or_else(|| {
        let [namespace, name] =
            ["namespace", "name"].map(|member| shoot["metadata"][member].as_str().unwrap_or_default());
        format!("shoot--{}--{name}", namespace.strip_prefix("garden-").unwrap_or(namespace))
    })
}

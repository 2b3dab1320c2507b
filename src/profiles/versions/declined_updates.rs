//! Newer images for pools whose owner disabled automatic updates, with the command to take them. Nothing is forced, so these
//! updates are an offer: they never make the condition `VersionsCurrent` false.

use std::fmt;

use serde_json::json;

use super::forecast::Move;
use wire::api::gardener::VersionedShoot;

/// A newer image that a pool does not get, because automatic updates of images are off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclinedUpdate {
    /// Name of the pool.
    pub pool: String,
    /// Name of the image.
    pub image: String,
    /// The version of the pool.
    pub from: String,
    /// The version that an automatic update would choose.
    pub to: String,
    /// The command for the garden that sets the version; `None` if a name needs quoting.
    pub command: Option<String>,
}

impl DeclinedUpdate {
    /// The update of a pool at this position of the Shoot, if `moved` changes its image and the owner opted out.
    pub(super) fn of(shoot: &VersionedShoot, position: usize, moved: Option<&Move>) -> Option<Self> {
        let auto = shoot.spec.maintenance.as_ref()?.auto_update?;
        if auto.machine_image_version != Some(false) {
            return None;
        }
        let moved = moved?;
        let pool = moved.pool.clone()?;
        Some(Self {
            command: command(shoot, position, &pool, &moved.to),
            pool,
            image: moved.image.clone()?,
            from: moved.from.clone(),
            to: moved.to.clone(),
        })
    }
}

/// The patch tests the name of the pool, in case the list of pools has changed.
fn command(shoot: &VersionedShoot, position: usize, pool: &str, version: &str) -> Option<String> {
    let [namespace, name] =
        [&shoot.metadata.namespace, &shoot.metadata.name].map(|text| text.as_deref().unwrap_or_default());
    if ![namespace, name, pool, version].into_iter().all(is_plain) {
        return None;
    }
    let path = format!("/spec/provider/workers/{position}");
    let patch = json!([
        {"op": "test", "path": format!("{path}/name"), "value": pool},
        {"op": "replace", "path": format!("{path}/machine/image/version"), "value": version},
    ]);
    Some(format!("kubectl -n {namespace} patch shoot {name} --type json -p '{patch}'"))
}

/// Whether a shell takes the text as it is.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "._+-".contains(letter))
}

impl fmt::Display for DeclinedUpdate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pool, image, from, to, command } = self;
        write!(formatter, "pool {pool}: {image} {to} is available after {from}, and automatic updates are off")?;
        match command {
            Some(command) => write!(formatter, "; to take it: {command}"),
            None => Ok(()),
        }
    }
}

//! Writes lock files and reports their changes.

use anyhow::Context;
use serde_json::{Value, json};

use crate::cli::table::{Cell, Table, paragraph, some};
use crate::cli::terminal::{ASIDE, CAREFUL, GOOD, HEADING};
use crate::cli::whole_file::Update;
use profiles::images::lock::{Cause, Change, Lock, LockedImage};
use profiles::images::lock_file::LockDocument;
use profiles::images::resolution::FlavorKey;

/// Maximum number of regions listed.
const NAMED: usize = 3;

/// Writes a lock file atomically.
pub(super) fn write_lock(update: Update, lock: &Lock) -> anyhow::Result<()> {
    let text = serde_saphyr::to_string(&LockDocument::from(lock)).context("the lock can't be written as YAML")?;
    update.write(&text)
}

pub(super) fn key_json(key: &FlavorKey) -> Value {
    json!({
        "provider": key.provider, "realm": key.realm, "image": key.image, "version": key.version, "flavor": key.flavor,
        "region": key.region,
    })
}

pub(super) fn locked_json(image: &LockedImage) -> Value {
    json!({"id": image.reference.value, "name": image.name, "created": image.created, "locked": image.locked})
}

pub(super) fn change_json(change: &Change) -> Value {
    let mut document = key_json(&change.key);
    document["before"] = change.before.as_ref().map(locked_json).unwrap_or_default();
    document["after"] = locked_json(&change.after);
    document["cause"] = change.cause.text().into();
    document
}

/// Changes as a table, followed by a closing line. Regions with the same change of a flavor share a row.
pub(super) fn changes_text(changes: &[Change], what: &str, width: usize) -> String {
    let mut same: Vec<Vec<&Change>> = Vec::new();
    for change in changes {
        let row = |change: &Change| (FlavorKey { region: None, ..change.key.clone() }, change.cause.text());
        match same.last_mut().filter(|known| known.first().is_some_and(|first| row(first) == row(change))) {
            Some(known) => known.push(change),
            None => same.push(vec![change]),
        }
    }
    let mut table = Table::new(["IMAGE", "FLAVOR", "CLOUD", "REGIONS", "BEFORE", "NOW", "WHY"]);
    for changes in &same {
        let Some(first) = changes.first() else { continue };
        let style = if matches!(first.cause, Cause::First | Cause::NewVersion) { GOOD } else { CAREFUL };
        let images = |image: fn(&Change) -> Option<&LockedImage>| {
            let images: Vec<&str> =
                changes.iter().filter_map(|change| Some(image(change)?.reference.value.as_str())).collect();
            if images.is_empty() { "-".to_owned() } else { some(&images, 1) }
        };
        let regions: Vec<&str> = changes.iter().map(|change| change.key.location()).collect();
        table.row([
            format!("{} {}", first.key.image, first.key.version).into(),
            first.key.flavor_text().into(),
            first.key.cloud().into(),
            some(&regions, NAMED).into(),
            Cell::styled(images(|change| change.before.as_ref()), ASIDE),
            images(|change| Some(&change.after)).into(),
            Cell::styled(first.cause.text(), style),
        ]);
    }
    let heading = paragraph(what, HEADING, 0, width);
    if changes.is_empty() { heading } else { format!("{heading}{}", table.render(2, width)) }
}

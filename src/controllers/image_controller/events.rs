//! Texts of the events on objects for images.

use profiles::images::objects::write::ImageEvent;
use runtime::cluster::events::EventNote;
use wire::api::bounded_text::{Bound, named, shortened};

/// Maximum size of a list within a note.
const MAX_LIST_BYTES: Bound = Bound::bytes(950);

/// The note of an event.
pub(super) fn note_of(event: &ImageEvent) -> EventNote {
    match event {
        ImageEvent::LookupFailed(errors) => EventNote {
            is_warning: true,
            reason: "ImageLookupFailed",
            action: "Discover",
            note: named(errors, MAX_LIST_BYTES),
        },
        ImageEvent::Gone(image) => EventNote {
            is_warning: true,
            reason: "ImageGone",
            action: "Discover",
            note: format!("No source lists {} any more; no new machines can start from it", shortened(image, 300)),
        },
        ImageEvent::UpgradeAvailable(upgrades) => {
            let upgrades: Vec<String> = upgrades.iter().map(ToString::to_string).collect();
            let note = format!("Newer images: {}", named(&upgrades, MAX_LIST_BYTES));
            EventNote { is_warning: false, reason: "ImageUpgradeAvailable", action: "Resolve", note }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::api::image_objects::ImageUpgrade;

    #[test]
    fn each_reason_is_documented_and_each_note_has_its_size() {
        let long = "x".repeat(2000);
        let upgrade = ImageUpgrade { version: long.clone(), image: long.clone(), ..ImageUpgrade::default() };
        let documented = include_str!("../../../docs/images.md");
        for event in [
            ImageEvent::Gone(long.clone()),
            ImageEvent::LookupFailed(vec![long; 20]),
            ImageEvent::UpgradeAvailable(vec![upgrade; 20]),
        ] {
            let note = note_of(&event);
            assert!(documented.contains(&format!("`{}`", note.reason)), "{}", note.reason);
            assert!(note.note.len() <= 1024, "{} bytes", note.note.len());
        }
    }
}

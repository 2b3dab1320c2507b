//! Fuzz target: a CloudProfile converted to the other format and back. Each result must be a readable profile.
#![no_main]

use gardener_extension_worker::api::gotext::yaml;
use gardener_extension_worker::provider::Providers;
use gardener_extension_worker::resolved_profile::convert::{Format, Knowledge, convert};
use gardener_extension_worker::resolved_profile::minimize::minimize;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    // The length of the text selects one case, because both directions with all later steps would take four times as
    // long.
    let mut ways = [Format::Capabilities, Format::Old];
    ways.rotate_left(text.len() % 2);
    let ([there, back], is_minimized) = (ways, text.len() % 4 < 2);
    for document in yaml::documents(text).unwrap_or_default() {
        let Ok(converted) = convert(&document, there, &Knowledge::default(), Providers::SHIPPED) else { continue };
        if is_minimized {
            let shorter = minimize(&converted.profile, Providers::SHIPPED).expect("what was converted can be read");
            assert!(shorter.bytes.after <= shorter.bytes.before);
        } else {
            let _ = convert(&converted.profile, back, &Knowledge::default(), Providers::SHIPPED);
        }
    }
});

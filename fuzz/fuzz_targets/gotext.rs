//! Fuzz target: quantities, durations, versions and times; the first byte chooses. What is printed must be readable
//! and be printed the same way again.
#![no_main]

use gardener_extension_worker::api::gotext::duration::Duration;
use gardener_extension_worker::api::gotext::quantity::{Quantity, QuantityError};
use gardener_extension_worker::api::gotext::time::go_time_text;
use gardener_extension_worker::api::gotext::version::Version;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, text)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    match choice {
        b'q' => {
            let Ok(quantity) = Quantity::parse(text) else { return };
            let _ = (quantity.value_rounded_up(), quantity.is_zero());
            // Not the same amount: Go prints no suffix beyond exa, and so do we. Exponents of thousands can be read only
            // with few digits.
            let printed = quantity.to_string();
            match Quantity::parse(&printed) {
                Ok(again) => assert_eq!(again.to_string(), printed),
                Err(error) => assert_eq!(error, QuantityError::OutOfRange, "{printed}"),
            }
        }
        b'd' => {
            let Ok(duration) = Duration::parse(text) else { return };
            assert_eq!(Duration::parse(&duration.to_string()), Ok(duration));
        }
        b'v' => {
            let Ok(version) = Version::parse(text) else { return };
            assert!(version.at_least_including_prereleases(version.major, version.minor));
            // A text that leaves minor and patch out is shorter than what is printed.
            if text.len() < 250 {
                assert_eq!(Version::parse(&version.to_string()), Ok(version));
            }
        }
        b't' => {
            let _ = go_time_text(text);
        }
        _ => {}
    }
});

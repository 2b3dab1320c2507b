//! Fuzz target: quantities, durations, versions and times, selected by the first byte. Printed values must be readable,
//! and after repeated printing the text must not change any more.
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
            // As in Go, a printed quantity may have another value (there is no suffix beyond exa), and the next print
            // may differ (3062.5Ki, 3136000, 3136k). After that it is stable. Exponents of thousands can only be read
            // with few digits.
            match Quantity::parse(&quantity.to_string()).map(|again| again.to_string()) {
                Ok(printed) => assert_eq!(Quantity::parse(&printed).map(|again| again.to_string()), Ok(printed)),
                Err(error) => assert_eq!(error, QuantityError::OutOfRange),
            }
        }
        b'd' => {
            let Ok(duration) = Duration::parse(text) else { return };
            assert_eq!(Duration::parse(&duration.to_string()), Ok(duration));
        }
        b'v' => {
            let Ok(version) = Version::parse(text) else { return };
            assert!(version.at_least_including_prereleases(version.major, version.minor));
            // The printed form of a text without minor and patch is longer than the text.
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

//! Wake-up times of the controller, for one window and one moment.

use gardener_extension_worker::api::gardener::TimeWindow;
use gardener_extension_worker::versions::window::EffectiveWindow;
use jiff::Timestamp;
use serde_json::{Value, json};

pub(crate) fn result(input: &Value) -> Result<Value, String> {
    let window: Option<TimeWindow> =
        serde_json::from_value(input["timeWindow"].clone()).map_err(|error| error.to_string())?;
    let window = EffectiveWindow::of(window.as_ref());
    let now: Timestamp = input["now"].as_str().unwrap_or_default().parse().map_err(|_| "no time")?;
    let [begin, end] = window.times();
    let [from, before] = window.wake_up(now);
    Ok(json!({
        "effectiveBegin": begin.to_string(), "effectiveEnd": end.to_string(), "inside": window.contains(now),
        "wakeUpFrom": from.to_string(), "wakeUpBefore": before.to_string(),
    }))
}

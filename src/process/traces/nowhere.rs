//! Without the feature `otlp`: traces go nowhere.

use std::time::{Duration, SystemTime};

use tracing::{Span, warn};
use tracing_subscriber::layer::Identity;

pub(crate) struct Traces;

impl Traces {
    /// Says that nothing is sent where somebody asks for it.
    #[expect(clippy::unnecessary_wraps, reason = "the feature can fail here")]
    pub(crate) fn begin(endpoint: Option<&str>) -> anyhow::Result<Option<Self>> {
        Ok(endpoint.map(|_| Self))
    }

    /// Sees nothing.
    pub(crate) fn layer(&self) -> Identity {
        Identity::new()
    }

    /// What is to be said once there are logs.
    pub(crate) fn tell(&self) {
        warn!("this program was built without the feature otlp: no traces are sent");
    }

    pub(crate) fn steps(_: &Span, _: SystemTime, _: &[(&'static str, Duration)]) {}

    /// There is nothing to send.
    pub(crate) async fn end(self) {}
}

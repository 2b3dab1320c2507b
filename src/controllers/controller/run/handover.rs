//! A leader without answers from the API server gives up its lease. The lease is renewed over a connection of its
//! own, so without this check the process could stay leader indefinitely while all its other requests hang.
//!
//! ```text
//!  a request is unanswered, as are all later ones ── 30 s ──► /readyz reports it, and a probe request is sent
//!    ├─ the probe is answered: only the first request was affected
//!    └─ 60 s: the process ends and releases the lease
//! ```

use std::time::Duration;

use kube::api::{Api, ListParams};
use kube::core::PartialObjectMeta;
use tokio::time::{Instant, sleep};
use tracing::debug;

use runtime::cluster::connection::Access;
use runtime::cluster::retry_layer::RESPONSE_TIMEOUT;
use runtime::process::failure_reason::reason;
use runtime::process::leadership::Leadership;
use runtime::process::readiness::{Need, Readiness};
use wire::api::gardener::Worker;

/// How often to check for missing answers.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// A leader gives up after this time without an answer: the timeouts of one request and of the probe after it.
const GIVE_UP_TIMEOUT: Duration = RESPONSE_TIMEOUT.saturating_mul(2);

/// Updates readiness, and returns once this process leads and gets no answers, because another process may be able to
/// reach the API server.
pub(crate) async fn until_unreachable(
    access: &Access,
    readiness: &Readiness,
    leadership: Option<&Leadership>,
) -> anyhow::Error {
    let Access { client, responses, fence: _ } = access;
    let api: Api<PartialObjectMeta<Worker>> = Api::all(client.clone());
    loop {
        sleep(CHECK_INTERVAL).await;
        let Some(missing) = responses.missing_for(Instant::now()).filter(|missing| *missing >= RESPONSE_TIMEOUT) else {
            readiness.has(Need::Responses);
            continue;
        };
        readiness.misses(Need::Responses, format!("no request has been answered for {} s", missing.as_secs()));
        // Perhaps only that request was affected, and no other was sent since.
        if let Err(error) = api.list(&ListParams::default().limit(1)).await {
            debug!(error = reason(&error), "the API server does not answer");
        }
        let missing = responses.missing_for(Instant::now()).filter(|missing| *missing >= GIVE_UP_TIMEOUT);
        if let Some(missing) = missing
            && leadership.is_some_and(|leadership| leadership.is_held(Instant::now()))
        {
            return anyhow::anyhow!("no request but those for the lease has been answered for {missing:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::body::Body as ResponseBody;
    use axum::http::{Request, Response};
    use kube::client::Body;
    use tokio::time::timeout;
    use tower::{BoxError, service_fn};

    use super::*;
    use crate::controller::run::start::access_through;
    use runtime::cluster::write_fence::WriteFence;

    /// An API server that is unreachable, with a request unanswered from now on.
    fn unreachable() -> Access {
        let service =
            service_fn(async |_: Request<Body>| Err::<Response<ResponseBody>, BoxError>("no connection".into()));
        let access = access_through(service, "default".to_owned(), &Arc::default(), WriteFence::Open);
        access.responses.unanswered(Instant::now());
        access
    }

    #[tokio::test(start_paused = true)]
    async fn leader_without_responses_gives_up_after_a_minute() {
        let access = unreachable();
        let start = Instant::now();
        let leadership = Leadership::default();
        leadership.extend(start + GIVE_UP_TIMEOUT * 10);
        let readiness = Readiness::waiting_for([]);
        let until_unreachable = || until_unreachable(&access, &readiness, Some(&leadership));
        assert!(timeout(RESPONSE_TIMEOUT - CHECK_INTERVAL, until_unreachable()).await.is_err());
        assert_eq!(readiness.report(), Ok("ready\n".to_owned()));
        assert!(timeout(CHECK_INTERVAL * 10, until_unreachable()).await.is_err());
        let missing = readiness.report().unwrap_err();
        assert!(missing.starts_with("answers: no request has been answered for 3"), "{missing}");
        let error = until_unreachable().await;
        assert!(
            start.elapsed() >= GIVE_UP_TIMEOUT && start.elapsed() < GIVE_UP_TIMEOUT + CHECK_INTERVAL * 5,
            "{:?}",
            start.elapsed()
        );
        assert!(error.to_string().starts_with("no request but those for the lease"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_lead_gives_nothing_up() {
        let access = unreachable();
        let leadership = Leadership::default();
        let readiness = Readiness::waiting_for([]);
        for leadership in [None, Some(&leadership)] {
            assert!(timeout(GIVE_UP_TIMEOUT * 3, until_unreachable(&access, &readiness, leadership)).await.is_err());
        }
    }
}

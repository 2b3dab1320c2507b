//! Network faults between controller and API server in all flows of a life: lost responses, errors, broken watches,
//! truncated responses, responses from intermediaries, and a slow network.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use axum::http::Method;

use crate::flow::Flow;
use crate::life::{Ends, Life};
use crate::random::Random;
use crate::report::{Row, Times};
use crate::world::World;
use test_support::proxy::{Call, Refusal, Treatment};

/// A continuous fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NetworkFault {
    /// Each write is executed, but its first response is lost.
    ResponsesLost,
    /// Each change of an object fails three times with a conflict.
    ConflictStorm,
    /// Many requests are throttled with a delay of a second.
    TooManyRequests,
    /// One of ten requests fails in the API server or before it.
    TenPercentFail,
    /// Every second request fails.
    HalfFail,
    /// One of five requests is answered by an intermediary, whether executed or not.
    ForeignResponses,
    /// The first deletion of each machine object returns success or not found without effect.
    DeletionsLie,
    /// In some flows, the response to the first write stalls.
    ResponsesStop,
    /// Each request is slow, and no watch lasts longer than a second.
    WatchesCut,
    /// Half of all watches fail because their version is compacted, and no watch lasts longer than a second.
    Compacted,
}

impl NetworkFault {
    pub(crate) const ALL: [Self; 10] = [
        Self::ResponsesLost,
        Self::ConflictStorm,
        Self::TooManyRequests,
        Self::TenPercentFail,
        Self::HalfFail,
        Self::ForeignResponses,
        Self::DeletionsLie,
        Self::ResponsesStop,
        Self::WatchesCut,
        Self::Compacted,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ResponsesLost => "each answer to a write lost once",
            Self::ConflictStorm => "409 three times for each change",
            Self::TooManyRequests => "429 with Retry-After for 30 % of all requests",
            Self::TenPercentFail => "500 and 503 for 10 % of all requests",
            Self::HalfFail => "500 and 503 for 50 % of all requests",
            Self::ForeignResponses => "20 % of all answers empty, truncated, pages or of another kind",
            Self::DeletionsLie => "each deletion answered and not done once",
            Self::ResponsesStop => "an answer that stops before or after its headers",
            Self::WatchesCut => "watches cut every second, each request takes 100 ms",
            Self::Compacted => "410 for half of all watches, which are cut every second",
        }
    }

    /// The faults in a flow, determined by a seed.
    fn faults(self, flow: Flow, seed: u64) -> impl FnMut(&Call) -> Treatment + Send + 'static {
        let mut random = Random::new(seed);
        let mut times: HashMap<String, u32> = HashMap::new();
        let mut has_stopped = false;
        move |call| {
            let mut time = || {
                let time = times.entry(format!("{} {}", call.method, call.path)).or_default();
                *time += 1;
                *time
            };
            match self {
                Self::ResponsesLost if call.writes() && time() == 1 => Treatment::LoseResponse,
                Self::ConflictStorm if call.changes() && time() <= 3 => Treatment::Refuse(Refusal::Conflict),
                Self::TooManyRequests if random.percent(30) => Treatment::Refuse(Refusal::TooMany(1)),
                Self::TenPercentFail if random.percent(10) => Treatment::Refuse(failure(&mut random)),
                Self::HalfFail if random.percent(50) => Treatment::Refuse(failure(&mut random)),
                Self::ForeignResponses if random.percent(20) => foreign(&mut random, call),
                Self::DeletionsLie if call.method == Method::DELETE && time() == 1 => {
                    Treatment::Refuse(if random.percent(50) { Refusal::OtherKind } else { Refusal::NotThere })
                }
                Self::ResponsesStop if call.writes() && !has_stopped => {
                    has_stopped = true;
                    stopped(flow)
                }
                Self::Compacted if call.watches => match (random.percent(50), random.percent(50)) {
                    (true, true) => Treatment::Refuse(Refusal::WatchError(410)),
                    (true, false) => Treatment::Refuse(Refusal::Expired),
                    (false, _) => Treatment::CutOff(Duration::from_secs(1)),
                },
                Self::WatchesCut if call.watches => Treatment::CutOff(Duration::from_secs(1)),
                Self::WatchesCut => Treatment::Delay(Duration::from_millis(100)),
                _ => Treatment::Forward,
            }
        }
    }
}

fn failure(random: &mut Random) -> Refusal {
    if random.percent(50) { Refusal::Internal } else { Refusal::Unavailable }
}

/// Each stall costs half a minute, so there are few.
fn stopped(flow: Flow) -> Treatment {
    match flow {
        Flow::Roll => Treatment::NeverRespond,
        Flow::Create | Flow::Delete => Treatment::Stall,
        _ => Treatment::Forward,
    }
}

/// Responses that do not come from an API server. Success without effect is excluded, except for deletions
/// ([`NetworkFault::DeletionsLie`]), because the controller cannot distinguish it from real success.
fn foreign(random: &mut Random, call: &Call) -> Treatment {
    let response = match random.percent(50) {
        true if !call.watches => return Treatment::Truncate,
        _ if random.percent(30) => Refusal::Empty,
        _ if random.percent(50) => Refusal::Page,
        _ if random.percent(50) || call.writes() => Refusal::NoPage,
        _ => Refusal::OtherKind,
    };
    if random.percent(50) { Treatment::Replace(response) } else { Treatment::Refuse(response) }
}

/// Runs one life through all flows.
pub(crate) async fn run(world: &World, ends: &Ends, fault: NetworkFault, seed: u64) -> Result<Row> {
    let mut life = Life::begin(world, "network", ends).await?;
    let (requests, troubled) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (mut times, mut violations) = (Vec::new(), Vec::new());
    for flow in Flow::ALL {
        // Reset for each flow, so that one-time faults occur once per flow.
        let mut faults = fault.faults(flow, seed.wrapping_add(flow as u64));
        let (requests, troubled) = (Arc::clone(&requests), Arc::clone(&troubled));
        life.set_faults(move |call| {
            let treatment = faults(call);
            requests.fetch_add(1, Ordering::Relaxed);
            troubled.fetch_add(usize::from(!matches!(treatment, Treatment::Forward)), Ordering::Relaxed);
            treatment
        });
        match life.go(flow).await {
            Ok(went) => times.push(went.took),
            Err(error) => {
                violations.push(format!("{}, seed {seed}: {error:#}", fault.name()));
                break;
            }
        }
    }
    violations.extend(life.evaluate().await?);
    Ok(Row {
        what: fault.name().to_owned(),
        covered: format!(
            "{} flows, {} of {} requests",
            times.len(),
            troubled.load(Ordering::Relaxed),
            requests.load(Ordering::Relaxed)
        ),
        recovery: Times::of(times),
        violations,
        ..Row::default()
    })
}

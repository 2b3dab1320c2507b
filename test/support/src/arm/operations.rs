//! Long-running operations of a PUT or DELETE.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::server::Reply;

/// Duration of operations, counted in polls so that no test depends on a clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operations {
    /// Complete with the response.
    #[default]
    AtOnce,
    /// Complete at the n-th poll. Responses contain `Retry-After` in seconds.
    Polled { times: usize, retry_after: u64 },
    /// Never complete, until the test completes them or changes the pace.
    Held,
}

/// Effect on the scale set when the operation completes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Made,
    Failed { code: String, message: String },
    Deleted,
}

#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub(super) scale_set: String,
    pub(super) effect: Effect,
    polls: usize,
    ended: bool,
}

/// The operations of a resource group by id.
#[derive(Debug, Default)]
pub(super) struct Running(BTreeMap<String, Operation>);

impl Running {
    pub(super) fn begin(&mut self, id: String, scale_set: &str, effect: Effect) {
        self.0.insert(id, Operation { scale_set: scale_set.to_owned(), effect, polls: 0, ended: false });
    }

    pub(super) fn is_busy(&self, scale_set: &str) -> bool {
        self.0.values().any(|operation| !operation.ended && operation.scale_set.eq_ignore_ascii_case(scale_set))
    }

    /// Completes all running operations.
    pub(super) fn end_all(&mut self) -> Vec<Operation> {
        let going = self.0.values_mut().filter(|operation| !operation.ended);
        going
            .map(|operation| {
                operation.ended = true;
                operation.clone()
            })
            .collect()
    }

    /// Counts a poll. Returns the operation, and whether it completes with this poll.
    pub(super) fn poll(&mut self, id: &str, pace: Operations) -> Option<(Operation, bool)> {
        let operation = self.0.get_mut(id)?;
        operation.polls += 1;
        let ends = match pace {
            Operations::AtOnce => true,
            Operations::Polled { times, .. } => operation.polls >= times,
            Operations::Held => false,
        };
        let ends_now = ends && !operation.ended;
        operation.ended |= ends;
        Some((operation.clone(), ends_now))
    }
}

impl Operation {
    /// The response of the URL in `Azure-AsyncOperation`.
    pub(super) fn status(&self, id: &str) -> Value {
        let mut status = json!({"name": id, "startTime": "2026-11-21T10:00:00+00:00", "status": "InProgress"});
        match &self.effect {
            _ if !self.ended => {}
            Effect::Failed { code, message } => {
                status["status"] = "Failed".into();
                status["error"] = json!({"code": code, "message": message});
            }
            Effect::Made | Effect::Deleted => status["status"] = "Succeeded".into(),
        }
        status
    }

    /// The response of the URL in `Location`.
    pub(super) fn location(&self) -> Reply {
        match &self.effect {
            _ if !self.ended => Reply::empty(202),
            Effect::Failed { code, message } => Reply::json(409, json!({"error": {"code": code, "message": message}})),
            Effect::Made | Effect::Deleted => Reply::empty(200),
        }
    }
}

impl Operations {
    pub(super) fn retry_after(self) -> u64 {
        match self {
            Self::Polled { retry_after, .. } => retry_after,
            Self::AtOnce | Self::Held => 1,
        }
    }
}

//! Faults that tests inject into responses.

use serde_json::json;

use super::calls::Verb;
use super::server::Reply;

/// A fault: which calls it affects, what happens, and how often.
#[derive(Clone, Debug)]
pub struct Fault {
    verb: Verb,
    name: Option<String>,
    status: u16,
    code: String,
    message: String,
    retry_after: Option<u64>,
    after_the_call: bool,
    is_by_a_proxy: bool,
    left: Option<usize>,
}

impl Fault {
    /// Fails the next call of that kind with status 500.
    pub fn on(verb: Verb) -> Self {
        Self {
            verb,
            name: None,
            status: 500,
            code: "InternalServerError".to_owned(),
            message: "Encountered internal server error.".to_owned(),
            retry_after: None,
            after_the_call: false,
            is_by_a_proxy: false,
            left: Some(1),
        }
    }

    /// A fault as in the parity cases: all calls fail with this text. `NotFound` is a 404.
    pub fn as_in_cases(verb: Verb, text: &str) -> Self {
        let fault = Self::on(verb).always();
        match text.split_once(": ") {
            _ if text == "NotFound" => fault.status(404).error("ResourceNotFound", "The resource was not found."),
            Some((code, message)) if code.chars().all(char::is_alphanumeric) => fault.status(400).error(code, message),
            _ => fault.status(400).error("BadRequest", text),
        }
    }

    pub fn status(self, status: u16) -> Self {
        let (code, message) = match status {
            404 => ("ResourceNotFound", "The resource was not found."),
            409 => ("Conflict", "Another operation on this resource is in progress."),
            429 => ("TooManyRequests", "The request is being throttled as the limit has been reached."),
            _ => ("InternalServerError", "Encountered internal server error."),
        };
        Self { status, ..self }.error(code, message)
    }

    pub fn error(self, code: &str, message: &str) -> Self {
        Self { code: code.to_owned(), message: message.to_owned(), ..self }
    }

    /// The response comes from a proxy in front of Azure, with a text of its own.
    pub fn by_a_proxy(self) -> Self {
        Self { is_by_a_proxy: true, ..self }
    }

    /// Seconds in `Retry-After`.
    pub fn retry_after(self, seconds: u64) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    /// Limits the fault to one scale set.
    pub fn of(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }

    pub fn times(self, times: usize) -> Self {
        Self { left: Some(times), ..self }
    }

    pub fn always(self) -> Self {
        Self { left: None, ..self }
    }

    /// The call takes effect, but the connection breaks before the response.
    pub fn response_lost(self) -> Self {
        Self { after_the_call: true, ..self }
    }

    pub(super) fn is_after_the_call(&self) -> bool {
        self.after_the_call
    }

    pub(super) fn response(&self) -> Reply {
        if self.after_the_call {
            return Reply::broken();
        }
        let response = match self.is_by_a_proxy {
            true => Reply::json(self.status, json!("no such host")),
            false => Reply::error(self.status, &self.code, &self.message),
        };
        match self.retry_after {
            Some(seconds) => response.header("retry-after", seconds.to_string()),
            None => response,
        }
    }
}

/// Finds the first matching fault and decrements its counter.
pub(super) fn next(faults: &mut Vec<Fault>, verb: Verb, name: &str) -> Option<Fault> {
    let fits = |fault: &&mut Fault| {
        fault.verb == verb && fault.name.as_deref().is_none_or(|expected| expected.eq_ignore_ascii_case(name))
    };
    let fault = faults.iter_mut().find(fits)?;
    if let Some(left) = &mut fault.left {
        *left = left.saturating_sub(1);
    }
    let due = fault.clone();
    faults.retain(|fault| fault.left != Some(0));
    Some(due)
}

//! Formats an error and its causes as one readable line, in the words of the API server or program that reported it.
//!
//! The `Display` texts of the client's errors are meant for programmers: they dump whole structures and repeat
//! themselves.

use std::error::Error;
use std::iter::successors;

use kube::core::Status;

use wire::api::bounded_text::{escaped, shortened};

/// Maximum size of an API server's message, which may contain text from elsewhere, such as from a webhook.
const MAX_RESPONSE_BYTES: usize = 8 * 1024;
/// Maximum size of an answer that is not a Kubernetes object, such as the page of a proxy.
const MOST_OF_PAGE: usize = 256;
/// The API server's placeholder for a missing reason.
const NO_REASON: &str = "Unknown";
/// The reason that the client invents for an answer that is not a Kubernetes object.
const NO_OBJECT: &str = "Failed to parse error data";

/// Formats the error and its causes, each once.
pub fn reason(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    for cause in successors(Some(error), |&cause| cause.source()) {
        let detail = match cause.downcast_ref() {
            Some(kube::Error::Api(status)) => response(status),
            // Their causes have the details.
            Some(kube::Error::Service(_) | kube::Error::HyperError(_)) => continue,
            _ => cause.to_string(),
        };
        // Many errors include the text of their cause; a `Status` has no cause.
        if !text.ends_with(&detail) {
            let separator = if text.is_empty() { "" } else { ": " };
            text = format!("{text}{separator}{detail}");
        }
        if matches!(cause.downcast_ref(), Some(kube::Error::Api(_))) {
            break;
        }
    }
    text
}

fn response(Status { code, reason, message, .. }: &Status) -> String {
    let most = if reason == NO_OBJECT { MOST_OF_PAGE } else { MAX_RESPONSE_BYTES };
    let reason = match reason.as_str() {
        "" | NO_REASON | NO_OBJECT => String::new(),
        reason => format!(" {reason}"),
    };
    let message = if message.is_empty() { String::new() } else { format!(": {message}") };
    shortened(&escaped(&format!("the API server answers {code}{reason}{message}")), most)
}

#[cfg(test)]
mod tests {
    use std::io;

    use anyhow::{Context, anyhow};

    use super::*;

    fn refused(code: u16, reason: &str, message: &str) -> kube::Error {
        kube::Error::Api(Status::failure(message, reason).with_code(code).boxed())
    }

    fn of(error: &anyhow::Error) -> String {
        reason(error.as_ref())
    }

    #[test]
    fn reports_the_api_servers_message_once() {
        let forbidden = || refused(403, "Forbidden", "workers is forbidden: User \"jane\" cannot list it");
        let detail = "the API server answers 403 Forbidden: workers is forbidden: User \"jane\" cannot list it";
        assert_eq!(reason(&forbidden()), detail);
        let listed: anyhow::Error = Err::<(), _>(forbidden()).context("Workers can't be listed").unwrap_err();
        assert_eq!(of(&listed), format!("Workers can't be listed: {detail}"));
        assert_eq!(reason(&refused(500, "Unknown", "not now")), "the API server answers 500: not now");
        assert_eq!(reason(&refused(503, "", "")), "the API server answers 503");
    }

    #[test]
    fn a_page_of_a_proxy_is_shortened_and_has_no_words_of_the_client() {
        let page = |text: &str| reason(&refused(502, "Failed to parse error data", text));
        assert_eq!(page("<h1>Bad Gateway</h1>"), "the API server answers 502: <h1>Bad Gateway</h1>");
        assert!(page(&"a".repeat(100_000)).len() <= MOST_OF_PAGE);
    }

    #[test]
    fn what_stands_between_is_not_named() {
        let reset = io::Error::new(io::ErrorKind::ConnectionReset, "connection reset");
        assert_eq!(reason(&kube::Error::Service(Box::new(reset))), "connection reset");
    }

    #[test]
    fn reports_other_errors_with_their_causes() {
        let error = anyhow!("no such file").context("a.yaml can't be read").context("nothing is done");
        assert_eq!(of(&error), format!("{error:#}"));
    }

    #[test]
    fn webhook_messages_are_escaped_and_bounded() {
        let detail = reason(&refused(400, "", &format!("\u{202e}{}", "a".repeat(100_000))));
        assert!(detail.len() <= MAX_RESPONSE_BYTES && !detail.contains('\u{202e}'), "{}", detail.len());
    }
}

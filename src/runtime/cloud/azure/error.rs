//! Errors of Azure and their Gardener codes. They are classified by Azure's outermost code, or by the text if there
//! is no code, as for the machines of machine-controller-manager.

use azure_core::error::{ErrorKind, ErrorResponse};

use decisions::provider::azure::Azure;
use decisions::provider::{DependencyFailure, Provider as _};
use wire::api::gardener::ErrorCode;

/// Maximum number of characters of a text in a status.
const LONGEST_TEXT: usize = 400;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{doing}: {text}")]
pub(super) struct AzureError {
    doing: String,
    kind: Kind,
    text: String,
}

/// Source of the error.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// The authority issued no token.
    Token,
    /// The resource manager: its status and error codes, the outermost first.
    Reply { status: u16, codes: Vec<String> },
    /// No response, or an invalid one.
    Nobody,
}

impl AzureError {
    /// An invalid response.
    pub(super) fn senseless(doing: &str, text: &str) -> Self {
        Self { doing: doing.to_owned(), kind: Kind::Nobody, text: text.to_owned() }
    }

    /// A failed operation. Its result has no HTTP status, so it is treated as a bad request.
    pub(super) fn of_operation(doing: &str, code: String, message: &str) -> Self {
        let text = format!("{code}: {}", readable(message));
        Self { doing: doing.to_owned(), kind: Kind::Reply { status: 400, codes: vec![code] }, text }
    }

    /// Converts an error of the SDK.
    pub(super) fn of(doing: &str, error: azure_core::Error) -> Self {
        let doing = doing.to_owned();
        let text = text_of(&error);
        let ErrorKind::HttpResponse { status, error_code, .. } = error.kind() else {
            let refused = matches!(error.kind(), ErrorKind::Credential) && is_refusal(&error);
            return Self { doing, kind: if refused { Kind::Token } else { Kind::Nobody }, text };
        };
        // For unreadable responses, the SDK uses the status as code.
        let outermost = error_code.clone().filter(|code| *code != status.to_string());
        let status = u16::from(*status);
        let mut codes: Vec<String> = outermost.into_iter().collect();
        if let Ok(ErrorResponse { error: Some(detail) }) = ErrorResponse::try_from(error) {
            codes.extend(detail.code);
            codes.extend(detail.details.into_iter().filter_map(|detail| detail.code));
        }
        codes.dedup();
        if status == 404 && codes.is_empty() {
            // Azure always sends a code, so this comes from a proxy and proves nothing about the resource.
            return Self { doing, kind: Kind::Nobody, text };
        }
        let text = match codes.first() {
            Some(code) if !text.starts_with(code.as_str()) => format!("{code}: {text}"),
            _ => text,
        };
        Self { doing, kind: Kind::Reply { status, codes }, text }
    }

    /// Whether the resource does not exist.
    pub(super) fn is_not_found(&self) -> bool {
        matches!(self.kind, Kind::Reply { status: 404, .. })
    }

    /// Whether another operation on the same scale set is in progress. This resolves itself.
    pub(super) fn is_conflict(&self) -> bool {
        matches!(self.kind, Kind::Reply { status: 409, .. })
            && matches!(self.code(), None | Some(ErrorCode::RetryableInfraDependencies))
    }

    /// Gardener's error code.
    pub(super) fn code(&self) -> Option<ErrorCode> {
        match &self.kind {
            Kind::Token => Some(ErrorCode::InfraUnauthenticated),
            // A network problem between here and Azure, which no one in particular has to fix.
            Kind::Nobody => None,
            Kind::Reply { status, codes } => {
                // In the format of the SDK, so that the error gets the same code as the same error of a machine.
                let codes: String = codes.iter().rev().map(|code| format!("ERROR CODE: {code}\n")).collect();
                let text = format!("RESPONSE {status}\n{codes}{}", self.text);
                Azure.error_codes(None, &text).into_iter().next()
            }
        }
    }

    /// Converts it to the failure of a pool.
    pub(super) fn failure(&self) -> DependencyFailure {
        DependencyFailure { message: self.to_string(), code: self.code() }
    }
}

/// Whether the authority refused the request, as opposed to not answering.
fn is_refusal(error: &azure_core::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(current) = cause {
        let cached = current.downcast_ref::<azure_core::Error>().map(azure_core::Error::kind);
        match cached {
            Some(ErrorKind::HttpResponse { status, .. }) => return (400..500).contains(&u16::from(*status)),
            Some(ErrorKind::Io | ErrorKind::Connection | ErrorKind::DataConversion) => return false,
            _ => cause = current.source(),
        }
    }
    // Refused before any request was sent.
    true
}

/// Text of an error and its causes, without the SDK's remarks about retries.
fn text_of(error: &azure_core::Error) -> String {
    const ABOUT_RETRIES: [&str; 2] = ["non-transport error occurred", "retry policy expired"];
    let mut texts: Vec<String> = Vec::new();
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(current) = cause {
        let text = readable(&current.to_string());
        let is_news = !texts.iter().any(|before| before.contains(&text));
        if is_news && !ABOUT_RETRIES.iter().any(|about| text.starts_with(about)) {
            texts.push(text);
        }
        cause = current.source();
    }
    texts.join(": ").chars().take(LONGEST_TEXT).collect()
}

/// The meaningful first line of a text without its variable parts, because a status must not change with every retry.
fn readable(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let line = [" Trace ID:", " Correlation ID:", " Timestamp:"]
        .iter()
        .fold(line, |line, changing| line.split_once(changing).map_or(line, |(before, _)| before));
    line.trim().chars().take(LONGEST_TEXT).collect()
}

#[cfg(test)]
mod tests {
    use azure_core::http::headers::Headers;
    use azure_core::http::{AsyncRawResponse, StatusCode, check_success};

    use super::*;

    async fn responded(status: u16, body: &str) -> AzureError {
        let response = AsyncRawResponse::from_bytes(StatusCode::from(status), Headers::new(), body.to_owned());
        AzureError::of("creating scale set x", check_success(response, None).await.unwrap_err())
    }

    fn error(code: &str, message: &str) -> String {
        serde_json::json!({"error": {"code": code, "message": message}}).to_string()
    }

    #[tokio::test]
    async fn codes_of_azure_go_before_words() {
        use ErrorCode::*;
        for (status, code, text, expected) in [
            (
                401,
                "InvalidAuthenticationTokenTenant",
                "The access token is from the wrong issuer",
                Some(InfraUnauthenticated),
            ),
            (403, "AuthorizationFailed", "The client 'x' does not have authorization", Some(InfraUnauthorized)),
            (403, "RequestDisallowedByPolicy", "Resource was disallowed by policy", Some(ConfigurationProblem)),
            (404, "SubscriptionNotFound", "The subscription 'x' could not be found.", Some(InfraUnauthenticated)),
            (404, "ResourceGroupNotFound", "Resource group 'rg' could not be found.", Some(ConfigurationProblem)),
            (409, "Conflict", "Another operation is in progress", None),
            (409, "OperationNotAllowed", "Scale set is being updated, please retry later", None),
            (409, "OperationNotAllowed", "exceeding approved Total Regional Cores quota", Some(InfraQuotaExceeded)),
            (409, "PropertyChangeNotAllowed", "Changing property is not allowed.", Some(ConfigurationProblem)),
            (409, "ReadOnlyDisabledSubscription", "The subscription is disabled", Some(InfraDependencies)),
            (429, "OperationGroupThrottled", "Too many requests", Some(InfraRateLimitsExceeded)),
            (429, "Whatever", "slow down", Some(InfraRateLimitsExceeded)),
            (500, "InternalServerError", "Encountered internal server error.", Some(RetryableInfraDependencies)),
            (400, "SkuNotAvailable", "The requested size is not available", Some(InfraResourcesDepleted)),
            (400, "NeverHeardOf", "not available in the current hardware cluster", Some(InfraResourcesDepleted)),
            (400, "NeverHeardOf", "something", None),
        ] {
            let error = responded(status, &error(code, text)).await;
            assert_eq!(error.code(), expected, "{status} {code}");
        }
    }

    #[tokio::test]
    async fn inner_codes_count_too() {
        let body =
            r#"{"error":{"code":"DeploymentFailed","message":"m","details":[{"code":"QuotaExceeded","message":"q"}]}}"#;
        assert_eq!(responded(400, body).await.code(), Some(ErrorCode::InfraQuotaExceeded));
    }

    #[tokio::test]
    async fn only_what_passes_by_itself_is_a_conflict() {
        for (status, code, text, expected) in [
            (409, "Conflict", "busy", true),
            (409, "OperationNotAllowed", "retry later", true),
            (409, "OperationNotAllowed", "exceeding approved cores quota", false),
            (409, "PropertyChangeNotAllowed", "never", false),
            (400, "Conflict", "no", false),
        ] {
            assert_eq!(responded(status, &error(code, text)).await.is_conflict(), expected, "{status} {code} {text}");
        }
        assert!(responded(409, "").await.is_conflict());
    }

    #[tokio::test]
    async fn a_text_is_one_line_and_the_same_each_time() {
        let text = "AADSTS7000215: Invalid client secret. Trace ID: 1 Correlation ID: 2 Timestamp: 3\nvisit https://x";
        assert_eq!(readable(text), "AADSTS7000215: Invalid client secret.");
        let error = responded(403, &error("AuthorizationFailed", "no right")).await;
        assert_eq!(error.to_string(), "creating scale set x: AuthorizationFailed: no right");
        assert!(responded(502, &"x".repeat(9000)).await.to_string().len() < 500);
    }
}

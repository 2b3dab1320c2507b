//! The last step of every request: whether it may go, where it really goes, and how long it may take.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use azure_core::error::ErrorKind;
use azure_core::http::{AsyncRawResponse, HttpClient, Method, Request, Transport};

use super::addresses::Addresses;
use crate::cloud::{WriteAccess, WriteCheck};

/// How long an answer may take to begin.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

struct FencedTransport {
    addresses: Addresses,
    write_check: WriteCheck,
    client: Arc<dyn HttpClient>,
}

impl fmt::Debug for FencedTransport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("FencedTransport").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

/// A transport that sends requests to these addresses by that client, and changes only while the process may write. One is enough for a
/// process: it keeps connections.
pub(super) fn transport(client: Arc<dyn HttpClient>, addresses: Addresses, write_check: WriteCheck) -> Transport {
    Transport::new(Arc::new(FencedTransport { addresses, write_check, client }))
}

#[async_trait]
impl HttpClient for FencedTransport {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<AsyncRawResponse> {
        // Asking for a token is a POST.
        let changes = matches!(request.method(), Method::Put | Method::Patch | Method::Delete);
        if changes && (self.write_check)() != WriteAccess::Allowed {
            return Err(azure_core::Error::with_message(ErrorKind::Other, "not changed: this process doesn't lead"));
        }
        let send = async {
            match self.addresses.instead_of(request.url()) {
                None => self.client.execute_request(request).await,
                Some(url) => {
                    let mut request = request.clone();
                    *request.url_mut() = url;
                    self.client.execute_request(&request).await
                }
            }
        };
        let late = |_| azure_core::Error::with_message(ErrorKind::Io, format!("no answer within {REQUEST_TIMEOUT:?}"));
        tokio::time::timeout(REQUEST_TIMEOUT, send).await.map_err(late)?
    }
}

//! Last step of every request: checks write access, replaces the address and limits the time.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use azure_core::error::ErrorKind;
use azure_core::http::{AsyncRawResponse, HttpClient, Method, Request, Transport};

use super::addresses::Addresses;
use crate::cloud::{WriteAccess, WriteCheck};

/// Time limit until a response begins.
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

/// A transport that sends requests to these addresses through that client, and changes only while the process may
/// write. A process should have only one, because it holds the connections.
pub(super) fn transport(client: Arc<dyn HttpClient>, addresses: Addresses, write_check: WriteCheck) -> Transport {
    Transport::new(Arc::new(FencedTransport { addresses, write_check, client }))
}

#[async_trait]
impl HttpClient for FencedTransport {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<AsyncRawResponse> {
        // POST is allowed, because it requests a token.
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

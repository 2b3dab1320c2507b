//! Request bodies, with a memory limit for all of them together.
//!
//! Memory is counted as bytes arrive, so a body that has only begun takes none. If the limit is reached, the oldest
//! unfinished body is cancelled to make room. Only bodies whose requests are being answered are waited for.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{StatusCode, header};
use futures::StreamExt as _;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use super::connections::InFlightRequest;

/// Maximum duration of reading a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyError {
    /// It is larger than any legitimate body.
    #[error("the body has more than {}", size(*largest))]
    TooLarge { largest: usize },
    /// The client closed the connection or violated HTTP.
    #[error("the body ended early")]
    Broken,
    /// The client sends too slowly.
    #[error("the body took too long")]
    TooSlow,
    /// It was unfinished when others needed its memory.
    #[error("too many bodies at once; try again")]
    NoMemory,
}

impl BodyError {
    /// The HTTP status for this error.
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Broken => StatusCode::BAD_REQUEST,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::NoMemory => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

fn size(bytes: usize) -> String {
    if bytes < 1 << 20 { format!("{} KiB", bytes >> 10) } else { format!("{} MiB", bytes >> 20) }
}

/// Memory for the bodies of one port.
pub(crate) struct BodyMemory {
    largest: usize,
    state: Mutex<State>,
    freed: Notify,
}

struct State {
    free: usize,
    next: u64,
    /// Unfinished bodies, oldest first.
    unfinished: BTreeMap<u64, Unfinished>,
}

struct Unfinished {
    bytes: usize,
    /// Cancels the reader when dropped.
    _cancel: oneshot::Sender<Infallible>,
}

/// Result of reserving memory for received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reservation {
    Granted,
    /// Requests that are being answered take too much memory.
    Full,
    /// Their own body was cancelled to make room.
    Cancelled,
}

impl State {
    fn begin(&mut self) -> (u64, oneshot::Receiver<Infallible>) {
        let (_cancel, cancelled) = oneshot::channel();
        self.next += 1;
        self.unfinished.insert(self.next, Unfinished { bytes: 0, _cancel });
        (self.next, cancelled)
    }

    fn reserve(&mut self, id: u64, bytes: usize) -> Reservation {
        let unfinished: usize = self.unfinished.values().map(|body| body.bytes).sum();
        if self.free + unfinished < bytes {
            return Reservation::Full;
        }
        while self.free < bytes {
            let oldest = self.unfinished.iter().find(|(_, body)| body.bytes > 0).map(|(id, _)| *id);
            self.free += oldest.and_then(|oldest| self.unfinished.remove(&oldest)).map_or(0, |body| body.bytes);
        }
        let Some(body) = self.unfinished.get_mut(&id) else { return Reservation::Cancelled };
        body.bytes += bytes;
        self.free -= bytes;
        Reservation::Granted
    }
}

impl BodyMemory {
    /// Allows bodies of at most `largest` bytes each and `total` bytes together.
    pub(crate) fn new(largest: usize, total: usize) -> Arc<Self> {
        let state = State { free: total, next: 0, unfinished: BTreeMap::new() };
        Arc::new(Self { largest, state: Mutex::new(state), freed: Notify::new() })
    }

    /// Reads the body of a request and returns it with its reserved memory.
    pub(crate) async fn read(self: &Arc<Self>, request: Request) -> Result<(Bytes, UsedMemory), BodyError> {
        let announced = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
        let announced: Option<usize> = announced.and_then(|value| value.parse().ok());
        if announced.is_some_and(|announced| announced > self.largest) {
            return Err(BodyError::TooLarge { largest: self.largest });
        }
        let in_flight = request.extensions().get::<Arc<InFlightRequest>>().map(Arc::clone);
        let read = timeout(BODY_TIMEOUT, Reader::new(self).read(request.into_body())).await;
        let read = read.map_err(|_| BodyError::TooSlow)??;
        if let Some(in_flight) = in_flight {
            in_flight.has_been_received();
        }
        Ok(read)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn free(&self, bytes: usize) {
        self.state().free += bytes;
        self.freed.notify_waiters();
    }
}

/// Memory of a finished body, released when dropped.
pub(crate) struct UsedMemory {
    memory: Arc<BodyMemory>,
    bytes: usize,
}

impl Drop for UsedMemory {
    fn drop(&mut self) {
        self.memory.free(self.bytes);
    }
}

struct Reader {
    memory: Arc<BodyMemory>,
    id: u64,
    cancelled: oneshot::Receiver<Infallible>,
}

impl Reader {
    fn new(memory: &Arc<BodyMemory>) -> Self {
        let (id, cancelled) = memory.state().begin();
        Self { memory: Arc::clone(memory), id, cancelled }
    }

    async fn read(mut self, body: Body) -> Result<(Bytes, UsedMemory), BodyError> {
        let largest = self.memory.largest;
        let mut chunks = body.into_data_stream();
        let mut bytes = Vec::new();
        loop {
            let chunk = tokio::select! {
                chunk = chunks.next() => chunk,
                _ = &mut self.cancelled => return Err(BodyError::NoMemory),
            };
            let Some(chunk) = chunk else { break };
            let chunk = chunk.map_err(|_| BodyError::Broken)?;
            if bytes.len() + chunk.len() > largest {
                return Err(BodyError::TooLarge { largest });
            }
            self.reserve(chunk.len()).await?;
            bytes.extend_from_slice(&chunk);
        }
        // Finished: from here on it can't be cancelled to make room.
        let finished = self.memory.state().unfinished.remove(&self.id).ok_or(BodyError::NoMemory)?;
        Ok((bytes.into(), UsedMemory { memory: Arc::clone(&self.memory), bytes: finished.bytes }))
    }

    async fn reserve(&mut self, bytes: usize) -> Result<(), BodyError> {
        loop {
            let freed = self.memory.freed.notified();
            let taken = self.memory.state().reserve(self.id, bytes);
            match taken {
                Reservation::Granted => return Ok(()),
                Reservation::Cancelled => return Err(BodyError::NoMemory),
                Reservation::Full => {}
            }
            tokio::select! {
                () = freed => {}
                _ = &mut self.cancelled => return Err(BodyError::NoMemory),
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let unfinished = self.memory.state().unfinished.remove(&self.id);
        if let Some(Unfinished { bytes, _cancel }) = unfinished {
            self.memory.free(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(free: usize) -> State {
        State { free, next: 0, unfinished: BTreeMap::new() }
    }

    #[test]
    fn a_body_that_only_begins_takes_nothing_and_loses_nothing() {
        let mut state = state(10);
        let (mut empty, (large, _), (next, _)) = (state.begin().1, state.begin(), state.begin());
        assert_eq!(state.reserve(large, 10), Reservation::Granted);
        assert_eq!(state.reserve(next, 4), Reservation::Granted);
        assert_eq!(empty.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        assert_eq!((state.reserve(large, 1), state.free), (Reservation::Cancelled, 6));
    }

    #[test]
    fn oldest_body_yields_even_to_its_own_growth() {
        let mut state = state(10);
        let ((first, mut first_given_up), (second, mut second_given_up)) = (state.begin(), state.begin());
        assert_eq!((state.reserve(first, 5), state.reserve(second, 5)), (Reservation::Granted, Reservation::Granted));
        assert_eq!(state.reserve(first, 1), Reservation::Cancelled);
        assert_eq!(first_given_up.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert_eq!((state.reserve(second, 5), state.free), (Reservation::Granted, 0));
        assert_eq!(second_given_up.try_recv(), Err(oneshot::error::TryRecvError::Empty));
    }

    #[tokio::test]
    async fn waits_for_requests_in_flight() {
        let memory = BodyMemory::new(10, 10);
        let request = |text: &'static str| Request::new(Body::from(text));
        let (first, used) = memory.read(request("0123456789")).await.unwrap();
        let mut second = tokio::spawn({
            let memory = Arc::clone(&memory);
            async move { memory.read(request("abc")).await.map(|(bytes, _)| bytes) }
        });
        assert!(timeout(Duration::from_millis(50), &mut second).await.is_err(), "beside {first:?} there is no room");
        drop(used);
        assert_eq!(second.await.unwrap().unwrap(), "abc");
        assert_eq!(memory.state().free, 10);
        let error = memory.read(request("0123456789+")).await.map(|(bytes, _)| bytes).unwrap_err();
        assert_eq!((error, memory.state().free), (BodyError::TooLarge { largest: 10 }, 10));
    }
}

//! The open connections of a port, and when to close them. A connection is closed if it stays in a stage for too
//! long. If there is no room for another one, the oldest connection in the most crowded stage is closed. A flood
//! therefore makes room at its own expense and blocks no other client.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot};
use tokio::time::{sleep, timeout};

/// Time limit from the TCP connection to the end of the first head: handshake, preface and header fields together.
const OPENING_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum idle time between requests. Clients with HTTP/2 get a GOAWAY before, so that none of their requests is lost.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(50);
/// Time limit for receiving or sending a body. The receiver of a request body gives up earlier, with an error.
const TRANSFER_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for running requests to end when the server stops.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(8);
/// Time for an idle client to learn that it has to reconnect, so that none of its requests is lost.
const GOAWAY_GRACE: Duration = Duration::from_millis(500);
/// Maximum number of connections that get [`GOAWAY_GRACE`] at a time. More of them are a flood and are closed
/// immediately.
const MAX_CLOSING: usize = 16;
/// Pause between attempts to make room. In each turn, all data that has arrived is read.
const TURN: Duration = Duration::from_millis(10);
/// Number of turns for which no new connection is closed, so that a prompt client is served even in a flood. Time
/// would not work: a throttled process, for example by its CPU limit, may not have read yet what clients sent.
const MIN_TURNS: u64 = 5;

/// Stage of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// No complete head has arrived yet.
    Opening,
    /// Between two requests. A client that gets a GOAWAY now reconnects.
    Idle,
    /// A body is being received or sent, so the client has to act.
    Transferring,
    /// The server has to act. Such a connection is never closed to make room.
    Answering,
}

/// A point in time, by the clock and in turns.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Moment {
    at: Instant,
    turn: u64,
}

/// A running request.
struct Request {
    is_in_flight: bool,
    since: Moment,
}

struct Connection {
    /// When it was opened, or when its last request ended.
    quiet_since: Moment,
    /// Whether a request was received completely.
    has_completed_request: bool,
    requests: BTreeMap<u64, Request>,
    /// Closes the connection within the time limit for running requests. `None` once it was used.
    close: Option<oneshot::Sender<Duration>>,
}

impl Connection {
    /// The stage, and since when the connection is in it.
    fn stage(&self) -> (Stage, Moment) {
        if self.requests.values().any(|request| request.is_in_flight) {
            return (Stage::Answering, self.quiet_since);
        }
        match self.requests.values().map(|request| request.since).min() {
            Some(since) => (Stage::Transferring, since),
            None if self.has_completed_request => (Stage::Idle, self.quiet_since),
            None => (Stage::Opening, self.quiet_since),
        }
    }

    fn is_overdue(&self, now: Instant, idle_timeout: Duration) -> bool {
        let is_over = |since: Moment, limit: Duration| now.saturating_duration_since(since.at) > limit;
        let mut transfers = self.requests.values().filter(|request| !request.is_in_flight);
        transfers.any(|request| is_over(request.since, TRANSFER_TIMEOUT))
            || match self.stage() {
                (Stage::Opening, since) => is_over(since, OPENING_TIMEOUT),
                (Stage::Idle, since) => is_over(since, idle_timeout),
                (Stage::Transferring | Stage::Answering, _) => false,
            }
    }
}

struct State {
    idle_timeout: Duration,
    next: u64,
    /// In the order in which they were opened.
    open: BTreeMap<u64, Connection>,
    /// Number of turns spent waiting for room.
    turn: u64,
    evicted: u64,
}

impl State {
    fn new(idle_timeout: Duration) -> Self {
        Self { idle_timeout, next: 0, open: BTreeMap::new(), turn: 0, evicted: 0 }
    }

    fn next(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn moment(&self, at: Instant) -> Moment {
        Moment { at, turn: self.turn }
    }

    fn open(&mut self, now: Instant) -> (u64, oneshot::Receiver<Duration>) {
        let (close, closed) = oneshot::channel();
        let id = self.next();
        let quiet_since = self.moment(now);
        let requests = BTreeMap::new();
        self.open.insert(id, Connection { quiet_since, has_completed_request: false, requests, close: Some(close) });
        (id, closed)
    }

    /// Whether another connection may be opened, if necessary after closing one.
    fn make_room(&mut self, most: usize) -> bool {
        // Closing connections occupy file descriptors until they have ended.
        if self.open.len() >= most + 2 * MAX_CLOSING {
            return false;
        }
        let staying = || self.open.iter().filter(|(_, connection)| connection.close.is_some());
        if staying().count() < most {
            return true;
        }
        let mut stages: BTreeMap<Stage, (usize, Option<(Moment, u64)>)> = BTreeMap::new();
        for (id, connection) in staying() {
            let (stage, since) = connection.stage();
            let (count, oldest) = stages.entry(stage).or_default();
            *count += 1;
            *oldest = Some(oldest.map_or((since, *id), |oldest| oldest.min((since, *id))));
        }
        stages.remove(&Stage::Answering);
        let flood = stages.into_values().max_by_key(|(count, _)| *count);
        let Some((since, id)) = flood.and_then(|(_, oldest)| oldest) else { return false };
        if self.turn - since.turn < MIN_TURNS {
            return false;
        }
        self.close(id, Duration::ZERO);
        self.evicted += 1;
        true
    }

    fn close_overdue(&mut self, now: Instant) {
        let is_overdue = |(_, connection): &(&u64, &Connection)| connection.is_overdue(now, self.idle_timeout);
        let overdue = self.open.iter().filter(is_overdue).map(|(id, _)| *id);
        for id in overdue.collect::<Vec<_>>() {
            self.close(id, Duration::ZERO);
        }
    }

    fn close_all(&mut self) {
        for id in self.open.keys().copied().collect::<Vec<_>>() {
            self.close(id, SHUTDOWN_GRACE);
        }
    }

    /// Closes a connection; if a request is running, after at most `in_flight`.
    fn close(&mut self, id: u64, in_flight: Duration) {
        let closing = self.open.values().filter(|connection| connection.close.is_none()).count();
        let Some(connection) = self.open.get_mut(&id) else { return };
        let limit = match connection.stage().0 {
            Stage::Idle if closing < MAX_CLOSING => GOAWAY_GRACE,
            Stage::Opening | Stage::Idle => Duration::ZERO,
            Stage::Transferring | Stage::Answering => in_flight,
        };
        if let Some(close) = connection.close.take() {
            // Without a receiver the connection has already ended.
            let _ = close.send(limit);
        }
    }

    fn begin_request(&mut self, connection: u64, now: Instant) -> u64 {
        let id = self.next();
        let since = self.moment(now);
        if let Some(connection) = self.open.get_mut(&connection) {
            connection.requests.insert(id, Request { is_in_flight: false, since });
        }
        id
    }

    fn set_in_flight(&mut self, connection: u64, request: u64, is_in_flight: bool, now: Instant) {
        let since = self.moment(now);
        let Some(connection) = self.open.get_mut(&connection) else { return };
        connection.has_completed_request |= is_in_flight;
        if let Some(request) = connection.requests.get_mut(&request) {
            *request = Request { is_in_flight, since };
        }
    }

    fn end_request(&mut self, connection: u64, request: u64, now: Instant) {
        let quiet_since = self.moment(now);
        if let Some(connection) = self.open.get_mut(&connection) {
            connection.requests.remove(&request);
            connection.quiet_since = quiet_since;
        }
    }
}

/// The open connections of one port.
pub(super) struct Connections {
    most: usize,
    state: Mutex<State>,
    ended: Notify,
}

impl Connections {
    /// Allows at most `most` connections, each of which may be idle between requests for `idle_timeout`.
    pub(super) fn new(most: usize, idle_timeout: Duration) -> Arc<Self> {
        Arc::new(Self { most, state: Mutex::new(State::new(idle_timeout)), ended: Notify::new() })
    }

    /// Waits until another connection may be opened: only while all others are being answered, or while those that could
    /// be closed are too new.
    pub(super) async fn room(&self) {
        while !self.state().make_room(self.most) {
            sleep(TURN).await;
            self.state().turn += 1;
        }
    }

    /// Opens a connection. The receiver gets a time limit for running requests when the connection has to close.
    pub(super) fn open(self: &Arc<Self>) -> (OpenConnection, oneshot::Receiver<Duration>) {
        let (id, close) = self.state().open(Instant::now());
        (OpenConnection { connections: Arc::clone(self), id }, close)
    }

    /// Closes connections that stay in a stage for too long.
    pub(super) fn close_overdue(&self) {
        self.state().close_overdue(Instant::now());
    }

    /// Number of connections closed to make room since the last call.
    pub(super) fn take_evicted(&self) -> u64 {
        std::mem::take(&mut self.state().evicted)
    }

    /// Closes all connections and waits for them. Returns whether all running requests have ended.
    pub(super) async fn close_all(&self) -> bool {
        self.state().close_all();
        let all_closed = async {
            loop {
                let ended = self.ended.notified();
                if self.state().open.is_empty() {
                    return;
                }
                ended.await;
            }
        };
        timeout(SHUTDOWN_GRACE, all_closed).await.is_ok()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

pub(super) struct OpenConnection {
    connections: Arc<Connections>,
    id: u64,
}

impl OpenConnection {
    pub(super) fn requests(&self) -> RequestsOfConnection {
        RequestsOfConnection { connections: Arc::clone(&self.connections), connection: self.id }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.connections.state().open.remove(&self.id);
        self.connections.ended.notify_waiters();
    }
}

/// Tracks the requests of one connection.
#[derive(Clone)]
pub(super) struct RequestsOfConnection {
    connections: Arc<Connections>,
    connection: u64,
}

impl RequestsOfConnection {
    /// Called when the head of a request has arrived.
    pub(super) fn begin(&self) -> InFlightRequest {
        let id = self.connections.state().begin_request(self.connection, Instant::now());
        InFlightRequest { of: self.clone(), id }
    }
}

/// A request from its head to the end of its response.
pub(crate) struct InFlightRequest {
    of: RequestsOfConnection,
    id: u64,
}

impl InFlightRequest {
    pub(super) fn has_been_received(&self) {
        self.set_in_flight(true);
    }

    pub(super) fn is_being_sent(&self) {
        self.set_in_flight(false);
    }

    fn set_in_flight(&self, is_in_flight: bool) {
        let RequestsOfConnection { connections, connection } = &self.of;
        connections.state().set_in_flight(*connection, self.id, is_in_flight, Instant::now());
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        let RequestsOfConnection { connections, connection } = &self.of;
        connections.state().end_request(*connection, self.id, Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens one connection per second.
    struct Opened {
        state: State,
        now: Instant,
    }

    impl Opened {
        fn new() -> Self {
            Self { state: State::new(IDLE_TIMEOUT), now: Instant::now() }
        }

        fn open(&mut self) -> (u64, oneshot::Receiver<Duration>) {
            self.now += Duration::from_secs(1);
            self.state.open(self.now)
        }

        fn idle(&mut self) -> (u64, oneshot::Receiver<Duration>) {
            let (id, close) = self.open();
            let request = self.state.begin_request(id, self.now);
            self.state.set_in_flight(id, request, true, self.now);
            self.state.end_request(id, request, self.now);
            (id, close)
        }

        fn transferring(&mut self) -> (u64, oneshot::Receiver<Duration>) {
            let (id, close) = self.open();
            self.state.begin_request(id, self.now);
            (id, close)
        }

        fn answering(&mut self) -> (u64, oneshot::Receiver<Duration>) {
            let (id, close) = self.open();
            let request = self.state.begin_request(id, self.now);
            self.state.set_in_flight(id, request, true, self.now);
            (id, close)
        }
    }

    #[test]
    fn a_flood_makes_room_at_its_own_expense() {
        type Open = fn(&mut Opened) -> (u64, oneshot::Receiver<Duration>);
        for flood in [Opened::open as Open, Opened::idle, Opened::transferring] {
            let mut opened = Opened::new();
            let mut others = [opened.open().1, opened.idle().1, opened.transferring().1, opened.answering().1];
            let mut flood: Vec<_> = (0..20).map(|_| flood(&mut opened).1).collect();
            opened.state.turn += MIN_TURNS;
            assert!(opened.state.make_room(25), "there is room without it");
            for _ in 0..8 {
                assert!(opened.state.make_room(24));
                opened.open();
            }
            let closed = flood.iter_mut().filter_map(|close| close.try_recv().ok()).count();
            // The older one in the same stage.
            let others = others.iter_mut().filter_map(|close| close.try_recv().ok()).count();
            assert_eq!((closed, others), (7, 1));
        }
    }

    #[test]
    fn waits_for_responses_in_flight() {
        let mut opened = Opened::new();
        let mut close = opened.answering().1;
        opened.state.turn += MIN_TURNS;
        assert!(!opened.state.make_room(1));
        opened.state.close_overdue(opened.now + IDLE_TIMEOUT);
        assert!(close.try_recv().is_err());
    }

    #[test]
    fn a_flood_that_is_closed_gets_no_time_to_keep_descriptors() {
        let mut opened = Opened::new();
        let mut held: Vec<_> = (0..40).map(|_| opened.idle().1).collect();
        opened.state.turn += MIN_TURNS;
        assert!(!opened.state.make_room(1), "40 are open although 1 may be");
        opened.state.close_all();
        let limits: Vec<Duration> = held.iter_mut().map(|close| close.try_recv().unwrap()).collect();
        assert_eq!(limits.iter().filter(|limit| **limit == GOAWAY_GRACE).count(), MAX_CLOSING);
        assert_eq!(limits.iter().filter(|limit| limit.is_zero()).count(), 40 - MAX_CLOSING);
    }

    #[test]
    fn whoever_has_just_come_is_waited_for() {
        let mut opened = Opened::new();
        let mut close = opened.open().1;
        for _ in 0..MIN_TURNS {
            assert!(!opened.state.make_room(1));
            assert!(close.try_recv().is_err());
            opened.state.turn += 1;
        }
        assert!(opened.state.make_room(1));
        assert!(close.try_recv().is_ok());
    }

    #[test]
    fn every_stage_of_a_client_ends() {
        let mut opened = Opened::new();
        let mut opening = opened.open().1;
        let mut idle = opened.idle().1;
        let mut transferring = opened.transferring().1;
        let mut answering = opened.answering().1;
        let mut closed_after = |limit: Duration| {
            opened.state.close_overdue(opened.now + limit);
            [&mut opening, &mut idle, &mut transferring, &mut answering].map(|close| close.try_recv().is_ok())
        };
        assert_eq!(closed_after(Duration::ZERO), [false; 4]);
        assert_eq!(closed_after(OPENING_TIMEOUT), [true, false, false, false]);
        assert_eq!(closed_after(TRANSFER_TIMEOUT), [false, false, true, false]);
        assert_eq!(closed_after(IDLE_TIMEOUT), [false, true, false, false]);
        assert_eq!(closed_after(IDLE_TIMEOUT * 9), [false; 4]);
    }

    #[test]
    fn slow_body_is_overdue_despite_other_requests() {
        let mut opened = Opened::new();
        let (id, mut close) = opened.transferring();
        let other = opened.state.begin_request(id, opened.now);
        opened.state.set_in_flight(id, other, true, opened.now);
        opened.state.close_overdue(opened.now + TRANSFER_TIMEOUT * 2);
        assert!(close.try_recv().is_ok());
    }
}

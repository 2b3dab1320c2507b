//! The controllers of a life: the program's own code, each as a process of its own that can be killed, cut off, and begins anew.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use gardener_extension_worker::simulation;
use jiff::{SignedDuration, Timestamp};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::network::Network;

/// Until a process that has ended by itself begins anew.
const RESTART: Duration = Duration::from_secs(2);

/// A controller.
pub(crate) struct Controller {
    pub(crate) author: &'static str,
    arguments: &'static [&'static str],
    network: Network,
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// How far its clock is ahead, in milliseconds.
    ahead: Arc<AtomicI64>,
    task: Option<JoinHandle<()>>,
}

impl Controller {
    /// One that does not run yet.
    pub(crate) fn new(
        network: &Network,
        author: &'static str,
        arguments: &'static [&'static str],
        now: &Arc<dyn Fn() -> Timestamp + Send + Sync>,
    ) -> Self {
        let (network, now) = (network.clone(), Arc::clone(now));
        Self { author, arguments, network, now, ahead: Arc::default(), task: None }
    }

    /// Sets its clock.
    pub(crate) fn set_ahead(&self, millis: i64) {
        self.ahead.store(millis, Ordering::Relaxed);
    }

    /// Starts it.
    pub(crate) fn start(&mut self) {
        self.kill();
        self.network.trace.note(self.author, "starts");
        let (network, author, arguments) = (self.network.clone(), self.author, self.arguments);
        let (now, ahead) = (Arc::clone(&self.now), Arc::clone(&self.ahead));
        self.task = Some(tokio::spawn(async move {
            loop {
                let (now, ahead) = (Arc::clone(&now), Arc::clone(&ahead));
                // No two processes begin in the same nanosecond, and they are told apart by that.
                let own = SignedDuration::from_nanos(author.bytes().map(i64::from).sum());
                let clock = move || now() + own + SignedDuration::from_millis(ahead.load(Ordering::Relaxed));
                let connect = || network.connection(author);
                let ended = simulation::run(arguments, connect, clock, pending()).await;
                let why = ended.err().map_or_else(|| "ends".to_owned(), |error| format!("ends: {error:#}"));
                network.trace.note(author, why);
                network.forget();
                sleep(RESTART).await;
            }
        }));
    }

    /// Kills it: what it has sent is on its way, and nothing else is left of it.
    pub(crate) fn kill(&mut self) {
        if let Some(task) = self.task.take() {
            self.network.trace.note(self.author, "is killed");
            self.network.forget();
            task.abort();
        }
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

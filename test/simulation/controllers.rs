//! The controllers of a life: the program's own code. Each runs as a separate process that can be killed, suspended,
//! disconnected and restarted.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use gardener_extension_worker::simulation;
use jiff::{SignedDuration, Timestamp};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::dependency::{Dependencies, WAY, Way};
use crate::network::Network;

/// Delay before a process that has ended is restarted.
const RESTART: Duration = Duration::from_secs(2);

/// A controller process.
pub(crate) struct Controller {
    pub(crate) author: &'static str,
    arguments: &'static [&'static str],
    /// Its roll budget.
    budget: Option<usize>,
    network: Network,
    /// The cloud that pools depend on.
    dependencies: Dependencies,
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// How far its clock is ahead, in milliseconds.
    ahead: Arc<AtomicI64>,
    task: Option<JoinHandle<()>>,
}

impl Controller {
    /// A controller that is not running yet.
    pub(crate) fn new(
        network: &Network,
        author: &'static str,
        arguments: &'static [&'static str],
        now: &Arc<dyn Fn() -> Timestamp + Send + Sync>,
    ) -> Self {
        let (network, now) = (network.clone(), Arc::clone(now));
        Self { author, arguments, budget: None, network, dependencies: None, now, ahead: Arc::default(), task: None }
    }

    /// Adds a cloud that pools depend on.
    pub(crate) fn depending_on(mut self, dependencies: &Dependencies) -> Self {
        self.dependencies.clone_from(dependencies);
        self
    }

    /// Sets the roll budget from the next start.
    pub(crate) fn set_budget(&mut self, budget: Option<usize>) {
        self.budget = budget;
    }

    pub(crate) fn set_ahead(&self, millis: i64) {
        self.ahead.store(millis, Ordering::Relaxed);
    }

    /// Starts or restarts the process.
    pub(crate) fn start(&mut self) {
        self.kill();
        self.network.trace.note(self.author, "starts");
        let (network, author) = (self.network.clone(), self.author);
        let budget = self.budget.map(|budget| format!("--roll-budget={budget}"));
        let arguments: Vec<String> =
            self.arguments.iter().map(|argument| (*argument).to_owned()).chain(budget).collect();
        let (now, ahead) = (Arc::clone(&self.now), Arc::clone(&self.ahead));
        let dependencies = self.dependencies.clone();
        self.task = Some(tokio::spawn(async move {
            loop {
                let (now, ahead) = (Arc::clone(&now), Arc::clone(&ahead));
                // In reality, no two processes start in the same nanosecond, and their identity depends on the start
                // time.
                let own = SignedDuration::from_nanos(author.bytes().map(i64::from).sum());
                let clock = move || now() + own + SignedDuration::from_millis(ahead.load(Ordering::Relaxed));
                let connect = || network.connection(author);
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                let run = |clouds| simulation::run(&arguments, clouds, connect, clock, pending());
                let ended = match &dependencies {
                    None => network.unless_suspended(author, run(&[])).await,
                    Some(dependency) => {
                        let process = network.unless_suspended(author, run(dependency.clouds()));
                        let way = Way { network: network.clone(), author, router: dependency.router() };
                        WAY.scope(way, process).await
                    }
                };
                let why = ended.err().map_or_else(|| "ends".to_owned(), |error| format!("ends: {error:#}"));
                network.trace.note(author, why);
                network.forget();
                sleep(RESTART).await;
            }
        }));
    }

    /// Kills the process. Requests that it has sent still arrive.
    pub(crate) fn kill(&mut self) {
        if let Some(task) = self.task.take() {
            self.network.trace.note(self.author, "is killed");
            self.network.forget();
            task.abort();
        }
    }

    /// Suspends the process for this time, then resumes it.
    pub(crate) async fn suspend(&self, time: Duration) {
        self.network.trace.note(self.author, "is suspended");
        self.network.suspend(self.author);
        sleep(time).await;
        self.network.trace.note(self.author, "goes on");
        self.network.resume(self.author);
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

//! Leader election on a Lease, and membership of a shard by a Lease of its own, with optimistic locking. Every write
//! carries the resource version that was read, so two processes can't both win. kube has no leader election.

use anyhow::Context;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, info, warn};

use crate::process::clock::Clock;
use crate::process::failure_reason::reason;
use crate::process::leadership::Leadership;
use crate::process::lease::{Claim, Decision, LeaseTimes, Observed, Role, observe, observe_own, released};
use crate::process::shard::Shard;

/// Default name of the lease. It differs from that of the Go extension, because both can run next to each other with
/// different controllers enabled.
pub const LEASE: &str = "gardener-extension-worker-leader-election";

pub struct Candidate {
    own: LeaseClaim,
    /// The lease of leaders, which all shards of a ring hold together.
    of_ring: Option<LeaseClaim>,
    leadership: Leadership,
    clock: Clock,
    /// Whether this process has ever held its own lease.
    has_held: bool,
}

/// A lease that this process tries to hold, and its last known state.
struct LeaseClaim {
    api: Api<Lease>,
    name: String,
    claim: Claim,
    observed: Option<Observed>,
    /// The last known resource version of the lease.
    version: Option<u64>,
}

/// Why an attempt did not end in leadership.
#[derive(Debug, thiserror::Error)]
enum AttemptError {
    #[error("another candidate was faster")]
    Lost,
    #[error("the version of the lease went back from {before} to {now}: etcd was restored from a backup")]
    Restored { before: u64, now: u64 },
    #[error("the lease of this shard is deleted; other shards have its Workers now")]
    Deleted,
    #[error("{}", reason(.0))]
    Api(kube::Error),
}

impl From<kube::Error> for AttemptError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) if status.code == 409 => Self::Lost,
            error => Self::Api(error),
        }
    }
}

impl Candidate {
    /// A candidate for a lease in the namespace. The client must bypass the write fence, which opens only once the
    /// election is won.
    pub fn new(
        client: Client,
        namespace: &str,
        lease: &str,
        times: LeaseTimes,
        (leadership, clock): (Leadership, Clock),
    ) -> Self {
        let claim = Claim { process: process(clock.now()), role: Role::Leader, times };
        let own = LeaseClaim::new(Api::namespaced(client, namespace), lease, claim);
        Self { own, of_ring: None, leadership, clock, has_held: false }
    }

    /// The same candidate for the lease of a shard, which has the name of the shard.
    pub fn of_shard(self, shard: &Shard) -> Self {
        let LeaseClaim { api, name, claim, .. } = self.own;
        let as_role = |role| Claim { role, ..claim.clone() };
        let of_ring = LeaseClaim::new(api.clone(), &name, as_role(Role::Ring(shard.clone())));
        let own = LeaseClaim::new(api, shard.name(), as_role(Role::Shard(shard.clone())));
        Self { own, of_ring: Some(of_ring), ..self }
    }

    /// Runs for election until it is won, calls `won`, then renews the lease. Returns the reason why the lease is
    /// lost. The process has to end then, because the holder of the lease needs fresh caches and reconciles.
    pub async fn lead(&mut self, won: impl FnOnce()) -> anyhow::Error {
        let mut logged: Option<String> = None;
        loop {
            match self.attempt().await {
                Ok(None) => break,
                Ok(Some(holder)) => {
                    if logged.as_deref() != Some(&holder) {
                        info!(holder, "another process leads; standing by");
                        logged = Some(holder);
                    }
                }
                Err(AttemptError::Lost) => debug!("another candidate was faster"),
                // Nothing is cached yet that could be wrong.
                Err(error @ (AttemptError::Restored { .. } | AttemptError::Deleted)) => info!(%error),
                Err(AttemptError::Api(error)) => warn!(error = reason(&error), "the lease can't be read or written"),
            }
            sleep(self.times().retry).await;
        }
        let identity = &self.own.claim.process;
        match &self.own.claim.role {
            Role::Leader | Role::Ring(_) => info!(identity, "leading"),
            Role::Shard(shard) => info!(identity, ring = shard.ring(), shard = shard.name(), "shard of the ring"),
        }
        won();
        self.keep().await
    }

    /// Renews the lease until that fails for longer than the deadline.
    async fn keep(&mut self) -> anyhow::Error {
        let mut renewed = Instant::now();
        let LeaseTimes { renew_deadline, retry, .. } = self.times();
        loop {
            sleep(retry).await;
            let left = renew_deadline.saturating_sub(renewed.elapsed());
            let attempt = timeout(left, self.attempt()).await;
            match attempt {
                Ok(Ok(None)) => renewed = Instant::now(),
                Ok(Ok(Some(holder))) => {
                    self.leadership.end();
                    return anyhow::anyhow!("{holder} has taken the lease");
                }
                // Watches would report versions older than those already seen, so everything has to be reread.
                Ok(Err(error @ AttemptError::Restored { .. })) => return error.into(),
                Ok(Err(error @ AttemptError::Deleted)) => {
                    self.leadership.end();
                    return error.into();
                }
                Ok(Err(error)) => warn!(%error, "the lease can't be renewed"),
                Err(_) => {
                    self.leadership.end();
                    return anyhow::anyhow!("the lease could not be renewed for {renew_deadline:?}");
                }
            }
        }
    }

    /// One read and at most one write of each lease. `Some` is the name of another holder.
    async fn attempt(&mut self) -> Result<Option<String>, AttemptError> {
        // Taken before the writes, because other candidates may see them at any time after that.
        let requested = Instant::now();
        if let Some(of_ring) = &mut self.of_ring {
            let holder = match of_ring.attempt(&self.clock, false).await {
                // Usually another shard of the ring.
                Err(AttemptError::Lost) => of_ring.attempt(&self.clock, false).await?,
                holder => holder?,
            };
            if holder.is_some() {
                return Ok(holder);
            }
        }
        let holder = self.own.attempt(&self.clock, self.is_shard() && self.has_held).await?;
        if holder.is_none() {
            self.has_held = true;
            self.leadership.extend(requested + self.times().renew_deadline);
        }
        Ok(holder)
    }

    /// Whether this candidate is for the lease of a shard.
    pub fn is_shard(&self) -> bool {
        self.of_ring.is_some()
    }

    /// Releases the lease, so that a successor need not wait. The lease of leaders expires after the last shard has
    /// ended. Called at the end of the process; nothing may be written afterwards.
    ///
    /// # Errors
    /// If the lease can't be read or written. It then expires on its own.
    pub async fn release(&self) -> anyhow::Result<()> {
        if !self.leadership.is_held(Instant::now()) {
            return Ok(());
        }
        self.leadership.end();
        let LeaseClaim { api, name, claim, .. } = &self.own;
        let lease = api.get(name).await.context("the lease can't be read")?;
        if !claim.holds(&lease) {
            return Ok(());
        }
        let record = lease.spec.clone().unwrap_or_default();
        let target = Lease { spec: Some(released(&record, self.clock.now())), ..lease };
        api.replace(name, &PostParams::default(), &target).await.context("the lease can't be released")?;
        Ok(())
    }

    fn times(&self) -> LeaseTimes {
        self.own.claim.times
    }
}

impl LeaseClaim {
    fn new(api: Api<Lease>, name: &str, claim: Claim) -> Self {
        Self { api, name: name.to_owned(), claim, observed: None, version: None }
    }

    /// One read and at most one write. `Some` is the name of another holder. With `must_exist`, a deleted lease is
    /// lost, because the sharder reassigns the Workers of a shard without a lease.
    async fn attempt(&mut self, clock: &Clock, must_exist: bool) -> Result<Option<String>, AttemptError> {
        let now = Instant::now();
        let Some(lease) = self.api.get_opt(&self.name).await? else {
            if must_exist {
                return Err(AttemptError::Deleted);
            }
            let mut metadata = ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() };
            self.claim.mark(&mut metadata);
            let spec = self.claim.taken(clock.now(), 0);
            let created = self.api.create(&PostParams::default(), &Lease { metadata, spec: Some(spec) }).await?;
            self.version_grows(&created)?;
            self.observed = Some(observe_own(&created, now));
            return Ok(None);
        };
        self.version_grows(&lease)?;
        let observed = observe(self.observed.take(), &lease, now);
        let decision = self.claim.decide(&observed, now, clock.now());
        self.observed = Some(observed);
        match decision {
            Decision::Wait { holder } => Ok(Some(holder)),
            Decision::Held => Ok(None),
            Decision::Write(spec) => {
                // Has the resource version that was read, so the second writer gets a conflict.
                let mut target = Lease { spec: Some(spec), ..lease };
                self.claim.mark(&mut target.metadata);
                let written = self.api.replace(&self.name, &PostParams::default(), &target).await?;
                self.version_grows(&written)?;
                self.observed = Some(observe_own(&written, now));
                Ok(None)
            }
        }
    }

    /// Resource versions come from one counter of etcd, which only decreases when a backup is restored. The lease is
    /// written continuously, so it shows a restore first.
    fn version_grows(&mut self, lease: &Lease) -> Result<(), AttemptError> {
        let Some(now) = lease.metadata.resource_version.as_deref().and_then(|version| version.parse().ok()) else {
            return Ok(());
        };
        match self.version.replace(now) {
            Some(before) if before > now => Err(AttemptError::Restored { before, now }),
            _ => Ok(()),
        }
    }
}

/// A name unique to this process: the host (in a cluster, the pod), the process ID and the start time.
fn process(now: Timestamp) -> String {
    let host = host();
    let started = now.as_nanosecond();
    format!("{}_{}_{started:x}", host.as_deref().unwrap_or("unknown"), std::process::id())
}

/// Name of this host; in a cluster, of the pod.
pub fn host() -> Option<String> {
    let host = std::env::var("HOSTNAME").ok().or_else(|| std::fs::read_to_string("/etc/hostname").ok());
    host.map(|host| host.trim().to_owned()).filter(|host| !host.is_empty())
}

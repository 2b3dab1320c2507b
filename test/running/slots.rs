//! A slow API server: writes for different Workers do not wait for each other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};

use crate::stalls::{SLOTS, start, succeeded};
use test_support::cluster::{ControlPlane, FAKER, Faker};
use test_support::proxy::Treatment;
use test_support::shoot::Shoot;

/// Duration of each write.
const WRITE: Duration = Duration::from_secs(2);
/// Time limit for all Workers, sufficient for a busy machine.
const DEADLINE: Duration = Duration::from_secs(240);

/// The results.
struct Figures {
    /// Duration until all Workers were reconciled.
    took: Duration,
    /// Maximum number of Workers with concurrent writes.
    most_writing: usize,
    /// Peak memory of the controller in MiB.
    memory: f64,
}

/// Creates this many Workers with slow writes.
async fn create(count: usize) -> Result<Figures> {
    let control_plane = ControlPlane::start().await?;
    let _machines = Faker::start(control_plane.client(FAKER).await?, None, Duration::ZERO);
    let (controller, proxy) = start(&control_plane, "slow", |program| program).await?;
    let shoots = (0..count).map(|_| Shoot::new(&control_plane, "slow"));
    let shoots: Vec<Shoot> = stream::iter(shoots).buffer_unordered(8).try_collect().await?;
    let namespaces: BTreeSet<String> = shoots.iter().map(|shoot| shoot.namespace.clone()).collect();
    let writing = Arc::<Mutex<(BTreeMap<String, Instant>, usize)>>::default();
    let seen = Arc::clone(&writing);
    proxy.set_faults(move |call| {
        if !call.writes() {
            return Treatment::Forward;
        }
        if let Some(namespace) = call.path.split('/').find(|part| namespaces.contains(*part)) {
            let mut writing = seen.lock().unwrap_or_else(PoisonError::into_inner);
            writing.0.insert(namespace.to_owned(), Instant::now());
            writing.0.retain(|_, since| since.elapsed() < WRITE);
            writing.1 = writing.1.max(writing.0.len());
        }
        Treatment::Delay(WRITE)
    });
    let began = Instant::now();
    let created = shoots.iter().map(|shoot| shoot.create(|_| {}));
    stream::iter(created).buffer_unordered(8).try_collect::<Vec<_>>().await?;
    let done = shoots.iter().map(|shoot| succeeded(shoot, DEADLINE));
    stream::iter(done).buffer_unordered(8).try_collect::<Vec<_>>().await?;
    let most_writing = writing.lock().unwrap_or_else(PoisonError::into_inner).1;
    Ok(Figures { took: began.elapsed(), most_writing, memory: controller.peak_memory().await? })
}

#[tokio::test]
async fn writes_of_different_workers_do_not_wait_for_each_other() -> Result<()> {
    let Figures { most_writing, .. } = create(4 * SLOTS).await?;
    ensure!(most_writing > 2 * SLOTS, "only {most_writing} Workers were written at the same time");
    Ok(())
}

#[tokio::test]
#[ignore = "200 Workers; runs by name, for the figures of docs/reliability-evidence.md"]
async fn two_hundred_workers_while_each_write_takes_two_seconds() -> Result<()> {
    let Figures { took, most_writing, memory } = create(200).await?;
    println!("200 Workers after {took:.1?}; at most {most_writing} written at a time; {memory:.1} MiB at most");
    ensure!(took < Duration::from_secs(120), "it took {took:?}");
    Ok(())
}

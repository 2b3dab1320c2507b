//! Clients that hold connections, heads or bodies do not block other clients.

use std::convert::Infallible;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::future::try_join_all;
use tokio::io::AsyncReadExt as _;
use tokio::time::{sleep, timeout};

use crate::command::{Command, Running};
use crate::flood::{COMPLETED, Stopwatch, alone, good_clients_beside};
use crate::good::{self, ApiServer, JSON};
use crate::stage;
use test_support::https::Connection;

const EVERY_COMMAND: [Command; 3] = [Command::Controller, Command::Admission, Command::Sidecar];
/// Time limit for every request, whether it is completed in time or not.
const EVERY_WAIT: Duration = Duration::from_secs(30);

/// Size limit of the webhooks for a body.
const LARGEST_BODY: usize = 7 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn health_and_metrics_respond_during_any_flood() -> Result<()> {
    let _alone = alone().await;
    for command in EVERY_COMMAND {
        let running = Running::start(command).await?;
        for stage in stage::plain() {
            for (port, path) in [(running.health, "/healthz"), (running.metrics, "/metrics")] {
                // All ports share the descriptors, so the health port must respond whichever port is flooded.
                let request = async |stopwatch: &mut Stopwatch| {
                    stopwatch.request(good::get(running.health, "/healthz")).await?;
                    stopwatch.request(good::get(port, path)).await
                };
                let longest = good_clients_beside(port, std::slice::from_ref(&stage), COMPLETED, request).await;
                let longest = longest.with_context(|| format!("{command:?}, a flood at the port of {path}"))?;
                println!("{command:?} {path}, {}: {longest:?}", stage.name);
            }
        }
    }
    Ok(())
}

/// Pauses a process as a CPU limit would. The process is stopped most of the time, at a different point of its work
/// each time.
async fn hold_up(running: &Running) -> Result<Infallible> {
    loop {
        for milliseconds in 1..16 {
            running.process.signal("STOP")?;
            sleep(Duration::from_millis(60)).await;
            running.process.signal("CONT")?;
            sleep(Duration::from_millis(milliseconds)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_held_up_takes_it_out_on_nobody() -> Result<()> {
    let _alone = alone().await;
    let running = Running::start(Command::Controller).await?;
    for stage in stage::plain() {
        let request = async |stopwatch: &mut Stopwatch| stopwatch.request(good::get(running.health, "/healthz")).await;
        let beside = good_clients_beside(running.health, std::slice::from_ref(&stage), EVERY_WAIT, request);
        let longest = tokio::select! {
            longest = beside => longest?,
            held_up = hold_up(&running) => match held_up? {},
        };
        running.process.signal("CONT")?;
        println!("held up, {}: {longest:?}", stage.name);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn reviews_complete_during_any_flood() -> Result<()> {
    let _alone = alone().await;
    let running = Running::start(Command::Admission).await?;
    let path = running.command.review_path().context("it has webhooks")?;
    for stage in stage::webhooks(path) {
        let longest = beside_flood_at_webhooks(&running, std::slice::from_ref(&stage)).await?;
        println!("reviews, {}: {longest:?}", stage.name);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn sidecar_reviews_complete_during_any_flood() -> Result<()> {
    let _alone = alone().await;
    let running = Running::start(Command::Sidecar).await?;
    let path = running.command.review_path().context("it has webhooks")?;
    let longest = beside_flood_at_webhooks(&running, &stage::webhooks(path)).await?;
    println!("sidecar, all stages: {longest:?}");
    Ok(())
}

/// Sends a review with a new connection, a review as an API server does, and a probe as kubelet does.
async fn beside_flood_at_webhooks(running: &Running, stages: &[stage::Stage]) -> Result<Duration> {
    let path = running.command.review_path().context("it has webhooks")?;
    let api_server = ApiServer::new(running.webhooks, path)?;
    good_clients_beside(running.webhooks, stages, COMPLETED, async |stopwatch| {
        stopwatch.request(good::review(running.webhooks, path)).await?;
        stopwatch.request(api_server.review()).await?;
        stopwatch.request(good::get(running.health, "/healthz")).await
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_wait_ends_and_the_connection_of_an_api_server_stays() -> Result<()> {
    let _alone = alone().await;
    let running = Running::start(Command::Admission).await?;
    let path = running.command.review_path().context("it has webhooks")?;
    let api_server = ApiServer::new(running.webhooks, path)?;
    let connection = api_server.review().await?;
    let webhooks = stage::webhooks(path).into_iter().map(|stage| (running.webhooks, stage));
    let plain = [running.health, running.metrics]
        .into_iter()
        .flat_map(|port| stage::plain().into_iter().map(move |stage| (port, stage)));
    // A client that has received its response may send another request, so its connection stays open.
    let silent = webhooks.chain(plain).filter(|(_, stage)| !stage.is_completed);
    try_join_all(silent.map(async |(port, stage)| {
        let mut held = stage.reach(port).await?;
        let reported = timeout(EVERY_WAIT, held.read_to_end(&mut Vec::new())).await;
        // A connection that is closed without a TLS close notification has ended, too.
        reported.map(drop).with_context(|| format!("{}: held for {EVERY_WAIT:?}", stage.name))
    }))
    .await?;
    ensure!(api_server.review().await? == connection, "it had to connect again");
    Ok(())
}

/// Begins bodies. Together, the complete bodies would fill any memory that is reserved for bodies.
async fn bodies(running: &Running, path: &str, count: usize, framing: &str, sent: &[u8]) -> Result<Vec<Connection>> {
    let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {JSON}\r\n{framing}\r\n\r\n");
    try_join_all((0..count).map(async |_| {
        let mut connection = Connection::open(running.webhooks).await?;
        connection.send(head.as_bytes()).await?;
        connection.send(sent).await?;
        anyhow::Ok(connection)
    }))
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_have_not_come_take_no_room() -> Result<()> {
    let _alone = alone().await;
    let running = Running::start(Command::Admission).await?;
    let path = running.command.review_path().context("it has webhooks")?;
    let announced = format!("Content-Length: {LARGEST_BODY}");
    for framing in ["Transfer-Encoding: chunked", announced.as_str()] {
        let begun = bodies(&running, path, 40, framing, b"1\r\n{\r\n").await?;
        let response = timeout(Duration::from_secs(1), good::review(running.webhooks, path)).await;
        response.with_context(|| format!("beside bodies with {framing}"))??;
        drop(begun);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_stop_shortly_before_their_end_make_room() -> Result<()> {
    let _alone = alone().await;
    let running = Running::start_directly(Command::Admission).await?;
    let path = running.command.review_path().context("it has webhooks")?;
    let nearly = vec![b' '; LARGEST_BODY - 1000];
    let announced = format!("Content-Length: {LARGEST_BODY}");
    let before = running.memory().await?;
    // 280 MiB in all. The server disconnects some clients while they send.
    let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {JSON}\r\n{announced}\r\n\r\n");
    let mut begun = Vec::new();
    for _ in 0..40 {
        let mut connection = Connection::open(running.webhooks).await?;
        connection.send(head.as_bytes()).await?;
        let _ = timeout(Duration::from_secs(1), connection.send(&nearly)).await;
        begun.push(connection);
        timeout(Duration::from_secs(1), good::review(running.webhooks, path))
            .await
            .context("beside large bodies")??;
    }
    let memory = running.memory().await?;
    println!("beside large bodies: {} MiB, before: {} MiB", memory >> 20, before >> 20);
    ensure!(memory - before < 160 << 20, "{} MiB, before: {} MiB", memory >> 20, before >> 20);
    Ok(())
}

//! Measures the webhooks over TLS, for a CloudProfile of 1.5 MiB and for a Shoot with fifty pools that roll. `cargo
//! bench --bench admission`, with `CONTROLLER=FILE` for another build; docs/performance-evidence.md lists the results.

#![allow(missing_docs, clippy::print_stdout, reason = "the report of this program is its output")]
#![allow(clippy::expect_used, clippy::panic, reason = "a benchmark of inputs that are written here")]

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};

use test_support::garden_objects::{azure_shoot, huge_profile, review, review_of_change};
use test_support::https::Connection;

/// Reviews of each kind.
const REVIEWS: usize = 500;

/// The program, killed when the benchmark ends.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn main() -> Result<()> {
    // `cargo test --benches` only checks that it builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(measure())
}

async fn measure() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let program = start(folder.path(), port)?;
    let mut connection = connect(port).await?;
    let profile = huge_profile("huge");
    let mut changed = profile.clone();
    changed["spec"]["machineTypes"] = json!([]);
    let mut stale = profile.clone();
    for version in stale["spec"]["machineImages"][0]["versions"].as_array_mut().context("no versions")? {
        version["capabilityFlavors"] = json!([{"architecture": ["amd64"]}]);
    }
    let mut labelled = profile.clone();
    labelled["metadata"]["labels"]["a"] = "b".into();
    let cases = [
        ("judge a new profile", "/webhooks/validate", review("cloudprofiles", &profile)),
        ("judge a changed profile", "/webhooks/validate", review_of_change("cloudprofiles", &changed, &profile)),
        ("judge a labelled profile", "/webhooks/validate", review_of_change("cloudprofiles", &labelled, &profile)),
        ("keep the flavors", "/webhooks/mutate", review("cloudprofiles", &profile)),
        ("write all flavors", "/webhooks/mutate", review("cloudprofiles", &stale)),
        (
            "warn of rolling nodes",
            "/webhooks/validate",
            review_of_change("shoots", &large_shoot("static"), &large_shoot("none")),
        ),
    ];
    let (_, path, body) = &cases[cases.len() - 1];
    let result = connection.post(path, "application/json", body).await?;
    ensure!(result.body.contains("nodes roll, because"), "nobody is warned: {}", result.body);
    let size = profile.to_string().len();
    println!("CloudProfile of {size} bytes, {REVIEWS} reviews each, one after the other, milliseconds");
    println!("{:<28}{:>8}{:>8}{:>8}{:>8}", "", "p50", "p90", "p99", "max");
    for (name, path, body) in &cases {
        let mut times = Vec::with_capacity(REVIEWS);
        for _ in 0..REVIEWS {
            times.push(request(&mut connection, path, body).await?);
        }
        print(name, times);
    }
    let mut times = Vec::new();
    let clients = (0..4).map(async |_| {
        let mut connection = connect(port).await?;
        let mut times = Vec::new();
        for _ in 0..REVIEWS / 4 {
            times.push(request(&mut connection, cases[0].1, &cases[0].2).await?);
        }
        anyhow::Ok(times)
    });
    for of_client in futures::future::try_join_all(clients).await? {
        times.extend(of_client);
    }
    print("judge, 4 at a time", times);
    println!("highest memory: {} MiB", highest_memory(program.0.id())? >> 10);
    Ok(())
}

/// A Shoot with fifty pools and this CPU manager policy for all kubelets.
fn large_shoot(policy: &str) -> Value {
    let mut shoot = azure_shoot("garden-bench");
    shoot["spec"]["kubernetes"] = json!({"version": "1.33.1", "kubelet": {"cpuManagerPolicy": policy}});
    let mut pool = shoot["spec"]["provider"]["workers"][0].clone();
    pool["machine"]["image"] = json!({"name": "linux", "version": "1.0.0"});
    let pools = (0..50).map(|number| {
        let mut pool = pool.clone();
        pool["name"] = format!("pool-{number}").into();
        pool
    });
    shoot["spec"]["provider"]["workers"] = pools.collect();
    shoot
}

fn start(folder: &Path, port: u16) -> Result<Program> {
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()])?.self_signed(&key)?;
    let [certificate_file, key_file, kubeconfig] = ["tls.crt", "tls.key", "kubeconfig"].map(|name| folder.join(name));
    std::fs::write(&certificate_file, certificate.pem())?;
    std::fs::write(&key_file, key.serialize_pem())?;
    // Reviews of CloudProfiles read nothing from the garden.
    let nobody = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [{"name": "u", "user": {}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    });
    std::fs::write(&kubeconfig, nobody.to_string())?;
    let program = Command::new(test_support::program::measured())
        .args([
            "admission",
            "--webhook-config-unmanaged",
            "--webhook-config-mode=url",
            "--webhook-config-url=127.0.0.1",
        ])
        .arg(format!("--webhook-config-server-port={port}"))
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .arg("--tls-cert-file")
        .arg(certificate_file)
        .arg("--tls-private-key-file")
        .arg(key_file)
        .stderr(Stdio::null())
        .spawn()
        .context("the program can't be started")?;
    Ok(Program(program))
}

async fn connect(port: u16) -> Result<Connection> {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        match Connection::open(port).await {
            Ok(connection) => return Ok(connection),
            Err(error) if Instant::now() > end => return Err(error),
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn request(connection: &mut Connection, path: &str, body: &[u8]) -> Result<Duration> {
    let began = Instant::now();
    let result = connection.post(path, "application/json", body).await?;
    let took = began.elapsed();
    let response: Value = serde_json::from_str(&result.body)?;
    ensure!(response["response"]["allowed"] == true, "{}", result.body);
    Ok(took)
}

fn print(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |share: f64| {
        let position = (times.len() as f64 * share) as usize;
        times[position.min(times.len() - 1)].as_secs_f64() * 1000.0
    };
    println!("{name:<28}{:>8.1}{:>8.1}{:>8.1}{:>8.1}", at(0.5), at(0.9), at(0.99), at(1.0));
}

/// Peak memory in KiB.
fn highest_memory(process: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    line.trim().trim_end_matches(" kB").parse().context("VmHWM")
}

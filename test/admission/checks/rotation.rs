//! Certificates that the program issues itself are renewed under load without a failed request.

use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};
use serde_json::json;

use crate::program::{Admission, NAME, NAMESPACE};
use test_support::cluster::{ADMIN, ControlPlane, eventually};
use test_support::garden::{self, Garden};
use test_support::garden_objects::azure_profile;
use test_support::https::Connection;

/// Short enough for one full rotation: announcement at 20 s, switch at 25 s, end of the first authority at 30 s.
const VALIDITY: &str = "30s";
const ANNOUNCEMENT: &str = "5s";

#[tokio::test]
async fn certificates_are_renewed_under_load_without_a_failed_request() -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    garden::install(&control_plane).await?;
    let admission = Admission::start(&control_plane, "rotated", |program| {
        program.flag("certificate-validity", VALIDITY).flag("certificate-announcement", ANNOUNCEMENT)
    })
    .await?;
    admission.ready().await?;
    let garden = Garden::new(&control_plane).await?;
    let client = control_plane.client(ADMIN).await?;
    let secrets = Api::<Secret>::namespaced(client, NAMESPACE);
    let began = Instant::now();
    let (done, requests) = (AtomicBool::new(false), AtomicUsize::new(0));
    let load = async {
        while !done.load(Ordering::Relaxed) {
            let after = began.elapsed();
            garden.try_create(&azure_profile("load")).await.with_context(|| format!("{after:?} after the start"))?;
            requests.fetch_add(1, Ordering::Relaxed);
        }
        anyhow::Ok(())
    };
    let presented = Mutex::new(HashSet::new());
    let has_former = async || {
        let connection = Connection::open(admission.port).await?;
        presented.lock().expect("nobody panics with it").insert(connection.certificate().to_vec());
        let data = secrets.get(NAME).await?.data.unwrap_or_default();
        anyhow::Ok(data.contains_key("former-authority.crt"))
    };
    let watch = async {
        eventually(Duration::from_secs(90), "another authority signs", async || {
            ensure!(has_former().await?, "the first one signs");
            Ok(())
        })
        .await?;
        eventually(Duration::from_secs(90), "the first authority is forgotten", async || {
            ensure!(!has_former().await?, "it is still trusted");
            Ok(())
        })
        .await?;
        done.store(true, Ordering::Relaxed);
        anyhow::Ok(())
    };
    tokio::try_join!(load, watch)?;
    let (requests, presented) = (requests.into_inner(), presented.lock().expect("nobody panics with it").len());
    ensure!(requests > 100, "only {requests} requests: that is no load");
    ensure!(presented > 1, "one certificate was presented all the time");
    repairs_what_a_wrong_clock_has_written(&admission, &secrets).await?;
    // The API server picks up the bundle of the new authority with a delay. Until then it rejects requests, as it did
    // with the wrong authority.
    eventually(Duration::from_secs(30), "requests are reviewed again", async || {
        garden.try_create(&azure_profile("load")).await?;
        Ok(())
    })
    .await?;
    expires_where_nothing_can_be_written(&admission, &secrets).await?;
    admission.stop().await?;
    control_plane.stop().await
}

/// Simulates another replica whose clock is 40 days ahead and whose version does not compare clocks.
async fn repairs_what_a_wrong_clock_has_written(admission: &Admission, secrets: &Api<Secret>) -> Result<()> {
    let ahead = Timestamp::now() + SignedDuration::from_hours(40 * 24);
    let span = json!({"issued": ahead, "expires": ahead + SignedDuration::from_hours(24)});
    let mut parameters = CertificateParams::default();
    let begin = Duration::from_secs(ahead.as_second().try_into()?);
    parameters.not_before = date_time_ymd(1970, 1, 1) + begin;
    parameters.not_after = date_time_ymd(1970, 1, 1) + begin + Duration::from_secs(24 * 3600);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    let key = KeyPair::generate()?;
    let authority = parameters.self_signed(&key)?.pem();
    let key = key.serialize_pem();
    // It is not valid yet, so clients reject it anyway, and the CA certificate can also be the server certificate.
    let members = [("ca.crt", &authority), ("tls.crt", &authority), ("tls.key", &key), ("authority.crt", &authority)];
    let mut data: BTreeMap<&str, String> = members.into_iter().map(|(name, text)| (name, text.clone())).collect();
    data.insert("authority.key", key);
    data.insert("times.json", json!({"authority": span, "names": ["127.0.0.1"]}).to_string());
    secrets.patch(NAME, &PatchParams::default(), &Patch::Merge(json!({"data": null}))).await?;
    secrets.patch(NAME, &PatchParams::default(), &Patch::Merge(json!({"stringData": data}))).await?;
    eventually(Duration::from_secs(60), "another authority signs", async || {
        let kept = secrets.get(NAME).await?.data.unwrap_or_default();
        let signs = kept.get("authority.crt").context("there is none")?;
        ensure!(signs.0 != authority.as_bytes(), "still the one from the future");
        Ok(())
    })
    .await?;
    admission.ready().await
}

/// A certificate that can't be renewed serves until it expires. Afterwards `/readyz` reports an error until another
/// certificate exists.
async fn expires_where_nothing_can_be_written(admission: &Admission, secrets: &Api<Secret>) -> Result<()> {
    let immutable = Patch::Merge(json!({"immutable": true}));
    secrets.patch(NAME, &PatchParams::default(), &immutable).await?;
    eventually(Duration::from_secs(90), "the certificate has expired", async || {
        let (status, response) = admission.get("/readyz").await?;
        ensure!(status == 503 && response.starts_with("certificate: "), "{status} {response}");
        ensure!(response.contains("the Secret can't be written"), "{response}");
        Ok(())
    })
    .await?;
    let presented = Connection::open(admission.port).await?.certificate().to_vec();
    secrets.delete(NAME, &DeleteParams::default()).await?;
    admission.ready().await?;
    ensure!(Connection::open(admission.port).await?.certificate() != presented, "it is the one that has expired");
    Ok(())
}

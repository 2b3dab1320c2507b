//! Certificates from files are reloaded when the files change.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};

use crate::program::{self, Admission};
use test_support::cluster::{ControlPlane, eventually};
use test_support::garden::{self, Garden, refusal};
use test_support::garden_objects::azure_profile;
use test_support::https::Connection;

/// A self-signed certificate with its key: PEM, and the DER that the server presents.
struct Given {
    pem: String,
    key: String,
    der: Vec<u8>,
}

fn certificate() -> Result<Given> {
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()])?.self_signed(&key)?;
    Ok(Given { pem: certificate.pem(), key: key.serialize_pem(), der: certificate.der().to_vec() })
}

fn write(folder: &Path, given: &Given) -> Result<()> {
    std::fs::write(folder.join("tls.crt"), &given.pem)?;
    Ok(std::fs::write(folder.join("tls.key"), &given.key)?)
}

#[tokio::test]
async fn new_files_are_presented_and_broken_ones_left_aside() -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    garden::install(&control_plane).await?;
    let folder = tempfile::tempdir()?;
    let (first, second) = (certificate()?, certificate()?);
    write(folder.path(), &first)?;
    std::fs::write(folder.path().join("ca.crt"), format!("{}{}", first.pem, second.pem))?;
    let admission = Admission::start(&control_plane, "given", |program| {
        program
            .flag("tls-cert-file", folder.path().join("tls.crt"))
            .flag("tls-private-key-file", folder.path().join("tls.key"))
            .flag("tls-ca-file", folder.path().join("ca.crt"))
    })
    .await?;
    admission.ready().await?;
    let garden = Garden::new(&control_plane).await?;
    garden.try_create(&azure_profile("given")).await?;
    ensure!(Connection::open(admission.port).await?.certificate() == first.der);

    std::fs::write(folder.path().join("tls.key"), "broken")?;
    eventually(Duration::from_secs(20), "it says that a file is broken", async || {
        ensure!(admission.log()?.contains("the former certificate stays"), "no word in the log");
        Ok(())
    })
    .await?;
    ensure!(Connection::open(admission.port).await?.certificate() == first.der);
    ensure!(!admission.log()?.contains("broken"), "the key file was logged");

    write(folder.path(), &second)?;
    eventually(Duration::from_secs(20), "the second certificate is presented", async || {
        ensure!(Connection::open(admission.port).await?.certificate() == second.der, "still the first one");
        Ok(())
    })
    .await?;
    garden.try_create(&azure_profile("given")).await?;
    let mut wrong = azure_profile("given");
    wrong["spec"]["providerConfig"]["machineImages"] = serde_json::json!([]);
    refusal(garden.try_create(&wrong).await)?;
    admission.stop().await?;
    control_plane.stop().await
}

#[tokio::test]
async fn is_not_ready_with_a_certificate_from_tomorrow() -> Result<()> {
    let (control_plane, _) = program::shared().await?;
    let folder = tempfile::tempdir()?;
    let key = KeyPair::generate()?;
    let mut parameters = CertificateParams::new(vec!["127.0.0.1".to_owned()])?;
    (parameters.not_before, parameters.not_after) = (date_time_ymd(2100, 1, 1), date_time_ymd(2101, 1, 1));
    let signed = parameters.self_signed(&key)?;
    let mut given = Given { pem: signed.pem(), key: key.serialize_pem(), der: signed.der().to_vec() };
    write(folder.path(), &given)?;
    std::fs::write(folder.path().join("ca.crt"), &given.pem)?;
    let admission = Admission::start(control_plane, "tomorrow", |program| {
        program
            .arg("--webhook-config-unmanaged")
            .flag("tls-cert-file", folder.path().join("tls.crt"))
            .flag("tls-private-key-file", folder.path().join("tls.key"))
            .flag("tls-ca-file", folder.path().join("ca.crt"))
    })
    .await?;
    eventually(Duration::from_secs(30), "it says that the API server refuses the certificate", async || {
        let (status, response) = admission.get("/readyz").await?;
        ensure!(status == 503 && response.contains("is not valid before 2100-01-01"), "{status} {response}");
        Ok(())
    })
    .await?;
    given = certificate()?;
    write(folder.path(), &given)?;
    std::fs::write(folder.path().join("ca.crt"), &given.pem)?;
    admission.ready().await?;
    admission.stop().await
}

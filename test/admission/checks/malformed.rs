//! Malformed requests get an error response and delay no other client.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::program;
use test_support::garden_objects::{azure_profile, review};
use test_support::https::Connection;

const JSON: &str = "application/json";
const VALIDATE: &str = "/webhooks/validate";

#[tokio::test]
async fn a_malformed_review_gets_an_error_with_the_reason() -> Result<()> {
    let (_, admission) = program::shared().await?;
    let huge = vec![b' '; 8 << 20];
    let cases: [(&str, &str, &[u8], u16, &str); 9] = [
        (VALIDATE, JSON, b"", 400, "no AdmissionReview"),
        (VALIDATE, JSON, b"{", 400, "no AdmissionReview"),
        (VALIDATE, JSON, b"{}", 400, "not an AdmissionReview"),
        (VALIDATE, JSON, b"[[[[[[[[[[[[[[[[", 400, "no AdmissionReview"),
        (VALIDATE, JSON, b"\xff\xfe", 400, "no AdmissionReview"),
        (VALIDATE, JSON, br#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#, 400, "no request"),
        (VALIDATE, "text/plain", b"{}", 415, "application/json"),
        (VALIDATE, JSON, &huge, 413, "more than 7 MiB"),
        ("/webhooks/other", JSON, b"{}", 404, ""),
    ];
    for (path, content_type, body, status, text) in cases {
        let response = Connection::open(admission.port).await?.post(path, content_type, body).await?;
        ensure!(response.status == status && response.body.contains(text), "{path} {content_type}: {response:?}");
    }
    let mut connection = Connection::open(admission.port).await?;
    connection.send(format!("GET {VALIDATE} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await?;
    ensure!(connection.response().await?.status == 405);
    Ok(())
}

#[tokio::test]
async fn objects_that_make_no_sense_are_refused_and_never_end_the_program() -> Result<()> {
    let (_, admission) = program::shared().await?;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let mut connection = Connection::open(admission.port).await?;
    let spec = |member: &str, value: Value| {
        let mut profile = azure_profile("x");
        profile["spec"][member] = value;
        profile
    };
    let objects = [
        json!({}),
        json!([]),
        json!("x"),
        json!({"spec": null}),
        json!({"metadata": 1, "spec": []}),
        spec("machineImages", json!({})),
        spec("machineImages", json!([null])),
        spec("machineCapabilities", json!([{"name": 1}])),
        spec("providerConfig", json!([])),
        spec("providerConfig", json!("x")),
        spec("providerConfig", Value::Null),
        spec("type", json!(["azure"])),
    ];
    for resource in ["cloudprofiles", "namespacedcloudprofiles", "shoots", "pods"] {
        for path in [VALIDATE, "/webhooks/mutate"] {
            for object in &objects {
                let response = connection.post(path, JSON, &review(resource, object)).await?;
                let body: Value = serde_json::from_str(&response.body)?;
                ensure!(
                    response.status == 200 && body["response"]["uid"] == "1-2-3",
                    "{resource} {object}: {response:?}"
                );
                ensure!(body["response"]["allowed"].is_boolean(), "{resource} {object}: {response:?}");
            }
        }
    }
    let review = String::from_utf8(review("cloudprofiles", &json!({"deep": "DEEP"})))?.replace("\"DEEP\"", &deep);
    let response = connection.post(VALIDATE, JSON, review.as_bytes()).await?;
    ensure!([200, 400].contains(&response.status), "{response:?}");
    admission.process().ensure_running()
}

#[tokio::test]
async fn slow_and_silent_clients_delay_no_other_client() -> Result<()> {
    let (_, admission) = program::shared().await?;
    // Clients that send nothing, that don't use TLS, or that send an incomplete request.
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(TcpStream::connect(("127.0.0.1", admission.port)).await?);
    }
    let mut plain = TcpStream::connect(("127.0.0.1", admission.port)).await?;
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").await?;
    let mut slow = Connection::open(admission.port).await?;
    let head = format!("POST {VALIDATE} HTTP/1.1\r\nHost: x\r\nContent-Type: {JSON}\r\nContent-Length: 100\r\n\r\n{{");
    slow.send(head.as_bytes()).await?;

    let mut other = Connection::open(admission.port).await?;
    let body = review("cloudprofiles", &azure_profile("x"));
    let response = tokio::time::timeout(Duration::from_secs(5), other.post(VALIDATE, JSON, &body)).await??;
    ensure!(response.status == 200 && response.body.contains(r#""allowed":true"#), "{response:?}");
    // The slow client gets a timeout response.
    ensure!(slow.response().await?.status == 408);
    Ok(())
}

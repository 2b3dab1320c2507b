//! Error messages of commands that read a cluster, if the server rejects every request, is no API server, or is
//! unreachable.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use serde_json::json;

use crate::binary::{Outcome, command, outcome};

/// Every command that reads a cluster.
const COMMANDS: &[&[&str]] = &[
    &["explain", "--live", "shoot--garden--prod"],
    &["why", "shoot--garden--prod/shoot--garden--prod-workers-z1"],
    &["diagnose", "shoot--garden--prod"],
    &["preview", "--live"],
    &["preview", "--live", "test/cli/shoots.yaml"],
    &["takeover", "check"],
    &["forecast", "--live"],
    &["cloudprofile", "lint", "--live"],
    &["cloudprofile", "matrix", "--live", "azure"],
    &["cloudprofile", "diff", "--live", "azure", "test/cli/azure.yaml"],
];
const FORBIDDEN: &str = "User \"jane\" is not allowed to do that";
const NOTHING: &[&str] = &[];
/// Internal texts that users must not see.
const RAW: &[&str] = &["ApiError", "ServiceError", "HyperError", "Status {", "Some(", "kube::", "[src/"];

/// Starts a server that returns this response to all requests. Returns its kubeconfig.
fn server(result: String) -> tempfile::NamedTempFile {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || listener.incoming().flatten().for_each(|stream| respond_to_all(stream, &result)));
    kubeconfig(port)
}

fn respond_to_all(stream: TcpStream, result: &str) {
    let result = result.to_owned();
    thread::spawn(move || {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut stream, mut line) = (stream, String::new());
        while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
            if line == "\r\n" && stream.write_all(result.as_bytes()).is_err() {
                return;
            }
            line.clear();
        }
    });
}

pub(crate) fn kubeconfig(port: u16) -> tempfile::NamedTempFile {
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": format!("http://127.0.0.1:{port}")}}],
        "users": [{"name": "a", "user": {"token": "t"}}],
    });
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), kubeconfig.to_string()).unwrap();
    file
}

fn http(status: &str, content_type: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// Runs all commands and returns the outputs that are wrong.
fn complaints(kubeconfig: &tempfile::NamedTempFile, expected: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    for arguments in COMMANDS {
        let path = kubeconfig.path().to_str().unwrap();
        let Outcome { code, stdout, stderr } = outcome(command(&[arguments, &["--kubeconfig", path][..]].concat()), "");
        let text = format!("{stdout}{stderr}");
        let is_raw = RAW.iter().any(|raw| text.contains(raw));
        let is_long = text.lines().any(|line| line.len() > 300);
        let is_twice = text.lines().any(|line| line.matches(expected).count() > 1);
        if code == 0 || is_raw || is_long || is_twice || !text.contains(expected) {
            complaints.push(format!("{arguments:?} ends with {code}: {text}"));
        }
    }
    complaints
}

#[test]
fn reports_refusals_in_the_api_servers_words() {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": FORBIDDEN,
        "reason": "Forbidden", "details": {"kind": "workers"}, "code": 403,
    });
    let server = server(http("403 Forbidden", "application/json", &status.to_string()));
    assert_eq!(complaints(&server, &format!("the API server answers 403 Forbidden: {FORBIDDEN}")), NOTHING);
}

#[test]
fn reports_unreachable_server_in_one_line() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    assert_eq!(complaints(&kubeconfig(free), "Connection refused"), NOTHING);
}

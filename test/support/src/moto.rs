//! moto (<https://docs.getmoto.org>): an independent fake of EC2 that filters by owners and names. It is installed once
//! from PyPI into the cache of built programs. If that fails, tests report it and are skipped.
//!
//! Its images come from a file and exist in every region. It has no pages and no boot modes, and returns 500 for
//! unknown filters.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cluster::{Process, Program, cache, eventually, free_ports};
use crate::http;

const VERSION: &str = "5.2.5";
/// A request for images. moto derives the service from the header.
const DESCRIBE: &str = "Action=DescribeImages&Version=2016-11-15";
const EC2: &str = "content-type: application/x-www-form-urlencoded\r\n\
    authorization: AWS4-HMAC-SHA256 Credential=a/20260101/eu-central-1/ec2/aws4_request, SignedHeaders=host, Signature=b\r\n";
/// Startup time limit.
const START: Duration = Duration::from_secs(60);

/// A running server. Dropping it stops it.
pub struct Moto {
    url: String,
    _process: Process,
    _folder: TempDir,
}

impl Moto {
    /// Starts a server with these images. If it cannot be installed, prints the reason and returns `None`.
    pub async fn start(images: &Value) -> Result<Option<Self>> {
        let program = match tokio::task::spawn_blocking(installed).await? {
            Ok(program) => program,
            Err(error) => {
                println!("SKIPPED: moto {VERSION} can't be installed: {error:#}");
                return Ok(None);
            }
        };
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("amis.json");
        std::fs::write(&path, images.to_string())?;
        let [port] = free_ports()?;
        let program = Program::new("moto", program)
            .arg("-H")
            .arg("127.0.0.1")
            .arg("-p")
            .arg(port.to_string())
            .env("MOTO_AMIS_PATH", path)
            .env("MOTO_EC2_LOAD_DEFAULT_AMIS", "false");
        let process = Process::start(program, folder.path())?;
        // moto loads its modules for the first reply, which takes many seconds. A client that times out before that would
        // retry with growing delays.
        eventually(START, "moto replies", async || {
            process.ensure_running()?;
            let (status, reply) = http::request_with(port, "POST", "/", EC2, DESCRIBE).await?;
            ensure!(status == 200, "{status}: {reply}");
            Ok(())
        })
        .await?;
        Ok(Some(Self { url: format!("http://127.0.0.1:{port}"), _process: process, _folder: folder }))
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Copies an image within `eu-central-1` into an account, with a role of the account. Only this account can read it.
    pub async fn copy_into(&self, account: &str, source: &str, name: &str) -> Result<()> {
        const SCRIPT: &str = "
import boto3, sys
url, account, source, name = sys.argv[1:]
def client(service, key, secret, token=None):
    return boto3.client(service, region_name='eu-central-1', endpoint_url=url, aws_access_key_id=key,
                        aws_secret_access_key=secret, aws_session_token=token)
role = client('sts', 'a', 'b').assume_role(RoleArn=f'arn:aws:iam::{account}:role/images', RoleSessionName='test')
keys = role['Credentials']
ec2 = client('ec2', keys['AccessKeyId'], keys['SecretAccessKey'], keys['SessionToken'])
ec2.copy_image(Name=name, SourceImageId=source, SourceRegion='eu-central-1')
";
        let python = cache()?.join(format!("moto-{VERSION}/bin/python"));
        let arguments = [self.url.as_str(), account, source, name].map(str::to_owned);
        tokio::task::spawn_blocking(move || {
            let output = Command::new(python).args(["-c", SCRIPT]).args(arguments).output()?;
            ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Ok(())
        })
        .await?
    }
}

/// An image in moto's format, with these members changed.
#[must_use]
pub fn ami(id: u32, name: &str, members: &Value) -> Value {
    let mut ami = json!({
        "ami_id": format!("ami-{id:08}"), "name": name, "description": "d", "owner_id": "222222222222", "public": true,
        "virtualization_type": "hvm", "architecture": "x86_64", "state": "available", "platform": null, "image_type": "machine",
        "hypervisor": "xen", "root_device_name": "/dev/sda1", "root_device_type": "ebs", "sriov": "simple",
        "creation_date": "2026-09-22T09:00:00.000Z",
    });
    for (name, value) in members.as_object().into_iter().flatten() {
        ami[name] = value.clone();
    }
    ami
}

/// Installs the server. Concurrent processes wait for the one that installs.
fn installed() -> Result<PathBuf> {
    let folder = cache()?.join(format!("moto-{VERSION}"));
    let program = folder.join("bin/moto_server");
    std::fs::create_dir_all(folder.parent().context("the cache has a folder")?)?;
    let lock = File::create(folder.with_extension("lock"))?;
    lock.lock()?;
    if !folder.join("complete").is_file() {
        run(Path::new("python3"), &["-m", "venv", "--clear"], &[folder.as_os_str()])?;
        let quiet =
            ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--timeout", "15", "--retries", "1"];
        run(&folder.join("bin/python"), &quiet, &[format!("moto[server,ec2]=={VERSION}").as_ref()])?;
        File::create(folder.join("complete"))?;
    }
    Ok(program)
}

fn run(program: &Path, arguments: &[&str], more: &[&std::ffi::OsStr]) -> Result<()> {
    let output =
        Command::new(program).args(arguments).args(more).output().with_context(|| program.display().to_string())?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {}", program.display(), text.lines().last().unwrap_or_default());
    Ok(())
}

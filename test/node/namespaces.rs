//! Reruns the test with its own mounts, processes and network. Everything that is started, mounted or configured there
//! ends with the test, however it ends. Namespaces do not contain cgroups, so these are below one folder, which is
//! removed afterwards.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use test_support::cluster::{self, Process, Program, RunFolder, SERVICE, eventually};

use crate::images;

/// Passes the folder with the images to the inner test.
const IMAGES: &str = "NODE_IMAGES";
/// Time limit. On two busy cores all steps took less than a minute.
const AT_MOST: Duration = Duration::from_secs(20 * 60);
/// The root of all cgroups, and the prefix of our folders in it.
const CGROUPS: &str = "/sys/fs/cgroup";
const CGROUP: &str = "gardener-extension-worker-node-";
/// Passes the name of our cgroup to the inner test.
const OWN_CGROUP: &str = "NODE_CGROUP";

/// Runs as the first process in the namespaces. The kubelet requires kernel settings that a test must not change, so
/// files with other values are mounted over them. State of containerd and kubelet is in memory.
const PREPARE: &str = r#"
set -e
ip link set lo up
ip address add "$1/32" dev lo
for folder in /run /var/lib /var/log; do mount -t tmpfs tmpfs $folder; done
show() { mkdir -p /run/kernel; file=/run/kernel/$(basename "$2"); echo "$1" >"$file"; mount --bind "$file" "/proc/sys/$2"; }
show 1 vm/overcommit_memory
show 0 vm/panic_on_oom
show 10 kernel/panic
show 1 kernel/panic_on_oops
shift
if "$@"; then exit 0; else exit 1; fi
"#;

/// The folder with the images, set only in the inner test.
pub(crate) fn images_from_outside() -> Option<PathBuf> {
    std::env::var_os(IMAGES).map(PathBuf::from)
}

/// The folder of cgroups for the pods of this process, in the kubelet's notation.
pub(crate) fn cgroup() -> Result<String> {
    let folder = std::env::var(OWN_CGROUP).context("the inner test has its cgroup")?;
    for hierarchy in hierarchies()? {
        std::fs::create_dir_all(hierarchy.join(&folder))?;
    }
    Ok(format!("/{folder}"))
}

/// Runs a test of this binary in its own namespaces.
pub(crate) async fn run(test: &str) -> Result<()> {
    ensure_installed()?;
    // Builds before the start, because the namespaces have no network.
    cluster::build_for_pods().await?;
    cluster::helm().await?;
    let folder = RunFolder::new()?;
    images::write(folder.path()).await?;
    remove_cgroups()?;
    let namespaces = ["mount", "net", "ipc", "uts", "pid", "fork", "kill-child", "mount-proc"];
    let program =
        namespaces.iter().fold(Program::new("node", "unshare"), |program, name| program.arg(format!("--{name}")));
    let program = ["/bin/sh", "-c", PREPARE, "prepare", SERVICE].iter().fold(program, Program::arg);
    let program = program.arg(std::env::current_exe()?);
    let program = [test, "--exact", "--ignored", "--nocapture"].iter().fold(program, Program::arg);
    let program = program.env(IMAGES, folder.path()).env(OWN_CGROUP, own_cgroup());
    let inner = Process::start(program, folder.path())?;
    let status = inner.wait(AT_MOST).await;
    eprintln!("{}", inner.last_lines(400));
    // All its processes have ended, but the kernel needs a moment to remove them.
    eventually(Duration::from_secs(20), "no cgroup is left", async || remove_cgroups()).await?;
    ensure!(status?.success(), "it failed, see above");
    Ok(())
}

fn ensure_installed() -> Result<()> {
    ensure!(
        std::fs::metadata("/proc/self")?.uid() == 0,
        "only root may make namespaces and cgroups as a node has them"
    );
    let needed =
        ["/usr/bin/containerd", "/usr/bin/ctr", "/usr/sbin/runc", "/usr/lib/cni/bridge", "/usr/lib/cni/loopback"];
    let missing: Vec<_> = needed.into_iter().filter(|file| !Path::new(file).is_file()).collect();
    ensure!(missing.is_empty(), "{missing:?} are missing; docs/development.md#a-node names the packages");
    Ok(())
}

fn own_cgroup() -> String {
    format!("{CGROUP}{}", std::process::id())
}

/// Folders that can contain cgroups: one for each controller, or one for all of them.
fn hierarchies() -> Result<Vec<PathBuf>> {
    let root = Path::new(CGROUPS);
    if root.join("cgroup.procs").is_file() {
        return Ok(vec![root.to_owned()]);
    }
    let folders = std::fs::read_dir(root)?.map(|entry| Ok(entry?.path()));
    let mut folders = folders.collect::<Result<Vec<_>>>()?;
    folders.retain(|folder| folder.join("cgroup.procs").is_file() && !folder.is_symlink());
    Ok(folders)
}

/// Removes the cgroups of this run and those left by killed runs.
fn remove_cgroups() -> Result<()> {
    let own = own_cgroup();
    for hierarchy in hierarchies()? {
        for entry in std::fs::read_dir(&hierarchy)? {
            let cgroup = entry?.path();
            let name = cgroup.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Some(run) = name.strip_prefix(CGROUP) else { continue };
            // Another run may still be active.
            if name == own || !Path::new("/proc").join(run).exists() {
                remove(&cgroup).with_context(|| format!("removing {}", cgroup.display()))?;
            }
        }
    }
    Ok(())
}

/// The files of a cgroup can't be removed, but a folder without subfolders can.
fn remove(cgroup: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(cgroup)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove(&entry.path())?;
        }
    }
    std::fs::remove_dir(cgroup)
}

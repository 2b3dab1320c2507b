//! Builds the programs of the control plane, and other programs written in Go.
//!
//! The Go modules below `test/control-plane/` and `test/charts/programs/` are built into cache folders named by a
//! digest of the module's files. Fresh clones and worktrees reuse them, and changed modules are rebuilt.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use sha2::{Digest as _, Sha256};

use super::go_build::{self, Build, Target};

/// The programs of a control plane.
pub struct Binaries {
    pub etcd: PathBuf,
    pub kube_apiserver: PathBuf,
}

/// etcd and kube-apiserver, from `KUBEBUILDER_ASSETS` if set, else built.
pub async fn control_plane() -> Result<Binaries> {
    let folder = match std::env::var_os("KUBEBUILDER_ASSETS") {
        Some(assets) if !assets.is_empty() => PathBuf::from(assets),
        _ => {
            let module = control_plane_sources().join("kubernetes");
            let version = required_version(&module, "k8s.io/kubernetes")?;
            let targets = vec![
                Target { binary: "etcd", package: "go.etcd.io/etcd/server/v3", link: String::new() },
                Target {
                    binary: "kube-apiserver",
                    package: "k8s.io/kubernetes/cmd/kube-apiserver",
                    link: link_version(&version),
                },
            ];
            built(&module, targets, "4 minutes on two cores").await?
        }
    };
    let binaries = Binaries { etcd: folder.join("etcd"), kube_apiserver: folder.join("kube-apiserver") };
    for binary in [&binaries.etcd, &binaries.kube_apiserver] {
        ensure!(binary.is_file(), "KUBEBUILDER_ASSETS: there is no {}", binary.display());
    }
    Ok(binaries)
}

/// The programs that run pods, in addition to the control plane.
pub struct PodPrograms {
    pub kube_controller_manager: PathBuf,
    pub kube_scheduler: PathBuf,
    pub kubelet: PathBuf,
}

/// Builds them from kube-apiserver's Go module, in the same version.
pub async fn pod_programs() -> Result<PodPrograms> {
    let module = control_plane_sources().join("kubernetes");
    let version = required_version(&module, "k8s.io/kubernetes")?;
    let target = |binary, package| Target { binary, package, link: link_version(&version) };
    let targets = vec![
        target("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
        target("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
        target("kubelet", "k8s.io/kubernetes/cmd/kubelet"),
    ];
    let folder = built(&module, targets, "8 minutes on two cores").await?;
    let binary = |name| folder.join(name);
    Ok(PodPrograms {
        kube_controller_manager: binary("kube-controller-manager"),
        kube_scheduler: binary("kube-scheduler"),
        kubelet: binary("kubelet"),
    })
}

pub async fn helm() -> Result<PathBuf> {
    let module = crate::repository().join("test/charts/programs/helm");
    go_program(&module, "helm", "helm.sh/helm/v4/cmd/helm", "", "4 minutes on two cores").await
}

/// Builds machine-controller-manager with the fake cloud in `test/control-plane/machine-controller-manager/cloud.go`.
pub async fn machine_controller_manager() -> Result<PathBuf> {
    let module = control_plane_sources().join("machine-controller-manager");
    let target = Target { binary: "machine-controller-manager", package: ".", link: String::new() };
    let folder = built(&module, vec![target], "2 minutes on two cores").await?;
    Ok(folder.join("machine-controller-manager"))
}

/// Builds the sharder of kubernetes-controller-sharding.
pub async fn sharder() -> Result<PathBuf> {
    let module = control_plane_sources().join("sharder");
    let package = "github.com/timebertt/kubernetes-controller-sharding/cmd/sharder";
    go_program(&module, "sharder", package, "", "3 minutes on two cores").await
}

/// Gardener's servers, and parts of Gardener as programs.
pub struct Gardener {
    pub apiserver: PathBuf,
    pub controller_manager: PathBuf,
    /// See `test/control-plane/gardener/main.go`.
    pub parts: PathBuf,
}

/// Builds them from the Go module `test/control-plane/gardener`.
pub async fn gardener() -> Result<Gardener> {
    let module = control_plane_sources().join("gardener");
    let version = required_version(&module, "github.com/gardener/gardener")?;
    let server = |binary, package| Target { binary, package, link: link_version(&version) };
    let targets = vec![
        server("gardener-apiserver", "github.com/gardener/gardener/cmd/gardener-apiserver"),
        server("gardener-controller-manager", "github.com/gardener/gardener/cmd/gardener-controller-manager"),
        Target { binary: "gardener-parts", package: ".", link: String::new() },
    ];
    let folder = built(&module, targets, "10 minutes on two cores").await?;
    let binary = |name| folder.join(name);
    Ok(Gardener {
        apiserver: binary("gardener-apiserver"),
        controller_manager: binary("gardener-controller-manager"),
        parts: binary("gardener-parts"),
    })
}

/// The folder with the Go modules.
pub fn control_plane_sources() -> PathBuf {
    crate::repository().join("test/control-plane")
}

/// Builds an unmodified program that a Go module of the tests requires, from its package with these build tags.
pub async fn go_program(
    module: &Path,
    binary: &'static str,
    package: &'static str,
    tags: &'static str,
    usually: &'static str,
) -> Result<PathBuf> {
    let target = Target { binary, package, link: String::new() };
    Ok(built_with(module, vec![target], tags, usually).await?.join(binary))
}

async fn built(module: &Path, targets: Vec<Target>, usually: &'static str) -> Result<PathBuf> {
    built_with(module, targets, "", usually).await
}

async fn built_with(module: &Path, targets: Vec<Target>, tags: &'static str, usually: &'static str) -> Result<PathBuf> {
    let name = module.file_name().context("a module has a name")?;
    let cached = cache()?.join(name).join(digest(module, &targets, tags)?);
    let build = Build { module: module.to_owned(), targets, tags, usually, into: cached.clone() };
    tokio::task::spawn_blocking(move || go_build::ensure(&build)).await??;
    Ok(cached)
}

/// `CONTROL_PLANE_CACHE`, else the cache folder according to XDG.
pub fn cache() -> Result<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(cache) = set("CONTROL_PLANE_CACHE") {
        return Ok(cache);
    }
    let caches = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    let caches =
        caches.context("none of CONTROL_PLANE_CACHE, XDG_CACHE_HOME and HOME is set: where to keep built programs?")?;
    Ok(caches.join("gardener-extension-worker/control-plane"))
}

/// Digest of everything that the binaries depend on: the module's files and the build options.
fn digest(module: &Path, targets: &[Target], tags: &str) -> Result<String> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(module).with_context(|| format!("reading {}", module.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| ["go", "mod", "sum"].iter().any(|known| extension == *known)) {
            files.push(path);
        }
    }
    files.sort();
    let mut digest = Sha256::new_with_prefix(format!("{:?} {targets:?} {}", go_build::FLAGS, std::env::consts::ARCH));
    for file in files {
        let content = std::fs::read(&file)?;
        digest.update(format!("\n{} {}\n", file.file_name().unwrap_or_default().display(), content.len()));
        digest.update(content);
    }
    digest.update(tags);
    Ok(hex::encode(&digest.finalize()[..10]))
}

/// The version of a dependency in a module's go.mod, with its leading `v`.
fn required_version(module: &Path, dependency: &str) -> Result<String> {
    let file = module.join("go.mod");
    let text = std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    let mut lines = text.lines().map(|line| line.trim().trim_start_matches("require "));
    let version = lines.find_map(|line| {
        line.strip_prefix(dependency)?.strip_prefix(' ')?.split(' ').next().filter(|word| word.starts_with('v'))
    });
    Ok(version.with_context(|| format!("{} does not require {dependency}", file.display()))?.to_owned())
}

/// Kubernetes gets its version from the linker, and clients query it.
fn link_version(version: &str) -> String {
    let mut numbers = version.trim_start_matches('v').split('.');
    let [major, minor] = [numbers.next(), numbers.next()].map(Option::unwrap_or_default);
    let variable = "k8s.io/component-base/version";
    format!("-X {variable}.gitVersion={version} -X {variable}.gitMajor={major} -X {variable}.gitMinor={minor}")
}

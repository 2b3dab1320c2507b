//! Builds the program for each platform, linked statically.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::NAME;
use crate::source::{Source, output};

/// A platform with a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// x86-64.
    Amd64,
    /// AArch64.
    Arm64,
}

/// The program for a platform.
pub struct Program {
    /// Where it runs.
    pub platform: Platform,
    /// The binary.
    pub path: PathBuf,
}

impl Platform {
    /// All platforms.
    pub const ALL: [Self; 2] = [Self::Amd64, Self::Arm64];

    /// As files and images name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Amd64 => "linux-amd64",
            Self::Arm64 => "linux-arm64",
        }
    }

    /// As container images name its processor.
    #[must_use]
    pub fn architecture(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// As Rust names it.
    #[must_use]
    pub fn target(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-unknown-linux-musl",
            Self::Arm64 => "aarch64-unknown-linux-musl",
        }
    }

    /// The C compiler that builds for it.
    fn compiler(self) -> &'static str {
        match self {
            Self::Amd64 => "musl-gcc",
            Self::Arm64 => "aarch64-linux-musl-gcc",
        }
    }
}

/// What builds C code for a platform.
enum Toolchain {
    /// `cargo build` with a C compiler of the platform.
    Compiler,
    /// `cargo zigbuild`, whose compiler builds for all platforms.
    Zig,
}

/// Builds the program for all platforms whose toolchain is installed, and prints what the others lack.
///
/// # Errors
///
/// If there is no toolchain for amd64, or a build fails.
pub fn build_all(root: &Path, source: &Source) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for platform in Platform::ALL {
        match toolchain(root, platform) {
            Ok(toolchain) => programs.push(Program { platform, path: build(root, source, platform, &toolchain)? }),
            Err(missing) if platform == Platform::Amd64 => return Err(missing),
            Err(missing) => eprintln!("{} is not built: {missing:#}", platform.name()),
        }
    }
    Ok(programs)
}

fn toolchain(root: &Path, platform: Platform) -> Result<Toolchain> {
    let (target, compiler) = (platform.target(), platform.compiler());
    let libraries = output(root, "rustc", &["--print", "target-libdir", "--target", target])?;
    ensure!(Path::new(&libraries).is_dir(), "run `rustup target add {target}`");
    if is_installed(compiler, "--version") {
        return Ok(Toolchain::Compiler);
    }
    ensure!(
        is_installed("cargo-zigbuild", "--version"),
        "install {compiler}, or both `pip install ziglang` and `cargo install cargo-zigbuild`"
    );
    Ok(Toolchain::Zig)
}

fn is_installed(program: &str, argument: &str) -> bool {
    Command::new(program).arg(argument).output().is_ok_and(|output| output.status.success())
}

fn build(root: &Path, source: &Source, platform: Platform, toolchain: &Toolchain) -> Result<PathBuf> {
    let target = platform.target();
    let mut cargo = Command::new("cargo");
    match toolchain {
        Toolchain::Compiler => {
            let variable = format!("CC_{}", target.replace('-', "_"));
            cargo.arg("build").env(variable, platform.compiler());
        }
        Toolchain::Zig => {
            cargo.arg("zigbuild");
        }
    }
    cargo.args(["--release", "--locked", "--bin", NAME, "--target", target]).current_dir(root);
    // Only the commit determines the bytes: no path of this machine, no time of day.
    let home = std::env::var("CARGO_HOME").or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")));
    let home = home.context("neither CARGO_HOME nor HOME is set")?;
    let maps = [(root.display().to_string(), "."), (home, "cargo")];
    let rust: Vec<String> = maps.iter().map(|(from, to)| format!("--remap-path-prefix={from}={to}")).collect();
    let c: Vec<String> = maps.iter().map(|(from, to)| format!("-ffile-prefix-map={from}={to}")).collect();
    cargo.env("RUSTFLAGS", format!("-Ctarget-feature=+crt-static {}", rust.join(" ")));
    cargo.env("CFLAGS", c.join(" ")).env("CARGO_INCREMENTAL", "0").env("SOURCE_DATE_EPOCH", source.time.to_string());
    cargo.env("RELEASE_COMMIT", &source.commit).env("RELEASE_COMMIT_TIME", source.date()?);
    let status = cargo.status().context("starting cargo")?;
    ensure!(status.success(), "the program for {target} can't be built");
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(folder.join(target).join("release").join(NAME))
}

//! Arguments of the command `controller`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};

use crate::controller::run::served::Served;
use crate::image_controller::ImageArguments;
use decisions::provider::Providers;
use decisions::worker::plan::class_images::ImagePolicy;
use runtime::cluster::garden::Garden;
use runtime::cluster::seed::Seed;
use runtime::process::election;
use runtime::process::logs::{LogFormat, LogLevel};
use runtime::process::shard::Shard;

/// Part of the process that can be disabled, as with the Go extension's `--disable-controllers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Reconciles Workers.
    Worker,
    /// Renews the heartbeat for gardenlet.
    Heartbeat,
}

/// The sharder uses whole seconds and half the lease duration. A shorter lease would leave too little time after the
/// renew deadline.
const SHORTEST_SHARD_LEASE: u16 = 6;

/// Arguments of `controller`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Example:
  gardener-extension-worker controller --kubeconfig seed.yaml")]
pub struct ControllerArguments {
    #[command(flatten)]
    pub(crate) seed: Seed,
    /// Worker types to reconcile. Repeatable. By default, all supported types.
    #[arg(long = "worker-type", env = "WORKER_TYPE", value_name = "TYPE", value_delimiter = ',')]
    pub(crate) worker_types: Vec<String>,
    /// Extension classes to reconcile. A Worker without a class belongs to the class `shoot`.
    #[arg(long, env = "EXTENSION_CLASSES", value_name = "CLASS", value_delimiter = ',', default_value = Served::DEFAULT_CLASS)]
    pub(crate) extension_classes: Vec<String>,
    /// Kubeconfig of the garden, which keeps a shoot's machines during a control plane migration. Only needed if
    /// gardenlet does not copy them into the Worker.
    #[arg(long, env = "GARDEN_KUBECONFIG", value_name = "FILE")]
    pub(crate) garden_kubeconfig: Option<PathBuf>,
    /// Reconcile when the generation changes, ignoring the operation annotation. Also reconcile when a Cluster change
    /// affects the machines.
    #[arg(long, env = "IGNORE_OPERATION_ANNOTATION")]
    pub(crate) ignore_operation_annotation: bool,
    /// Always write the condition EveryNodeReady, even if another controller owns it. By default, a condition written
    /// by another controller, such as the Go extension's health check, is left unchanged. The controller counts nodes
    /// through the kubeconfigs that gardenlet keeps in the shoot namespaces.
    #[arg(long, env = "HEALTH_CHECK")]
    pub(crate) health_check: bool,
    /// Record the image that each machine class was created with. The condition ImageDrift reports when the
    /// CloudProfile now has another image for the same version, so that new nodes differ from existing ones.
    #[arg(long, env = "IMAGE_DRIFT")]
    pub(crate) image_drift: bool,
    /// Keep the image of a machine class until the class is replaced, so that all its nodes have the same image.
    /// Includes --image-drift.
    #[arg(long, env = "PIN_IMAGES")]
    pub(crate) pin_images: bool,
    /// Let at most this many pools of the seed roll at the same time for causes that no owner requested, such as another
    /// identity or a new release. Other pools keep their machine class until a slot is free and gardenlet requests a
    /// reconcile. Rolls that change the node agent Secret are never delayed. With 0, such pools roll only if the
    /// annotation gardener-extension-worker/let-roll names them.
    #[arg(long, env = "ROLL_BUDGET", value_name = "POOLS")]
    pub(crate) roll_budget: Option<u32>,
    /// Forecast each Shoot's versions from its Cluster on every reconcile. The condition VersionsCurrent and metrics
    /// per pool report expiring versions, their successors, and stuck versions.
    #[arg(long, env = "VERSION_FORECAST")]
    pub(crate) version_forecast: bool,
    /// Maximum number of concurrent reconciles. Workers that wait, or whose requests take over half a second, occupy no
    /// slot. More slots only cost memory.
    #[arg(long, env = "WORKER_MAX_CONCURRENT_RECONCILES", default_value_t = 6, value_name = "N")]
    pub(crate) worker_max_concurrent_reconciles: u16,
    /// Dry run next to another controller. Reports differences as metrics and logs. The client rejects every write.
    #[arg(long, env = "SHADOW")]
    pub(crate) shadow: bool,
    #[command(flatten)]
    pub(crate) images: ImageArguments,
    /// Parts to disable. Repeatable.
    #[arg(long, env = "DISABLE_CONTROLLERS", value_enum, value_name = "PART", value_delimiter = ',')]
    pub(crate) disable_controllers: Vec<Part>,
    /// Namespace of the lease for leader election or sharding. Without it, there is no leader election, so run a single
    /// process.
    #[arg(long, env = "LEADER_ELECTION_NAMESPACE", value_name = "NAMESPACE")]
    pub(crate) leader_election_namespace: Option<String>,
    /// Name of the leader election lease. Processes with other types or classes need their own.
    #[arg(long, env = "LEADER_ELECTION_ID", value_name = "NAME", default_value = election::LEASE)]
    pub(crate) leader_election_id: String,
    /// Lease duration in seconds. A standby takes over if the leader does not renew the lease for this long.
    #[arg(long, env = "LEADER_ELECTION_LEASE_SECONDS", value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u16).range(3..))]
    pub(crate) leader_election_lease_seconds: u16,
    /// Name of a ControllerRing of kubernetes-controller-sharding. The process joins it as a shard instead of electing
    /// a leader. Requires --leader-election-namespace and a lease duration of at least 6 seconds.
    #[arg(long, env = "SHARD_RING", value_name = "RING")]
    pub(crate) shard_ring: Option<String>,
    /// Name of this shard and its lease, unique in the ring. By default, the host name, which is the pod's name.
    #[arg(long, env = "SHARD_NAME", value_name = "NAME")]
    pub(crate) shard_name: Option<String>,
    /// Namespace of the heartbeat lease, which gardenlet uses to check that the extension is alive. Without it, there
    /// is no heartbeat.
    #[arg(long, env = "HEARTBEAT_NAMESPACE", value_name = "NAMESPACE")]
    pub(crate) heartbeat_namespace: Option<String>,
    /// Interval in seconds between renewals of the heartbeat.
    #[arg(long, env = "HEARTBEAT_RENEW_INTERVAL_SECONDS", value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) heartbeat_renew_interval_seconds: u16,
    /// Port that serves /healthz, /readyz and /log-level. By default, they are not served.
    #[arg(long, env = "HEALTH_PORT", value_name = "PORT")]
    pub(crate) health_port: Option<u16>,
    /// Port that serves /metrics. By default, they are not served.
    #[arg(long, env = "METRICS_PORT", value_name = "PORT")]
    pub(crate) metrics_port: Option<u16>,
    /// Log level. `RUST_LOG` accepts finer directives. PUT /log-level changes the level at run time.
    #[arg(long, env = "LOG_LEVEL", value_enum, default_value_t = LogLevel::Info)]
    pub(crate) log_level: LogLevel,
    /// Log format.
    #[arg(long, env = "LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
    /// OpenTelemetry collector that receives traces as OTLP over HTTP, such as http://collector:4318. Requires a build
    /// with the feature `otlp`.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_name = "URL")]
    pub(crate) otlp_endpoint: Option<String>,
    /// YAML file with arguments by their long names. Command line arguments override environment variables, which
    /// override the file.
    #[arg(long, env = "CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// The Workers that this process owns.
pub struct Scope {
    pub(crate) served: Served,
    /// `None` if it runs alone or as the leader.
    pub(crate) shard: Option<Shard>,
}

impl ControllerArguments {
    /// Determines the Workers that this process owns, before it reads anything or connects.
    ///
    /// # Errors
    /// If a type has no provider, there is no class, or the arguments of a shard are invalid.
    pub fn scope(&self, providers: Providers) -> anyhow::Result<Scope> {
        let served = Served::new(providers, &self.worker_types, &self.extension_classes)?;
        Ok(Scope { served, shard: self.shard()? })
    }

    pub(crate) fn garden(&self) -> Garden {
        Garden { kubeconfig: self.garden_kubeconfig.clone() }
    }

    /// The shard of this process. Fails if a name is invalid for a ring or a shard, or with an argument that only one
    /// process per seed may use.
    fn shard(&self) -> anyhow::Result<Option<Shard>> {
        let Some(ring) = self.shard_ring.as_deref().filter(|ring| !ring.is_empty()) else {
            anyhow::ensure!(self.shard_name.is_none(), "--shard-name needs --shard-ring");
            return Ok(None);
        };
        let has_namespace = self.leader_election_namespace.is_some();
        anyhow::ensure!(
            has_namespace,
            "--shard-ring needs --leader-election-namespace: the lease of the shard is there"
        );
        let is_long = self.leader_election_lease_seconds >= SHORTEST_SHARD_LEASE;
        anyhow::ensure!(is_long, "--shard-ring needs --leader-election-lease-seconds {SHORTEST_SHARD_LEASE} or more");
        anyhow::ensure!(!self.shadow, "--shard-ring and --shadow exclude each other: a dry run compares all Workers");
        anyhow::ensure!(
            !self.images.images,
            "--shard-ring and --images exclude each other: run the image controllers in a process of their own, with --disable-controllers worker"
        );
        let has_workers = !self.disable_controllers.contains(&Part::Worker);
        anyhow::ensure!(
            has_workers,
            "--shard-ring and --disable-controllers worker exclude each other: no controller would reconcile the Workers of the shard"
        );
        let name = self.shard_name.clone().filter(|name| !name.is_empty()).or_else(election::host);
        let name = name.context("--shard-name is needed: this host has no name")?;
        anyhow::ensure!(name != self.leader_election_id, "--shard-name: the lease of that name is that of leaders");
        Shard::new(ring, &name).map(Some).context("--shard-ring, --shard-name")
    }

    /// Namespace and interval of the heartbeat. `None` if disabled, or in a dry run.
    pub(crate) fn heartbeat(&self) -> Option<(String, Duration)> {
        if self.shadow || self.disable_controllers.contains(&Part::Heartbeat) {
            return None;
        }
        let namespace = self.heartbeat_namespace.clone()?;
        Some((namespace, Duration::from_secs(self.heartbeat_renew_interval_seconds.into())))
    }

    pub(crate) fn image_policy(&self) -> ImagePolicy {
        match (self.pin_images, self.image_drift) {
            (true, _) => ImagePolicy::Pin,
            (false, true) => ImagePolicy::Report,
            (false, false) => ImagePolicy::Follow,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        controller: ControllerArguments,
    }

    fn parsed(arguments: &str) -> ControllerArguments {
        let arguments = ["controller"].into_iter().chain(arguments.split_whitespace());
        CommandLine::try_parse_from(arguments).unwrap().controller
    }

    fn shard(arguments: &str) -> anyhow::Result<Option<Shard>> {
        parsed(arguments).shard()
    }

    #[test]
    fn renews_heartbeat_unless_read_only_or_disabled() {
        let heartbeat =
            |arguments: &str| parsed(arguments).heartbeat().map(|(namespace, period)| (namespace, period.as_secs()));
        assert_eq!(heartbeat(""), None);
        assert_eq!(heartbeat("--heartbeat-namespace ns"), Some(("ns".to_owned(), 30)));
        let often = "--heartbeat-namespace ns --heartbeat-renew-interval-seconds 7 --disable-controllers worker";
        assert_eq!(heartbeat(often), Some(("ns".to_owned(), 7)));
        assert_eq!(heartbeat("--heartbeat-namespace ns --shadow"), None);
        assert_eq!(heartbeat("--heartbeat-namespace ns --disable-controllers worker,heartbeat"), None);
    }

    #[test]
    fn a_shard_does_nothing_that_only_one_process_of_a_seed_may_do() {
        const SHARD: &str = "--shard-ring r --shard-name a --leader-election-namespace ns";
        assert_eq!(shard("").unwrap(), None);
        assert_eq!(shard(SHARD).unwrap(), Some(Shard::new("r", "a").unwrap()));
        for (more, why) in [
            ("--shadow", "--shadow"),
            ("--images", "--images"),
            ("--disable-controllers worker", "--disable-controllers"),
            ("--leader-election-lease-seconds 5", "--leader-election-lease-seconds"),
            ("--leader-election-id a", "--shard-name"),
        ] {
            let refusal = shard(&format!("{SHARD} {more}")).unwrap_err().to_string();
            assert!(refusal.contains(why), "{more}: {refusal}");
        }
        for (arguments, why) in [
            ("--shard-ring r --shard-name a", "--leader-election-namespace"),
            ("--shard-name a", "--shard-ring"),
            ("--shard-ring R --shard-name a --leader-election-namespace ns", "--shard-ring"),
        ] {
            let refusal = shard(arguments).unwrap_err().to_string();
            assert!(refusal.contains(why), "{arguments}: {refusal}");
        }
    }

    #[test]
    fn the_garden_is_reached_by_the_kubeconfig_that_is_given() {
        let garden = |arguments: &[&str]| {
            let arguments = ["controller"].iter().chain(arguments);
            CommandLine::try_parse_from(arguments).unwrap().controller.garden().kubeconfig
        };
        assert_eq!(garden(&[]), None);
        assert_eq!(garden(&["--garden-kubeconfig", "/garden"]), Some("/garden".into()));
    }

    #[test]
    fn follows_images_unless_reported_or_pinned() {
        for (arguments, policy) in
            [("", ImagePolicy::Follow), ("--image-drift", ImagePolicy::Report), ("--pin-images", ImagePolicy::Pin)]
        {
            assert_eq!(parsed(arguments).image_policy(), policy, "{arguments}");
        }
    }
}

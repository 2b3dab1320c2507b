//! `forecast`: the future effects of maintenance on shoots, from files or a garden.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use clap::Args;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::evidence::{Evidence, Reply};
use super::exit::{self, Exit};
use super::in_parallel::in_parallel;
use super::progress::Progress;
use super::terminal::{OutputFormat, one_of, print, width};
use garden_files::{GardenFiles, ProfileKey, Reference, ShootInput, complete, reference};
use profiles::versions::catalog::VersionCatalog;
use profiles::versions::forecast::{Forecast, forecast};
use profiles::versions::garden::{Garden, Validation};
use profiles::versions::maintenance::MaintainedShoot;
use runtime::cluster::garden_cluster::GardenCluster;
use still_on::ImageVersion;
use summary::Summary;
use wire::api::gardener::ProfileSpec;
use wire::capabilities::Classification;

mod document;
pub(super) mod garden_files;
mod groups;
mod html;
mod live;
mod markdown;
mod still_on;
mod summary;
mod table;

/// Duration of a forecast without `--until`.
pub(super) const YEAR: SignedDuration = SignedDuration::from_hours(24 * 365);

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker forecast shoot.yaml --profiles profile.yaml
  gardener-extension-worker forecast shoots/ --profiles profile.yaml --until 2027-12-31 -o markdown
  gardener-extension-worker forecast shoots/ --profiles profile.yaml --cloudprofile-new changed.yaml
  gardener-extension-worker forecast shoots/ --profiles profile.yaml --html > forecast.html      # a calendar for a browser
  gardener-extension-worker forecast --live --context garden --cloudprofile-new changed.yaml
  gardener-extension-worker forecast shoots/ --profiles profile.yaml --still-on gardenlinux@2001.2.0 --at 2026-11-24

docs/versions.md explains the rules. If the files contain SecretBindings or CredentialsBindings, Shoots can only use these.
Otherwise, the bindings that a Shoot references are assumed to exist.",
    &[
        (Exit::Findings, "versions change without affecting a node, or --strict reports a questionable setting"),
        (Exit::Hazard, "no node is affected, but a version is stuck"),
        (Exit::Roll, ""),
    ]))]
pub(super) struct ForecastArguments {
    /// Files or folders with Shoots, or `-` for standard input. They may also contain CloudProfiles,
    /// NamespacedCloudProfiles and Clusters.
    #[arg(value_name = "SHOOT", required_unless_present = "live")]
    shoots: Vec<PathBuf>,
    /// Read Shoots and profiles from the garden of the kubeconfig.
    #[arg(long, conflicts_with_all = ["shoots", "profiles", "cloudprofile"])]
    live: bool,
    #[command(flatten)]
    garden: GardenCluster,
    /// Only include the Shoots of this namespace, with --live.
    #[arg(short, long)]
    namespace: Option<String>,
    /// File or folder with CloudProfiles and NamespacedCloudProfiles.
    #[arg(long, value_name = "PATH")]
    profiles: Vec<PathBuf>,
    /// Former name of --profiles.
    #[arg(long, value_name = "FILE", hide = true)]
    cloudprofile: Vec<PathBuf>,
    /// Changed CloudProfile. The forecast only contains differences from the current profile.
    #[arg(long, value_name = "FILE")]
    cloudprofile_new: Vec<PathBuf>,
    /// Start of the forecast, as a day or a time such as 2027-03-31T12:00:00Z. Defaults to today. With --still-on, the
    /// time of the answer.
    #[arg(long, value_name = "DATE", value_parser = moment)]
    at: Option<Timestamp>,
    /// List the pools that still run this version of an image at --at, why, and which expiration would move them.
    #[arg(long, value_name = "IMAGE@VERSION", value_parser = ImageVersion::parse, conflicts_with_all = ["until", "strict", "html"])]
    still_on: Option<ImageVersion>,
    /// Start of the forecast with --still-on: the time of the given Shoots. Defaults to today.
    #[arg(long, value_name = "DATE", value_parser = moment, requires = "still_on")]
    from: Option<Timestamp>,
    /// End of the forecast. Defaults to one year after its start.
    #[arg(long, value_name = "DATE", value_parser = moment)]
    until: Option<Timestamp>,
    /// Also report questionable settings.
    #[arg(long)]
    strict: bool,
    /// Show every Shoot separately in tables. By default, more than 20 are grouped by change and sorted by date.
    #[arg(long)]
    all: bool,
    /// Output format. `html` is a calendar for a browser, with a row for each version and each shoot.
    #[arg(short, long, value_parser = one_of(&["table", "json", "markdown", "html"]), default_value = "table")]
    output: OutputFormat,
    /// Alias for `-o html`.
    #[arg(long, conflicts_with = "output")]
    html: bool,
}

/// Parses a day or a time.
pub(super) fn moment(text: &str) -> Result<Timestamp, String> {
    let of_day = || text.parse::<Date>().and_then(|date| date.to_zoned(TimeZone::UTC)).map(|begin| begin.timestamp());
    let moment: Timestamp = text
        .parse()
        .or_else(|_| of_day())
        .map_err(|_| "neither a day such as 2027-03-31 nor a time such as 2027-03-31T12:00:00Z".to_owned())?;
    // Keeps the time one year later in range.
    let is_in_reach = (1970..9000).contains(&moment.to_zoned(TimeZone::UTC).year());
    if is_in_reach { Ok(moment) } else { Err("not between the years 1970 and 9000".to_owned()) }
}

/// A shoot with its forecast.
struct ShootForecast {
    source: String,
    shoot: String,
    profile: Reference,
    forecast: Forecast,
    /// Forecast with the current profile, if `--cloudprofile-new` is given.
    before: Option<Forecast>,
}

/// The lifecycle of a version.
struct VersionLife {
    profile: Reference,
    /// `Kubernetes`, or the name of an image.
    what: String,
    version: String,
    /// Stages in list order, with their start.
    stages: Vec<(Option<Timestamp>, Classification)>,
}

/// The complete output.
struct Report {
    from: Timestamp,
    until: Timestamp,
    shoots: Vec<ShootForecast>,
    /// Versions of the profiles that shoots reference, for the calendar.
    versions: Vec<VersionLife>,
    /// Number of shoots that were evaluated.
    all: usize,
    evidence: Evidence,
    is_comparison: bool,
    is_strict: bool,
}

pub(super) fn run(arguments: &ForecastArguments) -> anyhow::Result<Reply> {
    if (arguments.garden.is_named() || arguments.namespace.is_some()) && !arguments.live {
        return Err(exit::wrong_usage("--kubeconfig, --context and --namespace are for --live"));
    }
    exit::warn_renamed(!arguments.cloudprofile.is_empty(), "--cloudprofile", "--profiles");
    let changed = GardenFiles::read_some(&arguments.cloudprofile_new, "CloudProfile", GardenFiles::has_profiles);
    let from = arguments.at.unwrap_or_else(today);
    let until = arguments.until.unwrap_or(from + YEAR);
    if until <= from {
        return Err(exit::wrong_usage("--until must be later than --at"));
    }
    if arguments.still_on.is_some() && matches!(arguments.output, OutputFormat::Html | OutputFormat::Markdown) {
        return Err(exit::wrong_usage("--still-on prints a table or JSON"));
    }
    let files = if arguments.live {
        live::read(&arguments.garden, arguments.namespace.as_deref())?
    } else {
        let mut files = GardenFiles::read(&arguments.shoots);
        let profiles = [&arguments.profiles[..], &arguments.cloudprofile].concat();
        files.join(GardenFiles::read_some(&profiles, "CloudProfile", GardenFiles::has_profiles));
        files
    };
    if let Some(version) = &arguments.still_on {
        return still_on::run(version, arguments, &files, &changed);
    }
    let report = report(&files, &changed, [from, until], arguments);
    if report.all == 0 && report.evidence.is_complete() {
        return Err(no_shoots(arguments));
    }
    match arguments.output {
        _ if arguments.html => print(&html::page(&report)?)?,
        OutputFormat::Html => print(&html::page(&report)?)?,
        OutputFormat::Json => document::print_document(&report)?,
        OutputFormat::Markdown => print(&markdown::text(&report))?,
        _ => print(&table::text(&report, arguments.all, width()))?,
    }
    let exit = report.exit();
    Ok(Reply::new(report.evidence, exit))
}

fn no_shoots(arguments: &ForecastArguments) -> anyhow::Error {
    match &arguments.namespace {
        Some(namespace) => anyhow::anyhow!("no Shoot in namespace {namespace:?} of the garden"),
        None => anyhow::anyhow!("no Shoot found"),
    }
}

fn today() -> Timestamp {
    let now = Timestamp::now();
    now.to_zoned(TimeZone::UTC).start_of_day().map_or(now, |day| day.timestamp())
}

fn report(files: &GardenFiles, changed: &GardenFiles, span: [Timestamp; 2], arguments: &ForecastArguments) -> Report {
    let is_comparison = !arguments.cloudprofile_new.is_empty();
    let old = files.replaced_by(&GardenFiles::none());
    let new = if is_comparison { files.replaced_by(changed) } else { BTreeMap::new() };
    let [old, new] = [&old, &new].map(catalogs);
    let shoots = files.shoots();
    let garden =
        Garden { bindings: files.bindings(), is_nginx_ingress_disabled: false, validation: Validation::WithProfile };
    let mut report = Report {
        from: span[0],
        until: span[1],
        shoots: Vec::new(),
        versions: lives(if is_comparison { &new } else { &old }, &shoots),
        all: shoots.len(),
        evidence: files.evidence.clone(),
        is_comparison,
        is_strict: arguments.strict,
    };
    report.evidence.join(changed.evidence.clone());
    let progress = Progress::new("shoots", shoots.len());
    let forecasts = in_parallel(&shoots, |given| {
        let ShootInput { source, state, .. } = given;
        let profile = reference(&state.shoot);
        let of = |catalogs: &BTreeMap<ProfileKey, VersionCatalog<'_>>| {
            let (_, catalog) =
                given.profile(catalogs).ok_or_else(|| format!("CloudProfile {profile:?} is not given"))?;
            one(state, catalog, &garden, span)
        };
        let forecast = of(&old).and_then(|old| match is_comparison {
            true => of(&new).map(|new| (!same(&old, &new)).then_some((new, Some(old)))),
            false => Ok(Some((old, None))),
        });
        progress.step();
        let source = source.clone();
        let shoot = state.shoot.title();
        match forecast {
            Ok(found) => Ok(found.map(|(forecast, before)| ShootForecast { source, shoot, profile, forecast, before })),
            Err(error) => Err(format!("{source}: Shoot {shoot}: {error}")),
        }
    });
    for forecast in forecasts {
        match forecast {
            Ok(forecast) => {
                report.evidence.evaluated(1);
                report.shoots.extend(forecast);
            }
            Err(error) => report.evidence.unevaluated(error),
        }
    }
    report
}

fn catalogs(profiles: &BTreeMap<ProfileKey, ProfileSpec>) -> BTreeMap<ProfileKey, VersionCatalog<'_>> {
    profiles.iter().map(|(key, spec)| (key.clone(), VersionCatalog::new(&key.reference, spec))).collect()
}

fn lives(catalogs: &BTreeMap<ProfileKey, VersionCatalog<'_>>, shoots: &[&ShootInput]) -> Vec<VersionLife> {
    let used: BTreeSet<&ProfileKey> =
        shoots.iter().filter_map(|shoot| shoot.profile(catalogs)).map(|(key, _)| key).collect();
    let mut lives = Vec::new();
    for (profile, catalog) in catalogs.iter().filter(|(profile, _)| used.contains(profile)) {
        let images = catalog
            .images
            .iter()
            .flat_map(|image| image.versions.iter().map(|version| (image.image.name.as_str(), &version.listed)));
        let all = catalog.kubernetes.iter().map(|listed| ("Kubernetes", listed)).chain(images);
        lives.extend(all.map(|(what, listed)| VersionLife {
            profile: profile.reference.clone(),
            what: what.to_owned(),
            version: listed.text.to_owned(),
            stages: listed.stages().collect(),
        }));
    }
    lives
}

/// Forecasts a Shoot, after filling in omitted versions as Gardener does.
pub(super) fn one(
    state: &MaintainedShoot,
    catalog: &VersionCatalog<'_>,
    garden: &Garden,
    span: [Timestamp; 2],
) -> Result<Forecast, String> {
    let mut state = state.clone();
    complete(&mut state.shoot, catalog.spec, span[0])?;
    Ok(forecast(&state, catalog, garden, span))
}

fn same(before: &Forecast, after: &Forecast) -> bool {
    before.steps == after.steps && before.stuck == after.stuck
}

impl Report {
    fn exit(&self) -> Exit {
        let summary = Summary::of(self);
        if summary.pools > 0 {
            Exit::Roll
        } else if summary.stuck > 0 {
            Exit::Hazard
        } else if summary.moving > 0
            || (self.is_strict && self.shoots.iter().any(|shoot| !shoot.forecast.findings.is_empty()))
        {
            Exit::Findings
        } else {
            Exit::Done
        }
    }
}

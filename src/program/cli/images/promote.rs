//! `images promote`: copies images from the lock of one landscape to the lock of the next.

use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;

use super::input::lock;
use super::lock::finish;
use super::written::write_lock;
use crate::cli::evidence::{Evidence, Reply};
use crate::cli::exit::{self, Exit};
use crate::cli::forecast::moment;
use crate::cli::preview::words::counted;
use crate::cli::terminal::{OutputFormat, complain, one_of};
use crate::cli::whole_file::Update;
use profiles::images::promotion::promote;

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker images promote dev/images.lock prod/images.lock --days 7
  gardener-extension-worker images promote dev/images.lock prod/images.lock --days 7 --dry-run",
    &[(Exit::Findings, "images were promoted, or are too recent to be promoted")]))]
pub(super) struct PromoteArguments {
    /// Lock of the landscape that already uses the images.
    #[arg(value_name = "FROM")]
    from: PathBuf,
    /// Lock of the landscape that receives the images. The command writes this file.
    #[arg(value_name = "TO")]
    to: PathBuf,
    /// Minimum number of days that an image must have been in the first lock.
    #[arg(long, value_name = "DAYS")]
    days: u16,
    /// Only show the changes, without writing the lock.
    #[arg(long)]
    dry_run: bool,
    /// Day or time to evaluate. Defaults to now.
    #[arg(long, value_name = "DATE", value_parser = moment)]
    at: Option<Timestamp>,
    /// Output format.
    #[arg(short, long, value_parser = one_of(&["table", "json"]), default_value = "table")]
    output: OutputFormat,
}

pub(super) fn run(arguments: &PromoteArguments) -> anyhow::Result<Reply> {
    let from = lock(&arguments.from, false)?;
    let update = if arguments.dry_run { None } else { Some(Update::begin(&arguments.to)?) };
    let to = lock(&arguments.to, true)?;
    let now = arguments.at.unwrap_or_else(Timestamp::now);
    let promotion = promote(&from, &to, arguments.days, now);
    if let (Some(update), false) = (update, promotion.changes.is_empty()) {
        write_lock(update, &promotion.lock)?;
    }
    for (key, image) in &promotion.too_young {
        let since = image.locked.strftime("%F");
        complain(&format!(
            "too young: {key}: {} is there since {since}, less than {}",
            image.reference,
            counted(u64::from(arguments.days), "day")
        ));
    }
    let evidence = Evidence::whole("lock", 2);
    let name = arguments.to.display().to_string();
    let result = finish(&promotion.changes, &name, arguments.dry_run, arguments.output, evidence.clone())?;
    Ok(if promotion.too_young.is_empty() { result } else { Reply::new(evidence, Exit::Findings) })
}

//! `cloudprofile convert`: converts between the old format and capabilities.

use anyhow::Context;
use clap::{Args, ValueEnum};

use super::source::OneSource;
use super::written::{print_differences, print_proof, report};
use crate::cli::evidence::{Evidence, Reply};
use crate::cli::exit::{self, Exit};
use crate::cli::terminal::{OutputFormat, json, one_of, print, width, yaml_in_place_of};
use decisions::provider::Providers;
use profiles::resolved_profile::convert::{
    Conversion, ConvertError, Format, Knowledge, SuffixMeaning, TypeDecision, convert, convert_draft,
};

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker cloudprofile convert example/cloudprofiles/azure-legacy.yaml > azure.yaml
  gardener-extension-worker cloudprofile convert old.yaml --decide 'Standard_D*_v5=hypervisorType:gen2'
  gardener-extension-worker cloudprofile convert old.yaml --suffix fips=cryptography:fips/standard
  gardener-extension-worker cloudprofile convert --from draft draft.yaml > azure.yaml
  gardener-extension-worker cloudprofile convert --to old-format azure.yaml > azure-old.yaml

The profile is printed to stdout, and the comparison and undecided capabilities to stderr. No profile is printed if a machine
type would lose or change its image, unless --decide requests that. The order and comments of a file with one profile
stay, but not those of a draft.",
    &[(Exit::Findings, "converted, but a capability is undecided")]))]
pub(super) struct ConvertArguments {
    #[command(flatten)]
    source: OneSource,
    /// Format to write.
    #[arg(long, value_enum, default_value_t = To::Capabilities)]
    to: To,
    /// Format of the input. `draft` selects the names in drafts of GEP-33 (`capabilities` as a map, `capabilitySets`).
    #[arg(long, value_enum, conflicts_with = "to")]
    from: Option<From>,
    /// Capabilities of machine types that the old format leaves open. `*` matches any text. The last match wins.
    #[arg(long = "decide", value_name = "TYPES=CAPABILITY:VALUES")]
    decisions: Vec<TypeDecision>,
    /// Meaning of a version suffix. Built in are gen1, gen2 (hypervisorType), amd64 and arm64 (architecture).
    #[arg(long = "suffix", value_name = "SUFFIX=CAPABILITY:VALUE/VALUE_WITHOUT")]
    suffixes: Vec<SuffixMeaning>,
    /// Output format. YAML contains only the profile, JSON also the report.
    #[arg(short, long, value_parser = one_of(&["yaml", "json"]), default_value = "yaml")]
    output: OutputFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum From {
    Draft,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum To {
    Capabilities,
    OldFormat,
}

pub(super) fn run(arguments: &ConvertArguments, providers: Providers) -> anyhow::Result<Reply> {
    let found = arguments.source.read()?;
    let format = match arguments.to {
        To::Capabilities => Format::Capabilities,
        To::OldFormat => Format::Old,
    };
    let knowledge = Knowledge { suffixes: arguments.suffixes.clone(), machine_types: arguments.decisions.clone() };
    let converted = match arguments.from {
        Some(From::Draft) => convert_draft(&found.document, &knowledge, providers),
        None => convert(&found.document, format, &knowledge, providers),
    };
    let conversion = match converted {
        Err(ConvertError::NotEquivalent(proof)) => {
            print_differences(&proof.differences, &proof.lost, width());
            return Err(ConvertError::NotEquivalent(proof)).context(found.source);
        }
        converted => converted.context(found.source)?,
    };
    let evidence = Evidence::whole("CloudProfile", 1);
    match arguments.output {
        OutputFormat::Json => print(&json(&evidence.attach(serde_json::to_value(&conversion)?))?)?,
        _ => {
            // A draft has other names nearly everywhere.
            let original = if arguments.from.is_none() { found.text.as_deref() } else { None };
            print(&yaml_in_place_of(original, &conversion.profile)?)?;
            if conversion.profile == found.document {
                report("Nothing to convert: the profile is in this format already.", 0, width());
            }
            print_everything(&conversion, width());
        }
    }
    let exit = if conversion.undecided.is_empty() { Exit::Done } else { Exit::Findings };
    Ok(Reply::new(evidence, exit))
}

fn print_everything(conversion: &Conversion, width: usize) {
    let has_exceptions = !conversion.intended.is_empty() || !conversion.given_up.is_empty();
    print_proof(&conversion.proof, has_exceptions, width);
    if has_exceptions {
        report("Different from before, as it is meant:", 0, width);
        print_differences(&conversion.intended, &conversion.given_up, width);
    }
    if !conversion.undecided.is_empty() {
        report("Undecided:", 0, width);
    }
    for undecided in &conversion.undecided {
        report(&format!("{}: {} {}", undecided.subject, undecided.open, undecided.advice), 2, width);
    }
}

//! kubectl's flags for commands that read objects, and which positional arguments are names or files.

use std::path::{Path, PathBuf};

use clap::Args;

use super::selector::Selector;
use crate::cli::exit::wrong_usage;
use runtime::cluster::seed::Seed;

/// Ends of names that are always files.
const FILE_ENDINGS: [&str; 6] = [".yaml", ".yml", ".json", ".yaml.gz", ".yml.gz", ".json.gz"];

/// Selects the objects, with kubectl's flags.
#[derive(Clone, Debug, Default, Args)]
pub(in crate::cli) struct Reading {
    /// Only read this namespace: the shoot namespace in the seed. Names are searched in it.
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(in crate::cli) namespace: Option<String>,
    /// Read the Workers of all namespaces.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub(in crate::cli) all_namespaces: bool,
    /// Only read Workers with these labels, such as `KEY=VALUE,KEY!=VALUE`.
    #[arg(short = 'l', long, value_name = "LABELS")]
    pub(in crate::cli) selector: Option<Selector>,
    /// Read these files or folders instead of a cluster, or `-` for standard input. Repeatable.
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub(in crate::cli) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) seed: Seed,
}

/// Positional arguments, by what they are.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::cli) struct Given {
    /// Names of objects.
    pub(in crate::cli) names: Vec<String>,
    /// Files, including those of `-f`. Empty for a cluster.
    pub(in crate::cli) files: Vec<PathBuf>,
}

/// Separates names from files. A text without the ending of a file is a file only if it exists and no cluster is named.
pub(in crate::cli) fn given(positional: &[PathBuf], reading: &Reading) -> anyhow::Result<Given> {
    let mut given = Given { names: Vec::new(), files: reading.files.clone() };
    for argument in positional {
        if is_file(argument, reading) {
            given.files.push(argument.clone());
        } else {
            let name = argument.to_str().ok_or_else(|| wrong_usage("a name is not valid text"))?;
            given.names.push(name.to_owned());
        }
    }
    if reading.seed.is_named() && !given.files.is_empty() {
        return Err(wrong_usage("--kubeconfig and --context are for a cluster: name no file with it"));
    }
    Ok(given)
}

fn is_file(argument: &Path, reading: &Reading) -> bool {
    let text = argument.to_string_lossy();
    // A name has at most one slash.
    let is_spelled = text == "-"
        || text.matches('/').count() > 1
        || ["/", "./", "../"].iter().any(|beginning| text.starts_with(beginning))
        || FILE_ENDINGS.iter().any(|ending| text.ends_with(ending));
    let names_cluster = reading.seed.is_named() || reading.all_namespaces || reading.namespace.is_some();
    is_spelled || !names_cluster && reading.files.is_empty() && argument.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separates_names_from_files() {
        let given = |positional: &[&str], reading: &Reading| {
            let positional: Vec<PathBuf> = positional.iter().map(PathBuf::from).collect();
            let given = given(&positional, reading).unwrap();
            (given.names, given.files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>())
        };
        let none = Reading::default();
        let arguments = ["web", "a/web", "no/such/file", "-", "./web", "src", "no.yaml"];
        let (names, files) = given(&arguments, &none);
        assert_eq!(names, ["web", "a/web"]);
        assert_eq!(files, ["no/such/file", "-", "./web", "src", "no.yaml"]);
        let namespace = Reading { namespace: Some("src".to_owned()), ..Reading::default() };
        assert_eq!(given(&["src"], &namespace).0, ["src"], "a folder of the same name is not read");
    }
}

//! A file or folder with listings, as it is named in arguments: `[REGION=]FILE`.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

/// Where listings are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePath {
    /// The region of its images, where the tool that made it does not print it.
    pub region: Option<String>,
    /// The file or folder.
    pub path: PathBuf,
}

impl FromStr for SourcePath {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // A region has no slash; a path may have anything.
        Ok(match text.split_once('=').filter(|(region, _)| !region.contains('/')) {
            Some((region, path)) => Self { region: Some(region.to_owned()), path: path.into() },
            None => Self { region: None, path: text.into() },
        })
    }
}

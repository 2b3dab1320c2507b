//! A file or folder with listings as an argument: `[REGION=]FILE`.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

/// Location of listings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePath {
    /// Region of the images, if the tool does not print it.
    pub region: Option<String>,
    /// The file or folder.
    pub path: PathBuf,
}

impl FromStr for SourcePath {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // A region has no slash; a path may contain anything.
        Ok(match text.split_once('=').filter(|(region, _)| !region.contains('/')) {
            Some((region, path)) => Self { region: Some(region.to_owned()), path: path.into() },
            None => Self { region: None, path: text.into() },
        })
    }
}

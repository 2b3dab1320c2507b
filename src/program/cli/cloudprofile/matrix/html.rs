//! The matrix as one HTML page.

use super::table::newest_first;
use crate::cli::page::Page;
use profiles::resolved_profile::matrix::Matrix;

const PAGE: Page = Page {
    command: "cloudprofile matrix",
    class: "matrix",
    filters: include_str!("filters.html"),
    legend: include_str!("legend.html"),
    content: include_str!("content.html"),
    script: include_str!("matrix.js"),
};

/// The page, with the newest version of each image first.
pub(super) fn page(matrix: &Matrix<'_>) -> anyhow::Result<String> {
    let mut sorted = matrix.clone();
    sorted.images = newest_first(matrix).into_iter().cloned().collect();
    PAGE.render(&format!("Images of CloudProfile {}", matrix.profile), &sorted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use profiles::resolved_profile::selection::Selection;
    use profiles::resolved_profile::{Resolution, ResolvedProfile, matrix::matrix};

    #[test]
    fn a_name_can_not_become_markup() {
        let resolved_profile = ResolvedProfile {
            name: "</script><script>alert(1)</script>{{script}}".to_owned(),
            ..ResolvedProfile::default()
        };
        let resolution = Resolution::of(&resolved_profile);
        let page = page(&matrix(&resolution, &Selection::default())).unwrap();
        assert_eq!(page.matches("<script").count(), 2, "the data and the script of the page");
        assert_eq!(page.matches("alert(1)").count(), 3, "two titles and the data");
        assert_eq!(page.matches(PAGE.script).count(), 1);
    }
}

//! The matrix as one HTML page.

use crate::cli::page::Page;
use profiles::resolved_profile::matrix::Matrix;

const PAGE: Page =
    Page { template: include_str!("page.html"), style: include_str!("page.css"), script: include_str!("page.js") };

pub(super) fn page(matrix: &Matrix<'_>) -> anyhow::Result<String> {
    PAGE.render(&format!("Images of CloudProfile {}", matrix.profile), matrix)
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

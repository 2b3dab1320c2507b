//! `DescribeImages` in the form of EC2's Query API.

use reqwest::Url;

use profiles::images::query::ImageQuery;

/// Version of the API.
const API_VERSION: &str = "2016-11-15";
/// Number of images per page.
const PAGE: &str = "1000";
/// Maximum number of values of a filter.
const MOST_VALUES: usize = 200;

/// The calls for a query, without paging. Several, because a filter has a bounded number of values.
pub(super) fn calls(query: &ImageQuery) -> Vec<Vec<(String, String)>> {
    if query.names.is_empty() {
        return vec![call(&query.owners, &[])];
    }
    query.names.chunks(MOST_VALUES).map(|names| call(&query.owners, names)).collect()
}

fn call(owners: &[String], names: &[String]) -> Vec<(String, String)> {
    // Includes deprecated images, to explain why one is not used.
    let fixed =
        [("Action", "DescribeImages"), ("Version", API_VERSION), ("MaxResults", PAGE), ("IncludeDeprecated", "true")];
    let fixed = fixed.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let owners = owners.iter().zip(1..).map(|(owner, number)| (format!("Owner.{number}"), owner.clone()));
    let filter = (!names.is_empty()).then(|| ("Filter.1.Name".to_owned(), "name".to_owned()));
    let names = names.iter().zip(1..).map(|(name, number)| (format!("Filter.1.Value.{number}"), name.clone()));
    fixed.into_iter().chain(owners).chain(filter).chain(names).collect()
}

/// Encodes a call as a form, for the first page or the page of a token.
pub(super) fn form(call: &[(String, String)], page: Option<&str>, endpoint: &Url) -> String {
    let mut form = endpoint.clone();
    form.query_pairs_mut().clear().extend_pairs(call).extend_pairs(page.map(|token| ("NextToken", token)));
    form.query().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_names_into_as_few_filters_as_needed() {
        let names = (0..201).map(|number| format!("a {number}-*")).collect();
        let calls = calls(&ImageQuery { owners: vec!["self".to_owned(), "111111111111".to_owned()], names });
        assert_eq!(calls.len(), 2);
        let endpoint = "https://ec2.eu-central-1.amazonaws.com/".parse().unwrap();
        assert_eq!(
            form(&calls[1], Some("a+b"), &endpoint),
            "Action=DescribeImages&Version=2016-11-15&MaxResults=1000&IncludeDeprecated=true&Owner.1=self&Owner.2=111111111111\
             &Filter.1.Name=name&Filter.1.Value.1=a+200-*&NextToken=a%2Bb"
        );
        let all = super::calls(&ImageQuery::of_owners(vec!["self".to_owned()]));
        assert!(all.len() == 1 && !form(&all[0], None, &endpoint).contains("Filter"));
    }
}

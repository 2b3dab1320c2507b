//! XML responses of EC2.

use serde::Deserialize;

use profiles::images::sources::Ec2Image;
use wire::api::bounded_text::beginning;

/// Maximum number of characters of an error in a message.
const MOST_OF_ERROR: usize = 300;

#[derive(Debug)]
pub(super) struct Page {
    pub(super) images: Vec<Ec2Image>,
    /// Token for the next page.
    pub(super) next: Option<String>,
}

/// An error response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Refusal {
    pub(super) code: String,
    message: String,
}

impl Refusal {
    /// Code and first line of the message. The other lines may repeat the request, including its token.
    pub(super) fn text(&self) -> String {
        let line = self.message.lines().next().unwrap_or_default();
        beginning(&format!("{}: {line}", self.code), MOST_OF_ERROR)
    }

    /// Whether a retry can succeed.
    pub(super) fn is_throttling(&self) -> bool {
        ["RequestLimitExceeded", "Throttling", "ThrottlingException", "Unavailable", "InternalError"]
            .contains(&self.code.as_str())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reply {
    images_set: Images,
    next_token: Option<String>,
}

#[derive(Deserialize)]
struct Images {
    #[serde(default)]
    item: Vec<Ec2Image>,
}

/// Decodes a page.
///
/// # Errors
/// If it can't be decoded. The error does not quote the response, which may contain anything.
pub(super) fn page(xml: &[u8]) -> Result<Page, String> {
    let reply: Reply = read(xml).map_err(|problem| format!("the answer can't be read: {problem}"))?;
    Ok(Page { images: reply.images_set.item, next: reply.next_token.filter(|token| !token.is_empty()) })
}

/// Decodes an error response. Any other response has no code.
pub(super) fn refusal(xml: &[u8]) -> Refusal {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Response {
        errors: Errors,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Errors {
        error: Refusal,
    }
    read::<Response>(xml).map(|response| response.errors.error).unwrap_or_default()
}

fn read<T: serde::de::DeserializeOwned>(xml: &[u8]) -> Result<T, String> {
    let text = std::str::from_utf8(xml).map_err(|error| error.to_string())?;
    quick_xml::de::from_str(text).map_err(|error| beginning(&error.to_string(), MOST_OF_ERROR))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const RESPONSE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<DescribeImagesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">
  <requestId>0</requestId>
  <imagesSet>
    <item>
      <imageId>ami-0123456789abcdef0</imageId><imageLocation>a/b</imageLocation><imageState>available</imageState>
      <imageOwnerId>111111111111</imageOwnerId><isPublic>true</isPublic><architecture>arm64</architecture><imageType>machine</imageType>
      <name>a &amp; b</name><creationDate>2026-11-18T09:00:00.000Z</creationDate><bootMode>uefi</bootMode>
      <blockDeviceMapping>
        <item><deviceName>/dev/sda1</deviceName><ebs><snapshotId>snap-1</snapshotId><encrypted>true</encrypted></ebs></item>
        <item><deviceName>/dev/sdb</deviceName><virtualName>ephemeral0</virtualName></item>
      </blockDeviceMapping>
      <tagSet><item><key>channel</key><value>stable</value></item></tagSet>
    </item>
    <item><imageId>ami-1</imageId><tagSet/><blockDeviceMapping/></item>
  </imagesSet>
  <nextToken>abc=</nextToken>
</DescribeImagesResponse>"#;

    #[test]
    fn response_equals_output_of_the_command_line_tool() {
        let page = page(RESPONSE.as_bytes()).unwrap();
        assert_eq!(page.next.as_deref(), Some("abc="));
        assert_eq!(
            json!(page.images[0]),
            json!({
                "ImageId": "ami-0123456789abcdef0", "Name": "a & b", "OwnerId": "111111111111", "State": "available",
                "ImageType": "machine", "Architecture": "arm64", "BootMode": "uefi", "CreationDate": "2026-11-18T09:00:00.000Z",
                "DeprecationTime": null, "Tags": [{"Key": "channel", "Value": "stable"}],
                "BlockDeviceMappings": [
                    {"DeviceName": "/dev/sda1", "Ebs": {"Encrypted": true, "SnapshotId": "snap-1"}},
                    {"DeviceName": "/dev/sdb", "Ebs": null},
                ],
                // Attributes for filters are texts here, whatever their type.
                "ImageLocation": "a/b", "Public": "true",
            })
        );
        assert_eq!(json!(page.images[1])["Tags"], json!([]));
    }

    #[test]
    fn unexpected_responses_are_errors() {
        for text in ["", "<html>Sign in</html>", "<DescribeImagesResponse><imagesSet><item/></imagesSet>", "{}"] {
            assert!(page(text.as_bytes()).unwrap_err().starts_with("the answer can't be read: "), "{text}");
        }
        let none = page(b"<DescribeImagesResponse><imagesSet/></DescribeImagesResponse>").unwrap();
        assert!(none.images.is_empty() && none.next.is_none());
    }

    #[test]
    fn an_error_is_its_code_and_first_line() {
        let xml = "<Response><Errors><Error><Code>SignatureDoesNotMatch</Code><Message>It does not match.\n\
                   The Canonical String was x-amz-security-token:secret</Message></Error></Errors><RequestID>0</RequestID></Response>";
        assert_eq!(refusal(xml.as_bytes()).text(), "SignatureDoesNotMatch: It does not match.");
        assert_eq!(refusal(b"<html/>"), Refusal::default());
    }
}

//! `images fetch ec2`: the images of EC2.

use serde_json::json;
use test_support::ec2::{ACCESS_KEY, Ec2, error};
use test_support::moto::{Moto, ami};

use crate::person::{Outcome, Person};

const LOOKUPS: &str = r#"
kind: ImageLookup
metadata: {name: ubuntu}
spec:
  provider: aws
  imagePrefix: capa-ami
  lookupFormat: "-{{.OS}}-?{{.K8sVersion}}-*"
  os: [ubuntu-24.04]
  arch: [amd64]
  versions: ">=1.33"
  owners: ["222222222222"]
"#;

fn person(endpoint: &str) -> Person {
    let (key, secret) = ACCESS_KEY;
    let person = Person::new(&[
        ("AWS_ACCESS_KEY_ID", key),
        ("AWS_SECRET_ACCESS_KEY", secret),
        ("AWS_ENDPOINT_URL_EC2", endpoint),
    ]);
    person.write("lookups.yaml", LOOKUPS);
    person
}

fn fetch(person: &Person, more: &[&str]) -> Outcome {
    person.images(&[&["fetch", "ec2", "--region", "eu-central-1", "--to", "aws.yaml"], more].concat())
}

/// The members of an image in EC2's XML.
fn item(id: &str, name: &str, day: &str, more: &str) -> String {
    format!(
        "<imageId>ami-{id:0>8}</imageId><imageState>available</imageState><imageOwnerId>222222222222</imageOwnerId>\
         <architecture>x86_64</architecture><imageType>machine</imageType><name>{name}</name>\
         <creationDate>{day}T09:00:00.000Z</creationDate>{more}"
    )
}

#[test]
fn all_pages_of_all_regions_become_a_file_that_other_commands_read() {
    let ec2 = Ec2::start(2).unwrap();
    let name = "capa-ami-ubuntu-24.04-v1.34.2-1";
    ec2.has("eu-central-1", &item("1", name, "2026-09-22", ""));
    ec2.has(
        "eu-central-1",
        &item("2", name, "2026-11-20", "<deprecationTime>2026-11-21T00:00:00.000Z</deprecationTime>"),
    );
    ec2.has(
        "eu-central-1",
        &item(
            "3",
            name,
            "2026-11-19",
            "<blockDeviceMapping><item><ebs><encrypted>true</encrypted></ebs></item></blockDeviceMapping>",
        ),
    );
    ec2.has("eu-central-1", "<imageId>aki-00000001</imageId><imageType>kernel</imageType>");
    ec2.has(
        "eu-central-1",
        &item(
            "5",
            name,
            "2026-11-18",
            "<bootMode>uefi</bootMode><tagSet><item><key>channel</key><value>stable</value></item></tagSet>",
        ),
    );
    ec2.has("eu-west-1", &item("6", name, "2026-10-01", ""));
    let person = person(&ec2.url());
    let fetched = person.images(&[
        "fetch",
        "ec2",
        "--region",
        "eu-west-1,eu-central-1",
        "--owner",
        "222222222222",
        "--to",
        "aws.yaml",
    ]);
    assert_eq!((fetched.code, fetched.stderr.as_str()), (0, "aws.yaml: 5 images written.\n"), "{fetched:?}");
    assert_eq!(
        person.resolved(&["--source", "aws.yaml", "--lookups", "lookups.yaml"]),
        [
            "ubuntu-24.04 1.34.2 eu-central-1: ami-00000005 chosen: the newest; ami-00000001 older; \
             ami-00000002 deprecated since 2026-11-21; ami-00000003 it is encrypted",
            "ubuntu-24.04 1.34.2 eu-west-1: ami-00000006 chosen: the newest",
        ]
    );
    let tagged = person.resolved(&[
        "--source",
        "aws.yaml",
        "--lookups",
        "lookups.yaml",
        "--where",
        "tag:channel=stable",
        "--where",
        "bootMode=uefi",
    ]);
    assert_eq!(tagged, ["ubuntu-24.04 1.34.2 eu-central-1: ami-00000005 chosen: the newest"]);
    let requests = ec2.requests();
    let tokens: Vec<Option<&str>> = requests.iter().map(|form| form.get("NextToken").map(String::as_str)).collect();
    assert_eq!(tokens, [None, None, Some("from 2"), Some("from 4")]);
    assert!(requests.iter().all(|form| form["Owner.1"] == "222222222222" && form["IncludeDeprecated"] == "true"));
    // Another order of arguments returns the same file, so that a review contains only real changes.
    let before = person.read("aws.yaml");
    person.images(&[
        "fetch",
        "ec2",
        "--region",
        "eu-central-1,eu-west-1",
        "--owner",
        "222222222222",
        "--to",
        "aws.yaml",
    ]);
    assert_eq!(person.read("aws.yaml"), before);
}

#[test]
fn retries_transient_errors() {
    let ec2 = Ec2::start(10).unwrap();
    ec2.has("eu-central-1", &item("1", "a", "2026-09-22", ""));
    ec2.fail(503, &error("RequestLimitExceeded", "Request limit exceeded."));
    ec2.fail(502, "<html>Bad gateway</html>");
    let fetched = fetch(&person(&ec2.url()), &["--owner", "self"]);
    assert_eq!((fetched.code, ec2.requests().len()), (0, 3), "{fetched:?}");
}

#[test]
fn ec2_refusal_is_reported_and_changes_no_file() {
    let ec2 = Ec2::start(10).unwrap();
    let person = person(&ec2.url());
    person.write("aws.yaml", "as it was");
    let refused = |person: &Person, reported: &str| {
        let fetched = fetch(person, &["--owner", "self"]);
        assert_eq!((fetched.code, fetched.stdout.as_str()), (3, ""), "{fetched:?}");
        assert!(fetched.stderr.contains(reported), "{}", fetched.stderr);
        assert!(
            !fetched.stderr.contains("very-secret") && !fetched.stderr.contains(ACCESS_KEY.1),
            "{}",
            fetched.stderr
        );
        assert_eq!(person.read("aws.yaml"), "as it was");
    };
    ec2.fail(
        403,
        &error("UnauthorizedOperation", "You are not authorized to perform this operation.\nEncoded: very-secret"),
    );
    refused(&person, "EC2 in eu-central-1: UnauthorizedOperation: You are not authorized to perform this operation.\n");
    ec2.fail(200, "<html>Sign in</html>");
    refused(&person, "EC2 in eu-central-1: the answer can't be read: ");
    ec2.fail(200, "<DescribeImagesResponse><imagesSet><item><imageId>nonsense</imageId></item></imagesSet></DescribeImagesResponse>");
    refused(
        &person,
        "EC2 in eu-central-1: Images[0].ImageId: this is no ami: ami-… with 8 to 17 hexadecimal digits is expected\n",
    );
    let person = person.with("AWS_SECRET_ACCESS_KEY", "very-secret");
    refused(
        &person,
        "EC2 in eu-central-1: AuthFailure: AWS was not able to validate the provided access credentials\n",
    );
    let nobody = Person::new(&[("AWS_ENDPOINT_URL_EC2", &ec2.url())]);
    nobody.write("aws.yaml", "as it was");
    refused(&nobody, "EC2 in eu-central-1: ");
}

#[test]
fn distinguishes_no_match_from_no_query() {
    let ec2 = Ec2::start(10).unwrap();
    let person = person(&ec2.url());
    assert_eq!(fetch(&person, &["--owner", "self"]).code, 1);
    let nobody = fetch(&person, &[]);
    assert_eq!(nobody.code, 2, "{nobody:?}");
    assert!(nobody.stderr.contains("name --owner or --lookups"), "{}", nobody.stderr);
    let wrong = person.images(&["fetch", "ec2", "--region", "evil.example.com/", "--owner", "self"]);
    assert_eq!((wrong.code, wrong.stderr.as_str()), (3, "EC2: \"evil.example.com/\" is no region\n"));
    assert_eq!(ec2.requests().len(), 1);
}

#[tokio::test]
async fn moto_gives_the_owners_images_of_both_spellings() {
    let images = json!([
        ami(1, "capa-ami-ubuntu-24.04-v1.35.1-1", &json!({})),
        ami(2, "capa-ami-ubuntu-24.04-1.35.1-2", &json!({"creation_date": "2026-11-18T09:00:00.000Z"})),
        ami(3, "capa-ami-ubuntu-24.04-v1.34.9-1", &json!({})),
        ami(4, "capa-ami-ubuntu-24.04-v1.35.1-9", &json!({"owner_id": "333333333333"})),
        ami(5, "something-else-v1.35.1-1", &json!({})),
        ami(6, "capa-ami-ubuntu-24.04-v1.35.2-1", &json!({"state": "pending"})),
    ]);
    let Some(moto) = Moto::start(&images).await.unwrap() else { return };
    let person = person(moto.url());
    let fetched = fetch(&person, &["--lookups", "lookups.yaml", "--image-version", "1.35"]);
    assert_eq!((fetched.code, fetched.stderr.as_str()), (0, "aws.yaml: 3 images written.\n"), "{fetched:?}");
    assert_eq!(
        person.resolved(&["--source", "aws.yaml", "--lookups", "lookups.yaml"]),
        [
            "ubuntu-24.04 1.35.1 eu-central-1: ami-00000002 chosen: the newest; ami-00000001 older",
            "ubuntu-24.04 1.35.2 eu-central-1: ami-00000006 it is pending",
        ]
    );
    assert_eq!(fetch(&person, &["--lookups", "lookups.yaml"]).stderr, "aws.yaml: 4 images written.\n");
    assert_eq!(fetch(&person, &["--owner", "222222222222,333333333333"]).stderr, "aws.yaml: 6 images written.\n");
}

/// Lookups for one image in two accounts, each with its own identity.
fn lookups_of_accounts(identities: [&str; 2]) -> String {
    let lookup = |(account, identity): (&str, &str)| {
        let document = LOOKUPS.replace("name: ubuntu", &format!("name: of-{account}"));
        format!("---{}  ownersInOrder: true\n  identityRef: {identity}\n", document.replace("222222222222", account))
    };
    [("111111111111", identities[0]), ("333333333333", identities[1])].map(lookup).concat()
}

#[tokio::test]
async fn two_accounts_are_read_with_two_roles() {
    let images = json!([ami(1, "base", &json!({}))]);
    let Some(moto) = Moto::start(&images).await.unwrap() else { return };
    for (account, build) in [("111111111111", 1), ("333333333333", 2)] {
        let name = format!("capa-ami-ubuntu-24.04-v1.35.1-{build}");
        moto.copy_into(account, "ami-00000001", &name).await.unwrap();
    }
    let role = |account: &str| format!("{{kind: Role, roleARN: 'arn:aws:iam::{account}:role/images'}}");
    let of_workload = "{kind: WorkloadIdentity, roleARN: 'arn:aws:iam::333333333333:role/images'}";
    for second in [role("333333333333").as_str(), of_workload] {
        let person = person(moto.url()).with("AWS_ENDPOINT_URL", moto.url());
        person.write("token", "a-token-of-the-pod");
        let token = person.path("token").display().to_string();
        let person = person.with("AWS_WEB_IDENTITY_TOKEN_FILE", &token);
        person.write("lookups.yaml", &lookups_of_accounts([&role("111111111111"), second]));
        let fetched = fetch(&person, &["--lookups", "lookups.yaml"]);
        assert_eq!((fetched.code, fetched.stderr.as_str()), (0, "aws.yaml: 2 images written.\n"), "{fetched:?}");
        let resolved = person.resolved(&["--source", "aws.yaml", "--lookups", "lookups.yaml"]);
        assert_eq!(resolved.len(), 1, "both accounts have the flavor: {resolved:?}");
        assert!(
            resolved[0].contains(" chosen: ") && resolved[0].ends_with("its owner comes later in the lookup"),
            "{resolved:?}"
        );
        let covered = person.read("aws.yaml");
        assert!(covered.contains("covers:") && covered.contains("333333333333"), "{covered}");
    }
    // With one role, only the images of its account are visible.
    let person = person(moto.url()).with("AWS_ENDPOINT_URL", moto.url());
    person.write("lookups.yaml", &lookups_of_accounts([&role("111111111111"), &role("111111111111")]));
    assert_eq!(fetch(&person, &["--lookups", "lookups.yaml"]).stderr, "aws.yaml: 1 image written.\n");
}

#[test]
fn access_keys_come_from_the_secret_of_the_lookup() {
    let ec2 = Ec2::start(10).unwrap();
    ec2.has("eu-central-1", &item("1", "capa-ami-ubuntu-24.04-v1.34.2-1", "2026-09-22", ""));
    let person = person(&ec2.url()).with("AWS_SECRET_ACCESS_KEY", "very-secret");
    let secret = |name: &str, values: &[(&str, &str)]| {
        std::fs::create_dir_all(person.path("identities").join(name)).unwrap();
        for (key, value) in values {
            std::fs::write(person.path("identities").join(name).join(key), value).unwrap();
        }
    };
    secret("own", &[("accessKeyID", ACCESS_KEY.0), ("secretAccessKey", &format!("{}\n", ACCESS_KEY.1))]);
    secret("half", &[("accessKeyID", ACCESS_KEY.0)]);
    let fetched = |identity: &str, more: &[&str]| {
        person.write("lookups.yaml", &format!("{LOOKUPS}  identityRef: {identity}\n"));
        fetch(&person, &[&["--lookups", "lookups.yaml"], more].concat())
    };
    let folder = ["--identities", "identities"];
    let own = fetched("{kind: Secret, name: own}", &folder);
    assert_eq!((own.code, own.stderr.as_str()), (0, "aws.yaml: 1 image written.\n"), "{own:?}");
    for (identity, more, code, error) in [
        ("{kind: Secret, name: own}", &[][..], 3, "EC2: Secret \"own\": no folder with Secrets is configured"),
        ("{kind: Secret, name: none}", &folder, 3, "EC2: Secret \"none\": it has no accessKeyID"),
        ("{kind: Secret, name: half}", &folder, 3, "EC2: Secret \"half\": it has no secretAccessKey"),
        ("{kind: Secret, name: ../own}", &folder, 3, "spec.identityRef.name: the name of a Secret is expected"),
        (
            "{kind: WorkloadIdentity, roleARN: 'arn:aws:iam::333333333333:role/images'}",
            &[],
            3,
            "EC2: AWS_WEB_IDENTITY_TOKEN_FILE does not name the token of the workload",
        ),
    ] {
        let refused = fetched(identity, more);
        assert_eq!(refused.code, code, "{identity}: {refused:?}");
        assert!(refused.stderr.contains(error), "{identity}: {}", refused.stderr);
        assert!(
            !refused.stderr.contains(ACCESS_KEY.1) && !refused.stderr.contains("very-secret"),
            "{}",
            refused.stderr
        );
    }
}

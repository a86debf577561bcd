//! The formats of the named sources: the forms of their files, as their publishers describe them, with few entries.

use std::fmt::Write;

use super::User;
use super::server::{Server, whole};

/// Names, files, an address, and a value that its lookup prints.
const FILES: &[(&str, &str, &str, &str)] = &[
    (
        "aws",
        r#"{"syncToken": "1", "createDate": "2026-11-28-00-00-00",
            "prefixes": [{"ip_prefix": "3.5.140.0/22", "region": "ap-northeast-2", "service": "AMAZON",
                          "network_border_group": "ap-northeast-2"}],
            "ipv6_prefixes": [{"ipv6_prefix": "2600:1ff2:4000::/40", "region": "us-west-2", "service": "AMAZON",
                               "network_border_group": "us-west-2"}]}"#,
        "3.5.141.1",
        "ap-northeast-2",
    ),
    (
        "google",
        r#"{"syncToken": "1", "creationTime": "2026-11-28T00:00:00.0",
            "prefixes": [{"ipv4Prefix": "8.8.4.0/24"}, {"ipv6Prefix": "2001:4860::/32"}]}"#,
        "2001:4860:4860::8888",
        "2001:4860::/32",
    ),
    (
        "google-cloud",
        r#"{"syncToken": "1", "creationTime": "2026-11-28T00:00:00.0",
            "prefixes": [{"ipv4Prefix": "34.1.208.0/20", "service": "Google Cloud", "scope": "africa-south1"},
                         {"ipv6Prefix": "2600:1900:8000::/44", "service": "Google Cloud", "scope": "africa-south1"}]}"#,
        "34.1.209.1",
        "africa-south1",
    ),
    (
        "oracle-cloud",
        r#"{"last_updated_timestamp": "2026-11-28T00:00:00.000000",
            "regions": [{"region": "us-phoenix-1", "cidrs": [{"cidr": "129.146.0.0/21", "tags": ["OCI"]}]},
                        {"region": "eu-zurich-1", "cidrs": [{"cidr": "140.91.36.0/23", "tags": ["OSN"]}]}]}"#,
        "140.91.37.1",
        "eu-zurich-1",
    ),
    ("cloudflare", "173.245.48.0/20\n103.21.244.0/22", "103.21.245.1", "103.21.244.0/22"),
    (
        "fastly",
        r#"{"addresses": ["23.235.32.0/20"], "ipv6_addresses": ["2a04:4e40::/32"]}"#,
        "2a04:4e40::1",
        "2a04:4e40::/32",
    ),
    (
        "delegated",
        "2|nro|20261128|3|19700101|20261128|+0000\nnro|*|ipv4|*|2|summary\n\
         apnic|AU|ipv4|1.0.0.0|256|20110811|assigned|A91872ED|e-stats\n\
         ripencc|CH|ipv6|2001:620::|32|19990930|allocated|x|e-stats\narin|US|asn|1|1|20010920|assigned|x\n",
        "1.0.0.77",
        "AU",
    ),
    (
        "spamhaus-drop",
        "{\"cidr\":\"1.10.16.0/20\",\"sblid\":\"SBL256894\",\"rir\":\"apnic\"}\n\
         {\"type\":\"metadata\",\"timestamp\":1795852800,\"size\":1,\"records\":1,\"copyright\":\"(c) x\",\"terms\":\"x\"}\n",
        "1.10.17.1",
        "SBL256894",
    ),
    (
        "bogons",
        "# last updated 1795852800 (Sat Nov 28 08:00:00 2026 GMT)\n0.0.0.0/8\n10.0.0.0/8\n",
        "10.1.2.3",
        "10.0.0.0/8",
    ),
    (
        "firehol-level1",
        "#\n# firehol_level1\n#\n0.0.0.0/8\n5.188.10.0/23\n",
        "5.188.11.1",
        "5.188.10.0/23",
    ),
    ("tor-exits", "185.220.101.1\n185.220.101.2\n", "185.220.101.2", "185.220.101.2/32"),
    (
        "iptoasn",
        "1.0.0.0\t1.0.0.255\t13335\tUS\tCLOUDFLARENET\n1.0.1.0\t1.0.3.255\t0\tNone\tNot routed\n\
         2001:620::\t2001:620:ffff:ffff:ffff:ffff:ffff:ffff\t559\tCH\tSWITCH\n",
        "1.0.0.1",
        "CLOUDFLARENET",
    ),
];

#[test]
fn each_named_source_is_read_as_it_is_published() {
    let server = Server::start(|_, request| {
        let found = FILES.iter().find(|(name, ..)| request.path == format!("/{name}"));
        found.map_or_else(|| whole(404, &[], ""), |(_, text, ..)| whole(200, &[], text))
    });
    let mut config = String::new();
    for (name, ..) in FILES {
        writeln!(config, "[sources.{name}]\nurl = '{}'", server.url(&format!("/{name}"))).unwrap();
        if *name == "iptoasn" {
            config += "names = ['start', 'end', 'asn', 'country', 'owner']\n";
        }
    }
    let user = User::new(&config);
    for (name, _, address, value) in FILES {
        let fetched = user.done(&["fetch", name]);
        assert!(fetched.err.contains(&format!("{name}: fetched ")), "{}", fetched.err);
        let table = format!("fetch:{name}");
        let found = user.done(&["lookup", "--no-header", "--table", &table, address]);
        assert!(found.out.contains(value), "{name}: {}{}", found.out, found.err);
        assert!(!found.err.contains("damaged"), "{name}: {}", found.err);
    }
    let named = user.done(&["lookup", "--table", "fetch:iptoasn", "--json", "2001:620::1"]);
    assert!(
        named.out.contains("\"asn\":559,\"country\":\"CH\",\"owner\":\"SWITCH\""),
        "{}",
        named.out
    );
}

#[test]
fn vrps_of_both_validators() {
    let server = Server::start(|_, request| match &*request.path {
        "/vrps.json" => whole(
            200,
            &[],
            r#"{"metadata": {"buildmachine": "x", "buildtime": "2026-11-28T00:00:00Z", "vrps": 1},
                "roas": [{"asn": 64503, "prefix": "10.1.2.0/24", "maxLength": 24, "ta": "ripe", "expires": 1795900000}]}"#,
        ),
        "/rpki.json" => whole(
            200,
            &[],
            r#"{"metadata": {"generated": 1795852800, "counts": 1},
                "roas": [{"prefix": "10.1.2.0/24", "maxLength": 24, "asn": "AS64503", "ta": "RIPE"}]}"#,
        ),
        _ => whole(200, &[], "prefix,origin_as\n10.1.2.0/24,64503\n10.1.3.0/24,64503\n"),
    });
    let config = format!(
        "[sources.vrps]\nurl = '{0}/vrps.json'\nuse = 'vrps'\n['sources'.'vrps/cloudflare']\nurl = '{0}/rpki.json'\n\
         use = 'vrps'\n",
        server.address
    );
    let user = User::new(&config);
    for name in ["fetch:vrps", "fetch:vrps/cloudflare", &server.url("/rpki.json")] {
        let found =
            user.done(&["lookup", "--rpki", name, "--table", &server.url("/t.csv"), "10.1.2.3"]);
        assert!(found.out.contains("\tvalid\t"), "{name}: {}{}", found.out, found.err);
    }
}

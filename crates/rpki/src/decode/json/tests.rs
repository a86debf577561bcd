use crate::decode;

/// A document with one VRP that has these members, on the third line.
fn error(members: &str) -> String {
    decode(format!("{{\"roas\": [\n{GOOD},\n{{{members}}}\n]}}").as_bytes())
        .unwrap_err()
        .to_string()
}

const GOOD: &str = r#"{"asn":1,"prefix":"192.0.2.0/24","maxLength":24}"#;

#[test]
fn vrps_that_are_none() {
    let cases = [
        (r#""prefix":"192.0.2.0/24","maxLength":24"#, "it has no asn"),
        (r#""asn":1,"maxLength":24"#, "it has no prefix"),
        (r#""asn":1,"prefix":"192.0.2.0/24""#, "it has no maxLength"),
        (
            r#""asn":4294967296,"prefix":"192.0.2.0/24","maxLength":24"#,
            "4294967296 is no AS number: those end at 4294967295",
        ),
        (r#""asn":-1,"prefix":"192.0.2.0/24","maxLength":24"#, "its asn is no AS number"),
        (r#""asn":1.5,"prefix":"192.0.2.0/24","maxLength":24"#, "its asn is no AS number"),
        (r#""asn":null,"prefix":"192.0.2.0/24","maxLength":24"#, "its asn is no AS number"),
        (r#""asn":[1],"prefix":"192.0.2.0/24","maxLength":24"#, "its asn is no AS number"),
        (r#""asn":{"a":{}},"prefix":"192.0.2.0/24","maxLength":24"#, "its asn is no AS number"),
        (r#""asn":"ASX","prefix":"192.0.2.0/24","maxLength":24"#, "\"ASX\" is no AS number"),
        (
            r#""asn":"AS4294967296","prefix":"192.0.2.0/24","maxLength":24"#,
            "\"AS4294967296\" is no AS number",
        ),
        (r#""asn":1,"prefix":7,"maxLength":24"#, "its prefix is no text"),
        (r#""asn":1,"prefix":"192.0.2/24","maxLength":24"#, "\"192.0.2/24\" is no prefix"),
        (r#""asn":1,"prefix":"192.0.2.0","maxLength":24"#, "\"192.0.2.0\" is no prefix"),
        (
            r#""asn":1,"prefix":"192.0.2.1/24","maxLength":24"#,
            "\"192.0.2.1/24\" has bits beyond its length",
        ),
        (
            r#""asn":1,"prefix":"192.0.2.0/33","maxLength":33"#,
            "the length of \"192.0.2.0/33\" is above 32",
        ),
        (
            r#""asn":1,"prefix":"192.0.2.0/24","maxLength":23"#,
            "the maximum length 23 is below the length of 192.0.2.0/24",
        ),
        (
            r#""asn":1,"prefix":"192.0.2.0/24","maxLength":33"#,
            "the maximum length 33 of 192.0.2.0/24 is above 32",
        ),
        (
            r#""asn":1,"prefix":"2001:db8::/32","maxLength":129"#,
            "the maximum length 129 of 2001:db8::/32 is above 128",
        ),
        (
            r#""asn":1,"prefix":"2001:db8::/32","maxLength":18446744073709551615"#,
            "the maximum length 18446744073709551615 of 2001:db8::/32 is above 128",
        ),
        (r#""asn":1,"prefix":"192.0.2.0/24","maxLength":"24""#, "its maxLength is no number"),
        (
            r#""asn":1,"prefix":"192.0.2.0/24","maxLength":24,"expires":"soon""#,
            "expires is no time",
        ),
    ];
    for (members, what) in cases {
        let expected = format!("line 3, byte {}: VRP 2: {what}", members.len() + 2);
        assert_eq!(error(members), expected, "{members}");
    }
}

#[test]
fn documents_that_are_none() {
    let cases = [
        ("{}", "line 1, byte 2: the document has no list `roas`"),
        ("{\"vrps\": []}", "line 1, byte 12: the document has no list `roas`"),
        ("{\"roas\": 7}", "line 1, byte 10: invalid type: integer `7`, expected a list of VRPs"),
        (
            "{\"roas\": [\n7]}",
            "line 2, byte 1: invalid type: integer `7`, expected an object with asn, prefix and maxLength",
        ),
        ("[]", "line 1: invalid type: sequence, expected an object with a list `roas`"),
        ("{\"roas\": [\n", "line 2: not JSON: EOF while parsing a list"),
        ("{\"roas\": []} x", "line 1, byte 14: not JSON: trailing characters"),
        ("{\"roas\": [],}", "line 1, byte 13: not JSON: trailing comma"),
    ];
    for (text, what) in cases {
        let error = decode(text.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), what, "{text}");
    }
}

#[test]
fn other_members_do_no_harm() {
    let with = |before: &str, after: &str, inside: &str| {
        let vrp = GOOD.replace('}', &format!("{inside}}}"));
        let text = format!("\u{feff}{{{before}\"roas\":[{vrp}]{after}}}");
        decode(text.as_bytes()).unwrap().vrps.len()
    };
    assert_eq!(with("", "", ""), 1);
    assert_eq!(with("\"slurm\":{\"slurmVersion\":1},", ",\"aspas\":[{\"customer\":1}]", ""), 1);
    assert_eq!(
        with("\"metadata\":{\"generated\":\"x\",\"buildtime\":7,\"talfiles\":[1]},", "", ""),
        1
    );
    assert_eq!(with("", "", ",\"source\":[{\"type\":\"roa\",\"prefix\":7}],\"ta\":null"), 1);
    // Nested more deeply than a recursive parser's stack allows.
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    assert_eq!(with(&format!("\"x\":{deep},"), "", &format!(",\"x\":{deep}")), 1);
    // The list is given twice.
    assert_eq!(with("", &format!(",\"roas\":[{GOOD}]"), ""), 2);
}

use crate::decode;

fn vrps(text: &str) -> Vec<String> {
    let decoded = decode(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
    decoded.vrps.iter().map(ToString::to_string).collect()
}

fn error(text: &str) -> String {
    decode(text.as_bytes()).unwrap_err().to_string()
}

const HEADER: &str = "ASN,IP Prefix,Max Length,Trust Anchor\n";

#[test]
fn headers() {
    let expected = ["192.0.2.0/24-26 AS64500"];
    for text in [
        "AS64500,192.0.2.0/24,26,ripe",
        "AS64500,192.0.2.0/24,26",
        "as64500 , 192.0.2.0/24 , 26 ,\r\n",
        "\u{feff}ASN,IP Prefix,Max Length,Trust Anchor\r\nAS64500,192.0.2.0/24,26,ripe\r\n",
        "asn,ip prefix,max length\n64500,192.0.2.0/24,26\n",
        "Max Length,IP Prefix,x,ASN\n26,192.0.2.0/24,y,64500\n",
        "\"ASN\",\"IP Prefix\",\"Max Length\"\n\"64500\", \"192.0.2.0/24\" ,\"26\"\n",
    ] {
        assert_eq!(vrps(text), expected, "{text}");
    }
    // Several files concatenated.
    let line = "AS64500,192.0.2.0/24,26,ripe\n";
    assert_eq!(vrps(&[HEADER, line, "\n", HEADER, line].concat()).len(), 2);
    // RIPE's archive leaves the maximum length empty if it is equal to the length.
    let archive = "URI,ASN,IP Prefix,Max Length,Not Before,Not After\n";
    let line = "rsync://x/a.roa,AS64500,192.0.2.0/24,,2026-01-01 00:00:00,2027-01-01 00:00:00\n";
    assert_eq!(vrps(&[archive, line].concat()), ["192.0.2.0/24-24 AS64500"]);
    assert_eq!(error("ASN,Max Length\n"), "line 1: the header has no column IP Prefix");
    assert_eq!(error("ASN,IP Prefix\n"), "line 1: the header has no column Max Length");
}

#[test]
fn lines_that_are_none() {
    let cases = [
        ("AS64500,192.0.2.0/24", "no field 3 (Max Length) among 2: \"AS64500,192.0.2.0/24\""),
        ("AS64500", "no field 2 (IP Prefix) among 1: \"AS64500\""),
        ("ASX,192.0.2.0/24,24", "\"ASX\" is no AS number"),
        (",192.0.2.0/24,24", "\"\" is no AS number"),
        ("AS4294967296,192.0.2.0/24,24", "\"AS4294967296\" is no AS number"),
        ("AS1,192.0.2.0,24", "\"192.0.2.0\" is no prefix"),
        ("AS1,192.0.2.1/24,24", "\"192.0.2.1/24\" has bits beyond its length"),
        ("AS1,2001:db8::/129,129", "the length of \"2001:db8::/129\" is above 128"),
        ("AS1,192.0.2.0/24,23", "the maximum length 23 is below the length of 192.0.2.0/24"),
        ("AS1,192.0.2.0/24,33", "the maximum length 33 of 192.0.2.0/24 is above 32"),
        ("AS1,192.0.2.0/24,256", "the maximum length 256 of 192.0.2.0/24 is above 32"),
        ("AS1,192.0.2.0/24,+24", "\"+24\" is no length"),
        ("AS1,192.0.2.0/24,99999999999999999999", "\"99999999999999999999\" is no length"),
        ("\"AS1,192.0.2.0/24,24", "a quote is not closed"),
        ("\"AS1\"x,192.0.2.0/24,24", "text behind a quote: \"x,192.0.2.0/24,24\""),
    ];
    for (line, what) in cases {
        let text = format!("{HEADER}AS1,192.0.2.0/24,24,ripe\n{line}\n");
        assert_eq!(error(&text), format!("line 3: {what}"), "{line}");
    }
    let expires = "ASN,IP Prefix,Max Length,Trust Anchor,Expires\nAS1,192.0.2.0/24,24,ripe,soon\n";
    assert_eq!(error(expires), "line 2: \"soon\" is no time of expiry");
}

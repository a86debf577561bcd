use super::*;
use crate::Shape;

#[test]
fn names() {
    let spec: GenSpec = "gen:v4:2024:900000:1".parse().unwrap();
    assert_eq!(spec, GenSpec { family: Family::V4, year: 2024, prefixes: 900_000, seed: 1 });
    assert_eq!(spec.to_string().parse(), Ok(spec));
    assert_eq!("gen:v4:2024:900000".parse(), Ok(spec));
    for bad in [
        "",
        "gen:",
        "gen:v5:2024:1:1",
        "gen:v4:2024",
        "gen:v4:2024:1:1:1",
        "gen:v4:x:1:1",
        "v4:2024:1:1",
        "gen:v4:2024:10000001:1",
        "gen:v6:2024:4000001:1",
        "gen:v4:2024:-1:1",
    ] {
        assert!(bad.parse::<GenSpec>().is_err(), "{bad}");
    }
}

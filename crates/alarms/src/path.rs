//! AS paths as text.

/// The ASes of a path, those in sets and confederations included.
pub(crate) fn ases(path: &str) -> impl Iterator<Item = u32> + '_ {
    path.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok())
}

/// Longest text of a path in an alarm, in bytes.
const LONGEST: usize = 512;

/// The text, cut behind an AS if it is long.
pub(crate) fn shortened(path: &str) -> String {
    match path.get(..LONGEST) {
        Some(begin) if path.len() > LONGEST => {
            let whole = begin.rfind(' ').unwrap_or(0);
            format!("{} ...", &begin[..whole])
        }
        // A cut within a character cannot be: paths are ASCII. If one is not, it is left out.
        None if path.len() > LONGEST => "...".to_owned(),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ases_of_a_path_are_found() {
        let found: Vec<u32> = ases("64500 {64501,64502} (64503 64504) 4294967295").collect();
        assert_eq!(found, [64500, 64501, 64502, 64503, 64504, u32::MAX]);
        assert_eq!(ases("").count() + ases("{}").count() + ases("99999999999").count(), 0);
    }

    #[test]
    fn long_paths_are_cut_between_ases() {
        assert_eq!(shortened("64500 64501"), "64500 64501");
        let cut = shortened(&"64500 ".repeat(1000));
        assert!(cut.len() < 520 && cut.ends_with("64500 ..."), "{cut}");
        assert_eq!(shortened(&"é".repeat(LONGEST)), " ...");
    }
}

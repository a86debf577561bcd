//! Two records of the same definition: which rates differ by more than the rounds of each.

use std::fmt::Write;

use crate::record::{Rate, Record, Row};

/// Differences below this are not reported, whatever the rounds: two runs of one program differ by as much, because
/// their tables lie elsewhere in memory.
const LEAST: f64 = 0.03;

/// The result of a comparison.
pub struct Comparison {
    /// What differs, for people.
    pub text: String,
    /// How many rates are lower beyond the rounds' spread, or gone.
    pub worse: usize,
}

/// Compares rates on equal processors, and otherwise ratios to the baseline.
pub fn compare(old: &Record, new: &Record) -> Result<Comparison, String> {
    let of = |record: &Record| {
        let Record { table, family, keys, threads, .. } = record;
        format!("{table}, IP{family}, {keys} keys, {threads} threads")
    };
    if of(old) != of(new) {
        return Err(format!("different work: {}; {}", of(old), of(new)));
    }
    let is_same = old.stamp.processor.folder() == new.stamp.processor.folder();
    if !is_same && old.baseline != new.baseline {
        return Err(
            "different processors and different baselines have nothing in common".to_owned()
        );
    }
    let mut out = format!("{}: {} -> {}\n", of(old), old.stamp.date, new.stamp.date);
    if !is_same {
        let (old, new) = (&old.stamp.processor, &new.stamp.processor);
        let _ = writeln!(out, "{old}; then {new}: ratios to the baseline are compared, not rates");
    }
    let (mut worse, mut same) = (0, 0);
    for row in &new.rows {
        let name = format!("{} {} batch {}", row.contestant, row.traffic, row.batch);
        let is_it = |other: &&Row| {
            (&other.contestant, &other.traffic, other.batch)
                == (&row.contestant, &row.traffic, row.batch)
        };
        let Some(before) = old.rows.iter().find(is_it) else {
            let _ = writeln!(out, "{name}: new");
            continue;
        };
        match (&before.rate, &row.rate) {
            (Some(before), Some(after)) => match change(before, after, is_same) {
                Some(by) => {
                    worse += usize::from(by < 1.0);
                    let (was, is) = (before.mlps, after.mlps);
                    let _ = writeln!(out, "{name}: {was:.1} -> {is:.1} Mlps, times {by:.3}");
                }
                None => same += 1,
            },
            (Some(_), None) => {
                worse += 1;
                let why = row.wrong.as_deref().unwrap_or("not timed");
                let _ = writeln!(out, "{name}: had a rate, now: {why}");
            }
            (None, Some(after)) => {
                let _ = writeln!(out, "{name}: has a rate now, {:.1} Mlps", after.mlps);
            }
            (None, None) => {}
        }
    }
    for row in &old.rows {
        let is_it = |other: &Row| {
            (&other.contestant, &other.traffic, other.batch)
                == (&row.contestant, &row.traffic, row.batch)
        };
        if !new.rows.iter().any(is_it) {
            let _ = writeln!(out, "{} {} batch {}: gone", row.contestant, row.traffic, row.batch);
        }
    }
    let _ = writeln!(out, "{same} rates are the same within their rounds, {worse} are worse");
    Ok(Comparison { text: out, worse })
}

/// The factor from one rate to the other, if the rounds of the two do not overlap and it is not small.
fn change(before: &Rate, after: &Rate, is_same_processor: bool) -> Option<f64> {
    let (scale, by) = match is_same_processor {
        true => (1.0, after.mlps / before.mlps),
        false => {
            let by = after.ratio? / before.ratio?;
            // As if the other processor were as fast as this one.
            (by * before.mlps / after.mlps, by)
        }
    };
    let (min, max) = (after.min * scale, after.max * scale);
    let is_apart = min > before.max || max < before.min;
    (is_apart && (by - 1.0).abs() > LEAST).then_some(by)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    #[test]
    fn only_what_lies_beyond_the_rounds_differs() {
        let old = record(&[("a", &[100.0, 101.0, 102.0]), ("b", &[10.0, 12.0, 20.0])]);
        let new = record(&[("a", &[80.0, 81.0, 82.0]), ("b", &[11.0, 15.0, 19.0])]);
        let found = compare(&old, &new).unwrap();
        assert!(found.text.contains("a RND batch 256: 101.0 -> 81.0 Mlps, times 0.802"));
        assert!(!found.text.contains("b RND") && found.worse == 1, "{}", found.text);
        let faster = compare(&new, &old).unwrap();
        assert!(faster.text.contains("times 1.247") && faster.worse == 0, "{}", faster.text);
        let nearly = record(&[("a", &[102.5, 102.5, 102.5]), ("b", &[10.0, 12.0, 20.0])]);
        assert!(compare(&old, &nearly).unwrap().text.contains("2 rates are the same"));
    }

    #[test]
    fn other_processors_are_compared_by_ratios() {
        let old = record(&[("a", &[100.0, 100.0]), ("b", &[50.0, 50.0])]);
        let mut new = record(&[("a", &[10.0, 10.0]), ("b", &[5.0, 5.0])]);
        new.stamp.processor.model = "other".to_owned();
        let found = compare(&old, &new).unwrap();
        assert!(found.worse == 0 && found.text.contains("2 rates are the same"), "{}", found.text);
        let mut new = record(&[("a", &[10.0, 10.0]), ("b", &[2.0, 2.0])]);
        new.stamp.processor.model = "other".to_owned();
        let found = compare(&old, &new).unwrap();
        assert!(found.worse == 1 && found.text.contains("times 0.400"), "{}", found.text);
    }

    #[test]
    fn a_contestant_that_became_wrong_is_worse() {
        let old = record(&[("a", &[100.0]), ("b", &[50.0])]);
        let mut new = old.clone();
        new.rows[1].rate = None;
        new.rows[1].wrong = Some("wrong 1 of 9".to_owned());
        let found = compare(&old, &new).unwrap();
        assert!(found.worse == 1 && found.text.contains("now: wrong 1 of 9"), "{}", found.text);
        new.rows.pop();
        assert!(compare(&old, &new).unwrap().text.contains("b RND batch 256: gone"));
        new.keys = 11;
        assert!(compare(&old, &new).is_err());
    }
}

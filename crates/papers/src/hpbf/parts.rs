//! Our search with one part after the other: what each gains, by subtables and packets that have a megaflow.

use fibula_classify::Parts;
use fibula_papers::forms::{Cache, Form, Searcher};
use fibula_papers::out::{Csv, Failure, note};
use fibula_simd::Isa;
use fibula_testkit::measure::median;

use crate::sets::{extract, run};
use crate::timing::take_turns;
use crate::{Args, BURST, head, number};

/// The default measurements.
const TABLES: [u16; 5] = [1, 4, 8, 15, 30];
const HITS: [u8; 4] = [100, 90, 50, 0];
/// Packets in a batch of ours.
const BATCH: usize = 256;

const fn parts(filters: bool, packing: bool, lanes: bool) -> Parts {
    Parts { filters, packing, lanes }
}

/// The searches: each but the last two has a part more than the one before.
const STEPS: [(&str, Form, usize, Parts); 10] = [
    ("crc", Form::Crc, BURST, parts(false, false, false)),
    ("transposed", Form::Transposed, BURST, parts(false, false, false)),
    ("columns", Form::Columns, BURST, parts(false, false, false)),
    ("hash", Form::Packed, BURST, parts(false, false, false)),
    ("batch", Form::Packed, BATCH, parts(false, false, false)),
    ("filters", Form::Packed, BATCH, parts(true, false, false)),
    ("packing", Form::Packed, BATCH, parts(true, true, false)),
    (ALL, Form::Packed, BATCH, parts(true, true, true)),
    ("all but packing", Form::Packed, BATCH, parts(true, false, true)),
    // The filters are the first test of subtables in the lanes: without them there are no lanes.
    ("all but filters and lanes", Form::Packed, BATCH, parts(false, true, false)),
];
/// The step with all parts: the product's search.
const ALL: &str = "lanes";

/// Whether something was wrong.
pub fn measure(args: &Args, csv: &mut Csv) -> Result<bool, Failure> {
    let tables = if args.tables.is_empty() { &TABLES[..] } else { &args.tables };
    let hits = if args.hits.is_empty() { &HITS[..] } else { &args.hits };
    let mut is_wrong = false;
    for tables in tables {
        for hits in hits {
            is_wrong |= by_hits(args, csv, 2 * usize::from(*tables) - 1, *hits)?;
        }
    }
    Ok(is_wrong)
}

/// A step that gives the right answers.
struct Case {
    step: &'static str,
    cache: Cache,
    together: usize,
    searcher: Searcher,
}

fn by_hits(args: &Args, csv: &mut Csv, masks: usize, hits: u8) -> Result<bool, Failure> {
    let set = args.set(masks, 2000, 1 << 14).with_misses(100 - u64::from(hits), args.seed);
    let mut is_wrong = false;
    let mut cases = Vec::new();
    for (step, form, together, parts) in STEPS {
        let (cache, mut searcher) = (set.cache(form, Isa::detect()), Searcher::with_parts(parts));
        if let Some(packet) = set.check(&cache, &mut searcher, together) {
            note(format_args!("{step} is wrong for packet {packet}, and left out"));
            is_wrong = true;
            continue;
        }
        cases.push(Case { step, cache, together, searcher });
    }
    let n = cases.len();
    let mut numbers = vec![0; set.frames.len()];
    let times = take_turns(args.runs, 2 * n, |i| {
        let Case { cache, together, searcher, .. } = &mut cases[i % n];
        match i < n {
            true => run(cache, searcher, &set.frames, *together, &mut numbers),
            false => extract(cache.form(), &set.frames, *together),
        }
    });
    let mut ns: Vec<Vec<f64>> = times;
    for times in &mut ns {
        times.iter_mut().for_each(|time| *time *= 1e9 / set.frames.len() as f64);
        times.sort_by(f64::total_cmp);
    }
    let of = |i: usize| median(&mut ns[i].clone());
    let all = cases.iter().position(|case| case.step == ALL).map(of);
    for (i, case) in cases.iter().enumerate() {
        let before = match STEPS.iter().position(|(step, ..)| *step == case.step) {
            Some(0) => None,
            // The step before, or all, if it is among those that are right.
            Some(at) if at < STEPS.len() - 2 => {
                cases.iter().position(|case| case.step == STEPS[at - 1].0).map(of)
            }
            _ => all,
        };
        let counts = case.searcher.counts();
        let mut cells = vec![("step", case.step.to_owned())];
        cells.extend(head(case.cache.form(), &case.cache));
        cells.extend([
            ("batch", case.together.to_string()),
            ("hits", set.hits().to_string()),
            ("subtables", case.cache.subtables().to_string()),
            ("megaflows", case.cache.len().to_string()),
            ("traversed", number(counts.subtables as f64 / counts.packets as f64)),
            ("lookup_ns", number(of(i))),
            ("lookup_ns_min", number(ns[i].first().copied().unwrap_or(0.0))),
            ("lookup_ns_max", number(ns[i].last().copied().unwrap_or(0.0))),
            ("extract_ns", number(of(n + i))),
            ("gain", before.map_or(String::new(), |before| number(before / of(i)))),
            ("hits_percent", hits.to_string()),
        ]);
        csv.row(&cells)?;
    }
    Ok(is_wrong)
}

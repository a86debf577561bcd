//! The rows of the report.

use std::io::Write;

use fibula_core::grouped;
use fibula_simd::Isa;
use fibula_testkit::measure::{confidence, mean, median, rounded};
use serde::Serialize;

use super::Args;
use super::variants::Variant;
use crate::failure::Failure;
use crate::output::{self, Grid};

/// A measurement. The names and the order of the fields are relied on by scripts.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) variant: &'static str,
    pub(super) isa: &'static str,
    pub(super) ways: usize,
    /// Into which cache: `off`, `l1`, `l2`.
    pub(super) prefetch: &'static str,
    pub(super) bytes: usize,
    pub(super) hash: &'static str,
    pub(super) hashes: u32,
    pub(super) bits_per_key: f64,
    pub(super) key_bits: usize,
    pub(super) hits_percent: u32,
    pub(super) expected_rate: f64,
    pub(super) passed: usize,
    pub(super) mops: f64,
    pub(super) mops_min: f64,
    pub(super) mops_max: f64,
    pub(super) mops_mean: f64,
    /// Half of the mean's 95 % confidence interval; none of one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mops_ci95: Option<f64>,
    pub(super) ratio_permute_1: f64,
    pub(super) ratio_permute_2: f64,
}

pub(super) fn rows<K>(
    args: &Args,
    isa: Isa,
    rate: f64,
    variants: Vec<Variant<'_, K>>,
    key_bits: usize,
) -> Vec<Row> {
    let mut rows: Vec<Row> = variants
        .into_iter()
        .map(|mut variant| Row {
            variant: variant.name,
            isa: match variant.name {
                "scalar" => Isa::Scalar.name(),
                "permute" => Isa::Avx2.name(),
                _ => isa.name(),
            },
            ways: variant.ways,
            prefetch: variant.prefetch.name(),
            bytes: variant.bytes,
            hash: args.hash.name(),
            hashes: args.hashes,
            bits_per_key: args.bits,
            key_bits,
            hits_percent: args.hits,
            expected_rate: (rate * 1e6).round() / 1e6,
            passed: variant.passed,
            mops: rounded(median(&mut variant.mops)),
            mops_min: rounded(variant.mops.first().copied().unwrap_or_default()),
            mops_max: rounded(variant.mops.last().copied().unwrap_or_default()),
            mops_mean: rounded(mean(&variant.mops)),
            mops_ci95: confidence(&variant.mops).map(rounded),
            ratio_permute_1: 0.0,
            ratio_permute_2: 0.0,
        })
        .collect();
    let baseline = |ways| {
        let is = |row: &&Row| row.variant == "permute" && row.ways == ways && row.prefetch == "off";
        rows.iter().find(is).map_or(f64::INFINITY, |row| row.mops)
    };
    let baselines = [baseline(1), baseline(2)];
    for row in &mut rows {
        row.ratio_permute_1 = rounded(row.mops / baselines[0]);
        row.ratio_permute_2 = rounded(row.mops / baselines[1]);
    }
    rows
}

pub(super) fn print(rows: &[Row], levels: &[u64; 3]) -> Result<(), Failure> {
    let Some(first) = rows.first() else { return Ok(()) };
    let mut out = output::stdout();
    let within = levels.iter().position(|level| first.bytes as u64 <= *level);
    writeln!(
        out,
        "\n{} ({}), {}, {} positions, {} bits a key, {}-bit keys, {} % members, {} passed",
        output::size(first.bytes as u64),
        within.map_or("beyond L3".to_owned(), |level| format!("within L{}", level + 1)),
        first.hash,
        first.hashes,
        first.bits_per_key,
        first.key_bits,
        first.hits_percent,
        grouped(first.passed as u64),
    )?;
    let mut grid = Grid::new(&[
        "variant",
        "isa",
        ">ways",
        "prefetch",
        ">Mops",
        ">min",
        ">max",
        ">mean",
        ">+-",
        ">memory",
        ">/permute 1",
        ">/permute 2",
    ]);
    for row in rows {
        grid.row(vec![
            row.variant.to_owned(),
            row.isa.to_owned(),
            row.ways.to_string(),
            row.prefetch.to_owned(),
            format!("{:.0}", row.mops),
            format!("{:.0}", row.mops_min),
            format!("{:.0}", row.mops_max),
            format!("{:.0}", row.mops_mean),
            row.mops_ci95.map_or("-".to_owned(), |half| format!("{half:.1}")),
            output::size(row.bytes as u64),
            format!("{:.2}", row.ratio_permute_1),
            format!("{:.2}", row.ratio_permute_2),
        ]);
    }
    grid.write_aligned(&mut out)?;
    out.flush()?;
    Ok(())
}

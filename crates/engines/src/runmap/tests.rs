use fibula_simd::Isa;
use fibula_testkit::{conform, conforms};

use super::{Config, Runmap, Width};

const WIDTHS: [Width; 3] = [Width::Bits8, Width::Bits16, Width::Bits32];

/// Every width for all tables, fitting or not, in each form.
fn forms() -> conform::Builders<u32> {
    let all = WIDTHS
        .into_iter()
        .flat_map(|width| Isa::available().into_iter().map(move |isa| (width, isa)));
    all.map(|(width, isa)| {
        let config = Config { width: Some(width), isa };
        (format!("{width:?} {isa}"), conform::builder::<u32, Runmap>(config))
    })
    .collect()
}

conforms!(widths, u32, forms());

#[test]
fn patches() {
    for width in WIDTHS {
        let config = Config { width: Some(width), ..Config::default() };
        conform::patches::<u32, Runmap>(&format!("{width:?}"), &config);
    }
}

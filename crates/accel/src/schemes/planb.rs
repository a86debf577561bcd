use super::{Code, Plan, Tables, partition_point};
use crate::image::{Form, Image, Walk};
use crate::launch::{Source, source};

static SOURCE: Source = source!("planb");

/// By the width of codes.
pub(super) static FORMS: [Form; 2] = [
    Form { kernel: "planb16", source: &SOURCE, walk: Walk::V6(code::<u16>) },
    Form { kernel: "planb32", source: &SOURCE, walk: Walk::V6(code::<u32>) },
];

/// The same for the kernels whose lanes compare the keys of a node together.
pub(super) static BY_LANES: [Form; 2] = [
    Form { kernel: "planb16_lanes", source: &SOURCE, walk: Walk::V6(code::<u16>) },
    Form { kernel: "planb32_lanes", source: &SOURCE, walk: Walk::V6(code::<u32>) },
];

/// Keys of a node.
const KEYS: usize = 8;

/// Parts: the nodes' keys, the intervals' codes, the first node of each level, and the intervals of networks that
/// routes longer than /64 divide: where each block begins, the last low part of each interval, and its code. Numbers:
/// the levels, and the blocks.
pub(super) fn plan(tables: Tables<'_>) -> Option<Plan<'_>> {
    let keys = tables.get("keys")?;
    let (width, values) = tables.one_of(&["values16", "values32"])?;
    let intervals = values.len() / [2, 4][width];
    // A level has as many nodes as the one below needs for parents.
    let mut nodes = vec![intervals.div_ceil(KEYS)];
    while let Some(&below) = nodes.last()
        && below > 1
    {
        nodes.push(below.div_ceil(KEYS + 1));
    }
    let mut bases = vec![0u32];
    bases.extend(nodes.iter().skip(1).rev().scan(0, |first, &nodes| {
        *first += nodes as u32;
        Some(*first)
    }));
    let starts = tables.get("long_starts").unwrap_or_default();
    let blocks = (starts.len() / 4).saturating_sub(1) as u32;
    let long = ["long_lasts", "long_codes"].map(|name| tables.get(name).unwrap_or_default());
    let words = vec![bases.len() as u32, blocks];
    let bases = bytemuck::cast_slice(&bases).to_vec();
    let parts = vec![
        keys.into(),
        values.into(),
        bases.into(),
        starts.into(),
        long[0].into(),
        long[1].into(),
    ];
    Some(Plan { form: &FORMS[width], parts, words })
}

/// Down the tree: the number of a node's keys below the address's is the number of the child to go to, and at the
/// leaves that of the interval. The largest codes are those of blocks.
fn code<C: Code>(image: &Image, addr: u128) -> u32 {
    let (high, low) = ((addr >> 64) as u64, addr as u64);
    let levels = image.word(0) as usize;
    let mut node = 0;
    for level in 0..levels {
        let at = image.get::<u32>(2, level) as usize + node;
        let rank = (0..KEYS).filter(|key| image.get::<u64>(0, at * KEYS + key) < high).count();
        let children = if level + 1 < levels { KEYS + 1 } else { KEYS };
        node = node * children + rank;
    }
    let code: u32 = image.get::<C>(1, node).into();
    let block = (u32::MAX >> (32 - 8 * size_of::<C>())) - code;
    if block >= image.word(1) {
        return code;
    }
    let [first, end] = [0, 1].map(|i| image.get::<u32>(3, block as usize + i) as usize);
    image.get(5, partition_point(first, end, |i| image.get::<u64>(4, i) < low))
}

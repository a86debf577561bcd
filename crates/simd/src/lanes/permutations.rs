use std::sync::LazyLock;

/// Where sixteen lanes go: a row for each of the 65,536 sets of lanes, with its members in order and then
/// the others. 1 MiB.
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "read by AVX-512 alone"))]
pub struct Permutations(pub(super) Box<[[u8; 16]; 1 << 16]>);

impl Permutations {
    /// The table, made at its first use.
    pub fn get() -> &'static Self {
        static TABLE: LazyLock<Permutations> = LazyLock::new(|| {
            let row = |set: usize| {
                let mut row = [0; 16];
                let (members, others) = (0..16u8).partition(|lane| set >> lane & 1 == 1);
                let lanes: [Vec<u8>; 2] = [members, others];
                for (to, lane) in row.iter_mut().zip(lanes.into_iter().flatten()) {
                    *to = lane;
                }
                row
            };
            let rows: Box<[[u8; 16]]> = (0..1 << 16).map(row).collect();
            Permutations(rows.try_into().expect("65,536 rows"))
        });
        &TABLE
    }
}

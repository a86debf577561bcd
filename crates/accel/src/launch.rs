//! What the back ends have in common of kernels: their text, and what they are given.

use crate::image::Head;

/// The start of every file of kernels.
pub(crate) const PRELUDE: &str = include_str!("kernels/prelude.cl");

/// The most threads of a group, and those that look up together, a divisor of it: `GROUP` and `LANES` of the prelude.
pub(crate) const GROUP: usize = 256;
pub(crate) const LANES: usize = 8;

/// A file of kernels.
pub(crate) struct Source {
    pub(crate) file: &'static str,
    /// OpenCL C, without the prelude.
    pub(crate) text: &'static str,
    /// The same compiled for CUDA, which ends with a zero byte as the driver takes it.
    pub(crate) ptx: &'static str,
}

/// The file of a scheme.
macro_rules! source {
    ($name:literal) => {
        crate::launch::Source {
            file: concat!($name, ".cl"),
            text: include_str!(concat!("../kernels/", $name, ".cl")),
            ptx: concat!(include_str!(concat!("../kernels/ptx/", $name, ".ptx")), "\0"),
        }
    };
}
pub(crate) use source;

/// What every kernel is given (`KERNEL` in `prelude.cl`). `M` is how a driver names a place in its memory.
pub(crate) struct Arguments<M> {
    pub(crate) keys: M,
    pub(crate) hops: M,
    pub(crate) count: u32,
    /// 1 if the bytes of keys are in the order of the network, else 0.
    pub(crate) is_network: u32,
    pub(crate) table: M,
    pub(crate) head: Head,
}

/// Takes arguments in their order. A taker may keep where they are, so they stay as long as it does.
pub(crate) trait Takes<'a> {
    fn take<T>(&mut self, value: &'a T);
}

impl<M> Arguments<M> {
    pub(crate) fn pass_to<'a>(&'a self, taker: &mut impl Takes<'a>) {
        let Self { keys, hops, count, is_network, table, head } = self;
        taker.take(keys);
        taker.take(hops);
        taker.take(count);
        taker.take(is_network);
        taker.take(table);
        taker.take(head);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schemes;

    struct Sizes(Vec<usize>);

    impl Takes<'_> for Sizes {
        fn take<T>(&mut self, value: &T) {
            self.0.push(size_of_val(value));
        }
    }

    /// The bytes of a parameter, from its line: `.param .u64 NAME` or `.param .align 4 .b8 NAME[64]`.
    fn bytes(line: &str) -> usize {
        let line = line.trim().trim_end_matches(',');
        if let Some(array) = line.strip_suffix(']') {
            return array.rsplit_once('[').expect("an array").1.parse().expect("its bytes");
        }
        let bits =
            line.strip_prefix(".param .u").expect("a number").split(' ').next().expect("its bits");
        bits.parse::<usize>().expect("its bits") / 8
    }

    #[test]
    fn sizes_of_groups_are_those_of_the_prelude() {
        for line in [format!("#define GROUP {GROUP}"), format!("#define LANES {LANES}")] {
            assert!(PRELUDE.lines().any(|other| other == line), "{line}");
        }
    }

    /// The compiled file of every form has its kernel, which takes what the host passes, byte for byte.
    #[test]
    fn compiled_kernels_take_what_they_are_given() {
        let arguments = Arguments {
            keys: 0u64,
            hops: 0,
            count: 0,
            is_network: 0,
            table: 0,
            head: Head::default(),
        };
        let mut given = Sizes(Vec::new());
        arguments.pass_to(&mut given);
        let mut kernels = 0;
        for form in schemes::forms() {
            let entry = format!(".visible .entry {}(", form.kernel);
            let (_, rest) = form.source.ptx.split_once(&entry).expect(form.kernel);
            let (params, _) = rest.split_once("\n)").expect("the end of the parameters");
            let taken: Vec<usize> = params.trim().lines().map(bytes).collect();
            assert_eq!(taken, given.0, "{}", form.kernel);
            // A macro adds the ending.
            let written = form.kernel.trim_end_matches("_lanes");
            assert!(form.source.text.contains(written), "{}", form.kernel);
            kernels += 1;
        }
        let entries = |source: &Source| source.ptx.matches(".entry ").count();
        let mut files: Vec<(&str, usize)> =
            schemes::forms().map(|form| (form.source.file, entries(form.source))).collect();
        files.dedup();
        assert_eq!(files.iter().map(|(_, entries)| entries).sum::<usize>(), kernels);
    }
}

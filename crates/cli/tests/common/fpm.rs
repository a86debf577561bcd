//! What FRR sent over FPM, and the kernel's table at moments of it: `testdata/fpm`.

use std::fs;
use std::io::Read;

use super::cuts;

/// An unpacked file.
pub fn file(name: &str) -> Vec<u8> {
    let packed = fs::read(cuts().join("fpm").join(name)).unwrap();
    let mut content = Vec::new();
    lzma_rust2::XzReader::new(&packed[..], true).read_to_end(&mut content).unwrap();
    content
}

/// The routes of the kernel at a mark, as `PREFIX NEXT-HOPS` or `PREFIX NEXT-HOPS table NUMBER`.
pub fn kernel(mark: &str) -> String {
    String::from_utf8(file(&format!("small.{mark}.fib.xz"))).unwrap()
}

/// The first connection's bytes until a mark, and from there on.
pub fn until(mark: &str) -> (Vec<u8>, Vec<u8>) {
    let log = fs::read_to_string(cuts().join("fpm/small-nhg.fpm.tsv")).unwrap();
    let mut bytes = 0;
    for line in log.lines() {
        match line.split('\t').collect::<Vec<_>>()[..] {
            [_, "data", "1", count] => bytes += count.parse::<usize>().unwrap(),
            [_, "mark", _, name] if name == mark => break,
            _ => {}
        }
    }
    let mut all = file("small-nhg.c1.fpm.xz");
    let rest = all.split_off(bytes);
    (all, rest)
}

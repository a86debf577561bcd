//! The header and the functions in `src` are the same, type by type.

use std::fs;
use std::path::{Path, PathBuf};

/// What a type of Rust is called in C.
const TYPES: &[(&str, &str)] = &[
    ("*const c_char", "const char *"),
    ("*mut c_char", "char *"),
    ("*const c_void", "const void *"),
    ("*const u32", "const uint32_t *"),
    ("*mut u32", "uint32_t *"),
    ("*mut u64", "uint64_t *"),
    ("*const Route", "const fibula_route *"),
    ("*mut Route", "fibula_route *"),
    ("*const Table", "const fibula_table *"),
    ("*mut Table", "fibula_table *"),
    ("*const Live", "const fibula_live *"),
    ("*mut Live", "fibula_live *"),
    ("*mut Reader", "fibula_reader *"),
    ("*const Batch", "const fibula_batch *"),
    ("*const Options", "const fibula_options *"),
    ("*mut Counters", "fibula_counters *"),
    ("*mut Memory", "fibula_memory *"),
    ("*mut c_void", "void *"),
    ("[u8; 16]", "uint8_t "),
    ("u64", "uint64_t "),
    ("bool", "bool "),
    ("u8", "uint8_t "),
    ("u32", "uint32_t "),
    ("usize", "size_t "),
    ("", "void "),
];

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn in_c(of_rust: &str) -> &str {
    let found = TYPES.iter().find(|(rust, _)| *rust == of_rust.trim());
    found.unwrap_or_else(|| panic!("a line of TYPES for {of_rust:?}")).1
}

/// The prototype in C of a function in Rust, given from its name on.
fn prototype(function: &str) -> String {
    let (name, rest) = function.split_once('(').unwrap();
    let (parameters, rest) = rest.split_once(')').unwrap();
    let result = rest.split_once('{').unwrap().0.trim().trim_start_matches("->");
    let parameters: Vec<String> = parameters
        .split(',')
        .filter(|parameter| !parameter.trim().is_empty())
        .map(|parameter| {
            let (name, of_rust) = parameter.split_once(':').unwrap();
            format!("{}{}", in_c(of_rust), name.trim())
        })
        .collect();
    let parameters = if parameters.is_empty() { "void".to_owned() } else { parameters.join(", ") };
    format!("{}{name}({parameters});", in_c(result))
}

/// All sources, one after the other.
fn sources(folder: &Path) -> String {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut entries: Vec<_> = entries.collect();
    entries.sort();
    let text = |path: &PathBuf| match path.is_dir() {
        true => sources(path),
        false => fs::read_to_string(path).unwrap(),
    };
    entries.iter().map(text).collect()
}

/// The structs of C, by the names of Rust.
const STRUCTS: &[(&str, &str)] = &[
    ("Route", "fibula_route"),
    ("Batch", "fibula_batch"),
    ("Options", "fibula_options"),
    ("Counters", "fibula_counters"),
    ("Memory", "fibula_memory"),
];

/// Fields as `type name`, of C.
#[test]
fn the_header_has_each_struct_as_it_is() {
    let sources = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    let header = read("include/fibula.h");
    let mut found = 0;
    for of_rust in sources.split("#[repr(C)]").skip(1) {
        let (_, of_rust) = of_rust.split_once("pub struct ").unwrap();
        let (name, rest) = of_rust.split_once(" {").unwrap();
        let fields = rest.split_once('}').unwrap().0;
        let fields: Vec<String> = fields
            .lines()
            .filter_map(|line| line.trim().trim_end_matches(',').split_once(": "))
            .map(|(name, of_rust)| {
                let array = if of_rust.starts_with('[') { "[16]" } else { "" };
                format!("{}{name}{array}", in_c(of_rust))
            })
            .collect();
        let of_c = STRUCTS.iter().find(|(rust, _)| *rust == name).expect("a line of STRUCTS").1;
        let (_, declared) = header.split_once(&format!("typedef struct {of_c} {{\n")).unwrap();
        let declared = declared.split_once("\n}").unwrap().0;
        let declared: Vec<&str> =
            declared.lines().map(|line| line.split(';').next().unwrap().trim()).collect();
        assert_eq!(fields, declared, "{of_c}");
        found += 1;
    }
    assert_eq!(found, STRUCTS.len());
}

#[test]
fn the_header_has_each_function_as_it_is() {
    let sources = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    let exported = sources.split("#[unsafe(no_mangle)]").skip(1);
    let exported = exported.map(|rest| rest.split_once("extern \"C\" fn ").unwrap().1);
    let mut functions: Vec<_> = exported.map(prototype).collect();
    // A prototype on several lines is one.
    let header = read("include/fibula.h").replace(",\n                        ", ", ");
    let mut declared: Vec<_> = header
        .lines()
        .filter(|line| line.contains("fibula_") && line.ends_with(");") && !line.starts_with(' '))
        .collect();
    functions.sort();
    declared.sort();
    assert_eq!(functions, declared);
    assert!(functions.len() > 20, "{}", functions.len());
}

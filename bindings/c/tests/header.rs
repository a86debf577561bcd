//! The header and the functions in `src` are the same, type by type.

use std::fs;
use std::path::Path;

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

#[test]
fn the_header_has_each_function_as_it_is() {
    let folder = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap();
    let sources: String = folder
        .map(|entry| read(&format!("src/{}", entry.unwrap().file_name().display())))
        .collect();
    let mut functions: Vec<_> = sources.split("extern \"C\" fn ").skip(1).map(prototype).collect();
    let header = read("include/fibula.h");
    let mut declared: Vec<_> = header
        .lines()
        .filter(|line| line.contains("fibula_") && line.ends_with(");") && !line.starts_with(' '))
        .collect();
    functions.sort();
    declared.sort();
    assert_eq!(functions, declared);
    assert!(functions.len() > 20, "{}", functions.len());
    assert_eq!(sources.matches("#[unsafe(no_mangle)]").count(), functions.len());
}

//! Arrow columns of every type against a linear scan, cell by cell.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use crate::common::{SearchMethod, World};
use arrow_array::builder::{BinaryViewBuilder, FixedSizeBinaryBuilder, StringDictionaryBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type, UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, DictionaryArray, Float64Array, Int64Array, LargeBinaryArray,
    LargeStringArray, NullArray, StringArray, StringViewArray, UInt32Array, UInt64Array,
};
use arrow_schema::DataType;
use fibula_annotate::{
    AnnotateError, AnnotateOptions, Annotated, Annotator, ColumnAnnotator, LogFormat, LookupTable,
    PrefixForm, TextForm,
};
use fibula_core::{Addr, PerFamily, Routes};
use fibula_fib::{Fib, Isa};
use fibula_rib::{Live, LiveOptions, Maker, Makers, Rib};

fn options(add: &[&str]) -> AnnotateOptions {
    let mut options = AnnotateOptions::default();
    options.add = add.iter().map(|&name| name.to_owned()).collect();
    options
}

/// Annotates with routes and lengths by search and by a scan, and with a `Fib`; they must agree.
fn run(world: &World, options: &AnnotateOptions, array: &dyn Array) -> Annotated {
    let found = |table: Arc<dyn LookupTable>| {
        let annotator = ColumnAnnotator::new(table, options).unwrap();
        annotator.annotate("ip", array).unwrap()
    };
    let one = found(Arc::new(world.with_ways(SearchMethod::Search)));
    let same_table: [Arc<dyn LookupTable>; 2] =
        [Arc::new(world.with_ways(SearchMethod::Scans)), Arc::new(world.fib())];
    for table in same_table {
        let two = found(table);
        assert_eq!(one.counts, two.counts);
        for (one, two) in one.columns.iter().zip(&two.columns) {
            assert_eq!(one.to_data(), two.to_data());
        }
    }
    for (field, column) in one.fields.iter().zip(&one.columns) {
        assert_eq!(field.data_type(), column.data_type());
        assert_eq!(column.len(), array.len());
        column.to_data().validate_full().unwrap();
    }
    one
}

fn ips() -> Vec<Option<IpAddr>> {
    let v4 = [
        "10.0.0.1",
        "10.1.0.0",
        "10.1.2.255",
        "8.8.8.8",
        "0.0.0.0",
        "255.255.255.255",
        "192.0.2.9",
    ];
    let v6 = [
        "2001:db8::",
        "2001:db8:1::1",
        "::",
        "::ffff:10.1.2.3",
        "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    ];
    let some = v4.iter().chain(&v6).map(|text| Some(text.parse().unwrap()));
    let cells: Vec<_> = some.chain([None]).collect();
    // More than two blocks, the last of an odd length.
    cells.iter().copied().cycle().take(5003).collect()
}

/// What a linear scan says: prefix, AS and organisation.
type Row = (Option<String>, Option<u64>, Option<String>);

fn expected(world: &World, ip: Option<IpAddr>) -> Row {
    let columns = &world.columns;
    let matched = match ip.map(|ip| ip.to_canonical()) {
        None => None,
        Some(IpAddr::V4(ip)) => {
            world.family::<u32>().matched(ip.into()).map(|(prefix, hop)| (prefix.to_string(), hop))
        }
        Some(IpAddr::V6(ip)) => {
            world.family::<u128>().matched(ip.into()).map(|(prefix, hop)| (prefix.to_string(), hop))
        }
    };
    let Some((prefix, hop)) = matched else { return (None, None, None) };
    let row = hop.index().unwrap();
    let asn = match columns.value(0, row) {
        fibula_core::Value::Int(asn) => Some(asn),
        _ => None,
    };
    let org = match columns.value(1, row) {
        fibula_core::Value::Str(org) => Some(org.to_owned()),
        _ => None,
    };
    (Some(prefix), asn, org)
}

fn rows(found: &Annotated) -> Vec<Row> {
    let prefixes = found.columns[0].as_string::<i32>();
    let asns = found.columns[1].as_primitive::<UInt32Type>();
    let orgs = found.columns[2].as_dictionary::<Int32Type>();
    let orgs = orgs.downcast_dict::<StringArray>().unwrap();
    let text = |text: Option<&str>| text.map(str::to_owned);
    let orgs = orgs.into_iter().map(text);
    let rows = prefixes.iter().zip(asns.iter()).zip(orgs);
    rows.map(|((prefix, asn), org)| (text(prefix), asn.map(u64::from), org)).collect()
}

fn same(found: &[Row], expected: &[Row], kind: &DataType) {
    assert_eq!(found.len(), expected.len());
    for (row, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(found, expected, "{kind}, row {row}");
    }
}

/// The column must give what the scan says of these addresses.
fn check(world: &World, array: ArrayRef, ips: &[Option<IpAddr>]) {
    let expected: Vec<Row> = ips.iter().map(|&ip| expected(world, ip)).collect();
    let options = options(&["prefix", "asn", "org"]);
    let found = run(world, &options, &array);
    same(&rows(&found), &expected, array.data_type());
    let none = ips.iter().flatten().count() as u64;
    let matched = expected.iter().filter(|row| row.0.is_some()).count() as u64;
    let v4 = ips.iter().flatten().filter(|ip| ip.to_canonical().is_ipv4()).count() as u64;
    let counts = found.counts;
    assert_eq!((counts.rows, counts.matched, counts.v4), (ips.len() as u64, matched, v4));
    assert_eq!((counts.unmatched, counts.empty), (none - matched, ips.len() as u64 - none));
    // A slice does not begin where its buffers do.
    let found = run(world, &options, &array.slice(7, 2100));
    same(&rows(&found), &expected[7..2107], array.data_type());
}

#[test]
fn text_of_every_kind() {
    let (world, ips) = (World::new(), ips());
    let text: Vec<_> = ips.iter().map(|ip| ip.map(|ip| ip.to_string())).collect();
    check(&world, Arc::new(StringArray::from(text.clone())), &ips);
    check(&world, Arc::new(LargeStringArray::from(text.clone())), &ips);
    check(&world, Arc::new(StringViewArray::from_iter(text.iter().map(Option::as_deref))), &ips);
    let mut builder = StringDictionaryBuilder::<Int8Type>::new();
    text.iter().for_each(|text| builder.append_option(text.as_deref()));
    check(&world, Arc::new(builder.finish()), &ips);
}

#[test]
fn bytes_of_every_kind() {
    let (world, ips) = (World::new(), ips());
    let bytes = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let bytes: Vec<_> = ips.iter().map(|ip| ip.map(bytes)).collect();
    let slices = || bytes.iter().map(Option::as_deref);
    check(&world, Arc::new(BinaryArray::from_iter(slices())), &ips);
    check(&world, Arc::new(LargeBinaryArray::from_iter(slices())), &ips);
    let mut builder = BinaryViewBuilder::new();
    slices().for_each(|bytes| builder.append_option(bytes));
    check(&world, Arc::new(builder.finish()), &ips);
    for width in [4, 16] {
        let of = |ip: &Option<IpAddr>| ip.filter(|ip| ip.is_ipv4() == (width == 4));
        let ips: Vec<_> = ips.iter().map(of).collect();
        let mut builder = FixedSizeBinaryBuilder::new(width);
        for (ip, bytes) in ips.iter().zip(&bytes) {
            match ip {
                Some(_) => builder.append_value(bytes.as_ref().unwrap()).unwrap(),
                None => builder.append_null(),
            }
        }
        check(&world, Arc::new(builder.finish()), &ips);
    }
}

#[test]
fn numbers() {
    let world = World::new();
    let v4 = |ip: &Option<IpAddr>| ip.filter(IpAddr::is_ipv4);
    let number = |ip: &Option<IpAddr>| match ip {
        Some(IpAddr::V4(ip)) => Some(u32::from(*ip)),
        _ => None,
    };
    let ips: Vec<_> = ips().iter().map(v4).collect();
    let numbers: Vec<_> = ips.iter().map(number).collect();
    check(&world, Arc::new(UInt32Array::from(numbers.clone())), &ips);
    let wide = |n: &Option<u32>| n.map(u64::from);
    check(&world, Arc::new(numbers.iter().map(wide).collect::<UInt64Array>()), &ips);
    let signed = |n: &Option<u32>| n.map(i64::from);
    check(&world, Arc::new(numbers.iter().map(signed).collect::<Int64Array>()), &ips);
    // Without nulls they are looked up in place; as values of a dictionary too.
    let whole: Vec<u32> = numbers.iter().flatten().copied().collect();
    let ips: Vec<_> = whole.iter().map(|&n| Some(Ipv4Addr::from(n).into())).collect();
    check(&world, Arc::new(UInt32Array::from(whole.clone())), &ips);
    let mut values = whole.clone();
    values.sort_unstable();
    values.dedup();
    let keys = whole.iter().map(|n| Some(values.binary_search(n).unwrap() as u8));
    let keys: arrow_array::PrimitiveArray<UInt8Type> = keys.collect();
    let values = Arc::new(UInt32Array::from(values));
    check(&world, Arc::new(DictionaryArray::new(keys, values)), &ips);
    check(&world, Arc::new(NullArray::new(5003)), &vec![None; 5003]);
}

#[test]
fn what_is_no_address_is_counted() {
    let world = World::new();
    let cells = [
        Some("10.0.0.1"),
        Some("x"),
        Some(""),
        Some(" 10.1.0.1 "),
        None,
        Some("fe80::1%1"),
        Some("10.0.0.256"),
    ];
    let array: ArrayRef = Arc::new(StringArray::from(cells.to_vec()));
    let found = run(&world, &options(&["asn"]), &array);
    let counts = found.counts;
    assert_eq!((counts.matched, counts.unparsable, counts.empty, counts.unmatched), (2, 3, 2, 0));
    assert_eq!(found.first_unparsable, Some((1, "x".to_owned())));
    assert_eq!(found.columns[0].null_count(), 5);
    let dictionary: ArrayRef = Arc::new(cells.into_iter().collect::<DictionaryArray<Int32Type>>());
    assert_eq!(run(&world, &options(&["asn"]), &dictionary).counts, counts);
    assert_eq!(
        run(&world, &options(&["asn"]), &dictionary).first_unparsable,
        found.first_unparsable
    );
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![167_772_161, -1, 1 << 32]));
    assert_eq!(run(&world, &options(&["asn"]), &numbers).counts.unparsable, 2);
    let bytes: ArrayRef = Arc::new(BinaryArray::from_vec(vec![&[10, 0, 0, 1], &[], &[1; 4]]));
    assert_eq!(run(&world, &options(&["asn"]), &bytes).counts.unparsable, 1);
    let text: ArrayRef = Arc::new(BinaryArray::from_vec(vec![b"10.0.0.1", b"10.1.2.3:53", b"x"]));
    assert_eq!(run(&world, &options(&["asn"]), &text).counts.unparsable, 1);
    let annotator = ColumnAnnotator::new(world.clone(), &options(&["asn"])).unwrap();
    let mixed = BinaryArray::from_vec(vec![&[10, 0, 0, 1], &[], &[1; 5]]);
    let error = annotator.annotate("src", &mixed).unwrap_err().to_string();
    assert!(error.ends_with("but it has a cell of 5 bytes beside others"), "{error}");

    let mut strict = options(&["asn"]);
    strict.strict = true;
    let annotator = ColumnAnnotator::new(world.clone(), &strict).unwrap();
    let error = annotator.annotate("src", &array).unwrap_err();
    assert_eq!(error.to_string(), "row 2, column src: \"x\" is not an address");
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![1.0]));
    let error = annotator.annotate("src", &floats).unwrap_err();
    assert_eq!(error.to_string(), "a column of type Float64 holds no addresses");
}

#[test]
fn forms_of_what_is_added() {
    let world = World::new();
    let array: ArrayRef = Arc::new(StringArray::from(vec![
        Some("10.1.2.3"),
        Some("8.8.8.8"),
        None,
        Some("2001:db8::1"),
    ]));
    let mut options = options(&["prefix", "covering", "org", "asn"]);
    options.prefix = PrefixForm::Binary;
    options.text = TextForm::Plain;
    options.defaults = vec![("asn".into(), "0".into()), ("org".into(), "nobody".into())];
    let found = run(&world, &options, &array);
    let names: Vec<_> = found.fields.iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["ip_prefix", "ip_prefix_len", "ip_covering", "ip_org", "ip_asn"]);
    let bytes: Vec<_> = found.columns[0].as_binary::<i32>().iter().collect();
    let v6 = "2001:db8::".parse::<Ipv6Addr>().unwrap().octets();
    assert_eq!(bytes, [Some(&[10, 1, 2, 0][..]), None, None, Some(&v6)]);
    let lengths: Vec<_> = found.columns[1].as_primitive::<UInt8Type>().iter().collect();
    assert_eq!(lengths, [Some(24), None, None, Some(32)]);
    let lists = found.columns[2].as_list::<i32>();
    let list = |row: usize| -> Option<Vec<String>> {
        let text = |text: Option<&str>| text.unwrap().to_owned();
        lists.is_valid(row).then(|| lists.value(row).as_string::<i32>().iter().map(text).collect())
    };
    assert_eq!(list(0).unwrap(), ["10.1.2.0/24", "10.1.0.0/16", "10.0.0.0/8"]);
    assert_eq!((list(1), list(2)), (Some(vec![]), None));
    let orgs: Vec<_> = found.columns[3].as_string::<i32>().iter().collect();
    assert_eq!(orgs, [Some("tab\there"), Some("nobody"), None, Some("Zoë")]);
    let asns: Vec<_> = found.columns[4].as_primitive::<UInt32Type>().iter().collect();
    assert_eq!(asns, [None, Some(0), None, Some(64502)]);
}

/// Prefixes alone, of addresses as numbers: rows of the table are not looked up.
#[test]
fn binary_prefixes_without_values() {
    let world = World::new();
    let mut options = options(&["prefix"]);
    options.prefix = PrefixForm::Binary;
    let addrs = [0x0a01_0203, 0x0808_0808].repeat(1500);
    let (numbers, texts): (UInt32Array, StringArray) = (
        addrs.iter().copied().map(Some).collect(),
        addrs.iter().map(|&addr| Some(Ipv4Addr::from(addr).to_string())).collect(),
    );
    let (found, expected) = (run(&world, &options, &numbers), run(&world, &options, &texts));
    for (found, expected) in found.columns.iter().zip(&expected.columns) {
        assert_eq!(found.to_data(), expected.to_data());
    }
    assert_eq!(found.columns[0].as_binary::<i32>().value(0), [10, 1, 2, 0]);
}

#[test]
fn wide_integers_and_bad_options() {
    let world = World::with(&[("10.0.0.0/8", Some(u64::MAX), "")]);
    let array: ArrayRef = Arc::new(UInt32Array::from(vec![0x0a00_0000]));
    let found = run(&world, &options(&["asn"]), &array);
    assert_eq!(found.fields[0].data_type(), &DataType::UInt64);
    assert_eq!(found.columns[0].as_primitive::<UInt64Type>().value(0), u64::MAX);
    let error = |change: &dyn Fn(&mut AnnotateOptions)| {
        let mut options = options(&["asn"]);
        change(&mut options);
        let annotator = ColumnAnnotator::new(world.clone(), &options);
        annotator.err().unwrap().to_string()
    };
    let nope = error(&|options| options.add.push("nope".into()));
    assert_eq!(nope, "the table has no value column \"nope\"; it has: asn, org");
    let text = error(&|options| options.defaults.push(("asn".into(), "x".into())));
    assert_eq!(text, "column \"asn\" holds integers, its default \"x\" is none");
    let other = error(&|options| options.defaults.push(("org".into(), "x".into())));
    assert!(other.starts_with("a default was given for \"org\""), "{other}");
}

/// A generation of a live table has no rows that hops number: nothing would match, silently.
#[test]
fn a_live_generation_is_refused() {
    fn makers<A: Addr>() -> Vec<Maker<A>> {
        let entry = fibula_engines::Registry::product().find::<A>("radix").unwrap().clone();
        vec![Maker::new(entry.name, move |routes: &Routes<A>| entry.build(routes, Isa::detect()))]
    }
    let both = PerFamily::<Makers> { v4: makers(), v6: makers() };
    let live = Live::start(Rib::default(), &[0], both, LiveOptions::default(), |_| {}).unwrap();
    let fib = Fib::of_live(&live, 0).unwrap();
    let error = ColumnAnnotator::new(fib.clone(), &AnnotateOptions::default()).err().unwrap();
    assert!(error.to_string().contains("a generation of a live one"), "{error}");
    let error = Annotator::new(fib, LogFormat::Csv, &AnnotateOptions::default()).err().unwrap();
    assert!(matches!(error, AnnotateError::Live), "{error}");
}

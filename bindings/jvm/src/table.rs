//! An open table, and what is asked of it.

use std::path::Path;

use fibula_annotate::{Address, MAX_PREFIX, put_prefix};
use fibula_core::{Addr, AnyPrefix, ColumnKind, Hop, Prefix, Value};
use fibula_fib::{Fib, FibOptions, Pod};
use fibula_rib::Loading;

use crate::watch::Watch;

/// In place of a row: no prefix matches.
pub const NO_MATCH: i32 = -1;
/// In place of a row: that is no address.
pub const NO_ADDRESS: i32 = -2;

/// Addresses that are looked up together.
const BLOCK: usize = 256;

/// What the bytes of an address are.
#[derive(Clone, Copy)]
pub enum Form {
    /// Text as in a cell of a log: blanks, a port or brackets around the address.
    Text,
    /// 4 or 16 bytes in network order.
    Bytes,
}

impl Form {
    fn read(self, cell: &[u8]) -> Option<Address> {
        match self {
            Self::Text => Address::parse_cell(cell),
            Self::Bytes => match <[u8; 4]>::try_from(cell) {
                Ok(v4) => Some(Address::V4(u32::from_be_bytes(v4))),
                Err(_) => {
                    let v6 = <[u8; 16]>::try_from(cell).ok()?;
                    Some(Address::from_v6(u128::from_be_bytes(v6)))
                }
            },
        }
    }
}

/// A table that Java has opened.
pub struct Table {
    fib: Fib,
    /// When Java looks at the file again.
    pub watch: Watch,
}

impl Table {
    /// Opens a file; with `mapped`, it is mapped also if it is writable.
    pub fn open(path: &Path, mapped: bool) -> Result<Self, String> {
        let loading = if mapped { Loading::Map } else { Loading::Auto };
        let fib = Fib::open_with(path, &FibOptions::default().loading(loading));
        let fib = fib.map_err(|error| error.to_string())?;
        // Java's numbers of rows are signed.
        match i32::try_from(fib.columns().len()) {
            Ok(_) => Ok(Self { fib, watch: Watch::new() }),
            Err(_) => Err(format!("{}: more than 2147483647 rows of values", path.display())),
        }
    }

    /// The row of one address.
    pub fn row(&self, cell: &[u8], form: Form) -> i32 {
        match form.read(cell) {
            Some(Address::V4(address)) => self.row_of(address),
            Some(Address::V6(address)) => self.row_of(address),
            None => NO_ADDRESS,
        }
    }

    /// The row of an address.
    pub fn row_of<A: Addr + Pod>(&self, address: A) -> i32 {
        row(self.fib.family::<A>().engine().lookup(address))
    }

    /// The rows of cells, which end where `ends` says.
    pub fn rows(&self, cells: &[u8], ends: &[u32], form: Form, rows: &mut [i32]) {
        let (mut v4, mut v6) = (Keys::new(), Keys::new());
        let mut begin = 0;
        for (at, &end) in ends.iter().enumerate() {
            let end = end as usize;
            match cells.get(begin..end).and_then(|cell| form.read(cell)) {
                Some(Address::V4(address)) => v4.push(&self.fib, at, address, rows),
                Some(Address::V6(address)) => v6.push(&self.fib, at, address, rows),
                None => rows[at] = NO_ADDRESS,
            }
            begin = end;
        }
        v4.look_up(&self.fib, rows);
        v6.look_up(&self.fib, rows);
    }

    /// The rows of IPv4 addresses.
    pub fn rows4(&self, addresses: &[u32], rows: &mut [i32]) {
        let mut hops = [Hop::NONE; BLOCK];
        for (addresses, rows) in addresses.chunks(BLOCK).zip(rows.chunks_mut(BLOCK)) {
            let hops = &mut hops[..addresses.len()];
            self.fib.lookup_batch(addresses, hops);
            rows.iter_mut().zip(hops).for_each(|(to, hop)| *to = row(*hop));
        }
    }

    /// Writes the prefix of an address as text. Returns its bytes, or the number that says why there is none.
    pub fn prefix(
        &self,
        cell: &[u8],
        form: Form,
        text: &mut [u8; MAX_PREFIX],
    ) -> Result<usize, i32> {
        let prefix = match form.read(cell).ok_or(NO_ADDRESS)? {
            Address::V4(address) => self.prefix_of(address),
            Address::V6(address) => self.prefix_of(address),
        };
        Ok(put_prefix(prefix.ok_or(NO_MATCH)?, text))
    }

    fn prefix_of<A: Addr + Pod>(&self, address: A) -> Option<AnyPrefix>
    where
        AnyPrefix: From<Prefix<A>>,
    {
        let mut length = [Hop::NONE];
        self.fib.family::<A>().lengths(&[address], &mut length);
        let length = u8::try_from(length[0].index()?).ok()?;
        Some(Prefix::masked(address, length).ok()?.into())
    }

    /// Number of routes of both families.
    pub fn routes(&self) -> usize {
        self.fib.len()
    }

    /// Number of rows of values.
    pub fn height(&self) -> u32 {
        self.fib.columns().len()
    }

    /// The name of a column, and whether it has integers.
    pub fn column(&self, column: usize) -> Option<(&str, bool)> {
        let columns = self.fib.columns();
        let name = columns.names().nth(column)?;
        Some((name, columns.kind(column) == ColumnKind::Int))
    }

    /// The number of the column of this name.
    pub fn find(&self, name: &str) -> Result<usize, String> {
        let columns = self.fib.columns();
        columns.find(name).ok_or_else(|| {
            let names: Vec<_> = columns.names().collect();
            match names.is_empty() {
                true => format!("the table has no column {name:?}, nor any other"),
                false => format!("the table has no column {name:?}, but {}", names.join(", ")),
            }
        })
    }

    /// A value.
    pub fn value(&self, column: usize, row: usize) -> Result<Value<'_>, String> {
        let columns = self.fib.columns();
        if column >= columns.width() {
            return Err(format!("there is no column {column}: the table has {}", columns.width()));
        }
        match u32::try_from(row) {
            Ok(at) if at < columns.len() => Ok(columns.value(column, at)),
            _ => Err(format!("there is no row {row}: the table has {}", columns.len())),
        }
    }
}

/// A hop as Java has it.
fn row(hop: Hop) -> i32 {
    hop.index().and_then(|row| i32::try_from(row).ok()).unwrap_or(NO_MATCH)
}

/// Addresses of one family, and where their rows belong.
struct Keys<A> {
    count: usize,
    places: [usize; BLOCK],
    addresses: [A; BLOCK],
}

impl<A: Addr + Pod> Keys<A> {
    fn new() -> Self {
        Self { count: 0, places: [0; BLOCK], addresses: [A::MIN; BLOCK] }
    }

    fn push(&mut self, table: &Fib, place: usize, address: A, rows: &mut [i32]) {
        (self.places[self.count], self.addresses[self.count]) = (place, address);
        self.count += 1;
        if self.count == BLOCK {
            self.look_up(table, rows);
        }
    }

    fn look_up(&mut self, table: &Fib, rows: &mut [i32]) {
        let mut hops = [Hop::NONE; BLOCK];
        let hops = &mut hops[..self.count];
        table.lookup_batch(&self.addresses[..self.count], hops);
        for (place, hop) in self.places.iter().zip(hops) {
            rows[*place] = row(*hop);
        }
        self.count = 0;
    }
}

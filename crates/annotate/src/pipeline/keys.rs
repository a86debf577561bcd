//! The keys of a block: its addresses by family, and the cells without an address.

use super::answers::Without;
use crate::Address;
use crate::block::NotAnAddress;

/// Collects the cells of a block's rows as keys for a lookup.
pub(crate) trait KeySink: Default + Send {
    fn clear(&mut self);

    /// Adds a cell with an IPv4 address.
    fn v4(&mut self, cell: u32, addr: u32);

    /// Adds a cell with an address.
    fn address(&mut self, cell: u32, address: Address);

    /// Adds an empty cell.
    fn empty(&mut self, cell: u32);

    /// Adds a cell with this text. Whitespace around it is ignored. With `integers`, digits are an address.
    fn text(&mut self, cell: u32, text: &[u8], integers: bool) -> Result<(), NotAnAddress>;

    /// Completes the row of the cells that were added last.
    #[inline(always)]
    fn row(&mut self) {}
}

/// The addresses of one family in a block, with the cell of each.
#[derive(Debug)]
pub(crate) struct Keys<A> {
    pub(crate) addrs: Vec<A>,
    /// `cells[i]` is the cell of `addrs[i]`.
    pub(crate) cells: Vec<u32>,
}

impl<A> Default for Keys<A> {
    fn default() -> Self {
        Self { addrs: Vec::new(), cells: Vec::new() }
    }
}

impl<A> Keys<A> {
    fn clear(&mut self) {
        self.addrs.clear();
        self.cells.clear();
    }
}

/// The cells of a block, in any order. Every cell is in exactly one of the three lists.
#[derive(Debug, Default)]
pub(crate) struct Cells {
    pub(crate) v4: Keys<u32>,
    pub(crate) v6: Keys<u128>,
    /// The cells without an address.
    pub(crate) others: Vec<(u32, Without)>,
}

impl KeySink for Cells {
    fn clear(&mut self) {
        self.v4.clear();
        self.v6.clear();
        self.others.clear();
    }

    #[inline(always)]
    fn v4(&mut self, cell: u32, addr: u32) {
        self.v4.addrs.push(addr);
        self.v4.cells.push(cell);
    }

    #[inline]
    fn address(&mut self, cell: u32, address: Address) {
        match address {
            Address::V4(addr) => self.v4(cell, addr),
            Address::V6(addr) => {
                self.v6.addrs.push(addr);
                self.v6.cells.push(cell);
            }
        }
    }

    fn empty(&mut self, cell: u32) {
        self.without(cell, Without::Empty);
    }

    #[inline]
    fn text(&mut self, cell: u32, text: &[u8], integers: bool) -> Result<(), NotAnAddress> {
        if let Some(address) = Address::parse(text) {
            self.address(cell, address);
            return Ok(());
        }
        let trimmed = text.trim_ascii();
        if trimmed.is_empty() {
            self.empty(cell);
            return Ok(());
        }
        let digits = if integers { Address::from_digits(trimmed) } else { None };
        match digits.or_else(|| Address::parse_cell(trimmed)) {
            Some(address) => self.address(cell, address),
            None => {
                self.without(cell, Without::Unparsable);
                return Err(NotAnAddress);
            }
        }
        Ok(())
    }
}

impl Cells {
    /// Adds a cell without an address.
    #[inline]
    pub(crate) fn without(&mut self, cell: u32, why: Without) {
        self.others.push((cell, why));
    }

    /// Adds a cell that was already read.
    #[inline]
    pub(crate) fn put(&mut self, cell: u32, read: Result<Address, Without>) {
        match read {
            Ok(address) => self.address(cell, address),
            Err(why) => self.without(cell, why),
        }
    }

    /// Calls `give` for each cell, not in their order.
    pub(crate) fn each(&self, mut give: impl FnMut(u32, Result<Address, Without>)) {
        let Self { v4, v6, others } = self;
        v4.cells.iter().zip(&v4.addrs).for_each(|(cell, addr)| give(*cell, Ok(Address::V4(*addr))));
        v6.cells.iter().zip(&v6.addrs).for_each(|(cell, addr)| give(*cell, Ok(Address::V6(*addr))));
        others.iter().for_each(|(cell, why)| give(*cell, Err(*why)));
    }

    /// Removes the addresses of some cells and records `why`.
    pub(crate) fn leave_out(&mut self, is_out: impl Fn(u32) -> bool, why: Without) {
        fn family<A: Copy>(
            keys: &mut Keys<A>,
            is_out: &impl Fn(u32) -> bool,
            mut out: impl FnMut(u32),
        ) {
            if !keys.cells.iter().any(|&cell| is_out(cell)) {
                return;
            }
            let mut kept = 0;
            for at in 0..keys.cells.len() {
                let cell = keys.cells[at];
                if is_out(cell) {
                    out(cell);
                } else {
                    (keys.cells[kept], keys.addrs[kept]) = (cell, keys.addrs[at]);
                    kept += 1;
                }
            }
            keys.cells.truncate(kept);
            keys.addrs.truncate(kept);
        }
        let Self { v4, v6, others } = self;
        family(v4, &is_out, |cell| others.push((cell, why)));
        family(v6, &is_out, |cell| others.push((cell, why)));
    }
}

//! **runmap**
mod batch;
mod build;
mod load;
mod lookup;
mod record;
mod space;
#[cfg(test)]
mod tests;
mod update;

use fibula_core::{
    BuildError, Engine, Hop, LoadError, Lookup, Memory, Patch, Patched, Persist, Prefix, Routes,
    TableRef, TableSource,
};
use fibula_simd::{Isa, Level, Table};

use record::{Leaf, ROOT_BYTES};

/// Parameters of [`Runmap`].
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The width of codes; `None` takes the narrowest that has a code for each hop of the routes.
    pub width: Option<Width>,
    /// The instruction set of its batch lookups; one that the machine lacks gives the best below it.
    pub isa: Isa,
}

/// The width of a table's codes. Any serves any routes: addresses whose hop has no code of the width
/// are found singly, by a record of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Width {
    /// 8 bits, for hops below 254.
    Bits8,
    /// 16 bits, for hops below 65,534.
    Bits16,
    /// 32 bits.
    Bits32,
}

impl Width {
    /// The narrowest that has a code for each hop of the routes.
    fn of(routes: &Routes<u32>) -> Self {
        match routes.hop_count() {
            ..<u8 as Leaf>::ESCAPE => Self::Bits8,
            <u8 as Leaf>::ESCAPE..<u16 as Leaf>::ESCAPE => Self::Bits16,
            <u16 as Leaf>::ESCAPE.. => Self::Bits32,
        }
    }
}

/// The compiled tables; see the [module](self). Clones share the tables until one is patched.
#[derive(Clone)]
pub struct Runmap {
    form: Form,
    level: Level,
}

#[derive(Clone)]
enum Form {
    Bits8(Tables<u8>),
    Bits16(Tables<u16>),
    Bits32(Tables<u32>),
}

/// The same expression for the tables of each width.
macro_rules! each {
    ($form:expr, $tables:ident => $result:expr) => {
        match $form {
            Form::Bits8($tables) => $result,
            Form::Bits16($tables) => $result,
            Form::Bits32($tables) => $result,
        }
    };
}

/// The tables with codes of one width.
#[derive(Clone)]
struct Tables<V: Leaf> {
    /// The root, and the records behind it.
    records: Table<u8>,
    /// Bytes of `records` in use; behind them lies room for patches.
    used: usize,
    /// Bytes of `records` when they were built or loaded.
    built: usize,
    _width: std::marker::PhantomData<V>,
}

impl<V: Leaf> Tables<V> {
    fn new(records: Table<u8>) -> Self {
        let built = records.len();
        Self { records, used: built, built, _width: std::marker::PhantomData }
    }

    /// The words of the root.
    #[inline(always)]
    fn root(&self) -> &[u32] {
        bytemuck::cast_slice(&self.records[..ROOT_BYTES])
    }

    fn table_refs(&self) -> Vec<TableRef<'_>> {
        vec![TableRef { name: V::TABLE, bytes: &self.records }]
    }
}

impl Runmap {
    /// As [`Persist::load`], for this instruction set.
    ///
    /// # Errors
    /// [`LoadError`] names the table and what is wrong with it.
    pub fn load_for(tables: &dyn TableSource, hop_count: u32, isa: Isa) -> Result<Self, LoadError> {
        let form = if let Some(tables) = load::load(tables, hop_count)? {
            Form::Bits8(tables)
        } else if let Some(tables) = load::load(tables, hop_count)? {
            Form::Bits16(tables)
        } else if let Some(tables) = load::load(tables, hop_count)? {
            Form::Bits32(tables)
        } else {
            return Err(LoadError::new(<u32 as Leaf>::TABLE, "is missing"));
        };
        Ok(Self { form, level: isa.level() })
    }

    /// The width of its codes.
    pub fn width(&self) -> Width {
        match &self.form {
            Form::Bits8(_) => Width::Bits8,
            Form::Bits16(_) => Width::Bits16,
            Form::Bits32(_) => Width::Bits32,
        }
    }
}

impl Lookup<u32> for Runmap {
    fn lookup(&self, addr: u32) -> Hop {
        each!(&self.form, tables => self.level.run(lookup::One { tables, addr }))
    }

    fn lookup_batch(&self, addrs: &[u32], hops: &mut [Hop]) {
        assert_eq!(addrs.len(), hops.len(), "as many hops as addresses");
        each!(&self.form, tables => batch::lookup_batch(tables, self.level, addrs, hops));
    }

    fn memory(&self) -> Memory {
        Memory::of_tables(&self.tables())
    }
}

impl Engine<u32> for Runmap {
    const NAME: &'static str = "runmap";
    type Config = Config;

    fn build(routes: &Routes<u32>, config: &Config) -> Result<Self, BuildError> {
        let form = match config.width.unwrap_or_else(|| Width::of(routes)) {
            Width::Bits8 => Form::Bits8(build::build(routes)?),
            Width::Bits16 => Form::Bits16(build::build(routes)?),
            Width::Bits32 => Form::Bits32(build::build(routes)?),
        };
        Ok(Self { form, level: config.isa.level() })
    }
}

impl Patch<u32> for Runmap {
    fn patch(
        &mut self,
        routes: &Routes<u32>,
        changed: &[Prefix<u32>],
    ) -> Result<Patched, BuildError> {
        if Width::of(routes) > self.width() {
            return Ok(Patched::Rebuild);
        }
        each!(&mut self.form, tables => tables.patch(routes, changed))
    }
}

impl Persist<u32> for Runmap {
    fn tables(&self) -> Vec<TableRef<'_>> {
        each!(&self.form, tables => tables.table_refs())
    }

    fn load(tables: &dyn TableSource, hop_count: u32) -> Result<Self, LoadError> {
        Self::load_for(tables, hop_count, Isa::detect())
    }
}

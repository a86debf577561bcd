//! The work itself: blocks of rows in, lookups in batches, blocks of rows out.

use std::io::{ErrorKind, Read, Write};

use fibula_core::{AnyPrefix, Hop, Prefix};
use fibula_fib::{ColumnKind, Columns};

use crate::block::{Block, Keys, Kind};
use crate::formats::csv::Csv;
use crate::formats::csv::scan::Dialect;
use crate::formats::json::JsonLines;
use crate::formats::list::List;
use crate::formats::pcap::Pcap;
use crate::formats::{Decoder, Fault};
use crate::input::{Input, MAX_RECORD};
use crate::options::added_name;
use crate::render::{Added, Default, Renderer, Style};
use crate::summary::Hits;
use crate::table::Family;
use crate::{AnnotateError, AnnotateOptions, Format, Summary, Table};

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Annotates inputs with what a table says about their addresses.
pub struct Annotator {
    table: Box<dyn Table>,
    options: AnnotateOptions,
    added: Vec<Added>,
    /// What addresses that nothing covers get, for each of these.
    defaults: Vec<Option<Default>>,
    /// The names of what is added, without the address column's.
    add: Vec<String>,
}

impl Annotator {
    /// Prepares annotation with these options. The table is a [`Fib`](fibula_fib::Fib), or a reference to
    /// one.
    ///
    /// # Errors
    /// If the table has no such value column, or options contradict each other. What depends on the
    /// input, such as its column names, is checked by [`Annotator::annotate`].
    pub fn new(
        table: impl Table + 'static,
        options: AnnotateOptions,
    ) -> Result<Self, AnnotateError> {
        let table: Box<dyn Table> = Box::new(table);
        if !table.has_columns() {
            return Err(AnnotateError::Live);
        }
        let columns = table.columns();
        let add = names_to_add(columns, &options.add)?;
        let added = add
            .iter()
            .map(|name| match name.as_str() {
                "prefix" => Ok(Added::Prefix),
                name => columns.find(name).map(Added::Value).ok_or_else(|| {
                    AnnotateError::UnknownValue { name: name.to_owned(), known: known(columns) }
                }),
            })
            .collect::<Result<Vec<_>, _>>()?;
        let defaults = defaults(columns, &options.defaults, &add, &added)?;
        let annotator = Self { table, options, added, defaults, add };
        annotator.decoder()?;
        Ok(annotator)
    }

    /// Reads `input` to its end and writes every row, in order, with what the table says about its
    /// addresses. Needs no buffering around either of them; memory does not grow with the input. Rows
    /// of a slow input (a pipe that is still being written) come out as they come in.
    ///
    /// # Errors
    /// If reading or writing fails, if the options do not fit the input, and with
    /// [`AnnotateOptions::strict`] at the first bad cell or record. Rows before the error were
    /// written. An output that was closed by its reader is not an error: [`Summary::output_closed`].
    pub fn annotate(
        &self,
        input: impl Read,
        mut output: impl Write,
    ) -> Result<Summary, AnnotateError> {
        let mut run = Run::new(self)?;
        match run.all(&mut Input::new(input), &mut output) {
            Err(AnnotateError::Write(error)) if error.kind() == ErrorKind::BrokenPipe => {
                run.summary.output_closed = true;
            }
            other => other?,
        }
        Ok(run.finish())
    }

    fn decoder(&self) -> Result<Box<dyn Decoder>, AnnotateError> {
        let options = &self.options;
        Ok(match options.format {
            Format::Csv | Format::Tsv => Box::new(Csv::new(options, self.add.clone())?),
            Format::JsonLines => Box::new(JsonLines::new(options)?),
            Format::List => Box::new(List::new(options)?),
            Format::Pcap => Box::new(Pcap::new(options)?),
            format => return Err(AnnotateError::Columnar { format }),
        })
    }

    fn style(&self) -> Style {
        let AnnotateOptions { delimiter, quote, .. } = self.options;
        match self.options.format {
            Format::Csv => Style::Fields(Dialect { delimiter: delimiter.unwrap_or(b','), quote }),
            Format::Tsv => Style::Fields(Dialect { delimiter: delimiter.unwrap_or(b'\t'), quote }),
            Format::JsonLines => Style::Members,
            Format::List => {
                Style::Fields(Dialect { delimiter: delimiter.unwrap_or(b'\t'), quote: None })
            }
            // Of columnar formats no annotator is made.
            Format::Pcap | Format::Parquet | Format::Arrow => {
                Style::Fields(Dialect { delimiter: b',', quote: Some(b'"') })
            }
        }
    }
}

/// What is added: as asked, or all there is.
pub(crate) fn names_to_add(
    columns: &Columns,
    asked: &[String],
) -> Result<Vec<String>, AnnotateError> {
    if asked.is_empty() {
        let all = known(columns);
        return Ok(if all.is_empty() { vec!["prefix".to_owned()] } else { all });
    }
    for (i, name) in asked.iter().enumerate() {
        if asked[..i].contains(name) {
            return Err(AnnotateError::Twice { name: name.clone() });
        }
    }
    Ok(asked.to_vec())
}

/// The defaults by what is added.
fn defaults(
    columns: &Columns,
    asked: &[(String, String)],
    add: &[String],
    added: &[Added],
) -> Result<Vec<Option<Default>>, AnnotateError> {
    let mut defaults = vec![None; added.len()];
    for (name, text) in asked {
        let place = add.iter().position(|other| other == name);
        let (place, column) = match place.map(|place| (place, added[place])) {
            Some((place, Added::Value(column))) => (place, column),
            _ => return Err(AnnotateError::Default { name: name.clone() }),
        };
        defaults[place] = Some(match columns.kind(column) {
            ColumnKind::Int => {
                let (name, text) = (name.clone(), text.clone());
                Default::Int(text.parse().map_err(|_| AnnotateError::DefaultKind { name, text })?)
            }
            ColumnKind::Str => Default::Str(text.clone()),
        });
    }
    Ok(defaults)
}

fn known(columns: &Columns) -> Vec<String> {
    columns.names().map(str::to_owned).collect()
}

/// One input on its way.
struct Run<'r> {
    annotator: &'r Annotator,
    decoder: Box<dyn Decoder>,
    block: Block,
    /// By cell.
    hops: Vec<Hop>,
    /// By cell, if the prefix is added.
    prefixes: Vec<Option<AnyPrefix>>,
    scratch: Vec<Hop>,
    /// By address column; empty until a row told how many there are.
    hits: Vec<Hits>,
    /// By address column, the names of what is added.
    names: Vec<Vec<String>>,
    renderer: Option<Renderer<'r>>,
    out: Vec<u8>,
    /// Line ends consumed.
    lines: u64,
    summary: Summary,
}

impl<'r> Run<'r> {
    fn new(annotator: &'r Annotator) -> Result<Self, AnnotateError> {
        Ok(Self {
            annotator,
            decoder: annotator.decoder()?,
            block: Block::default(),
            hops: Vec::new(),
            prefixes: Vec::new(),
            scratch: Vec::new(),
            hits: Vec::new(),
            names: Vec::new(),
            renderer: None,
            out: Vec::new(),
            lines: 0,
            summary: Summary::default(),
        })
    }

    fn all<R: Read>(
        &mut self,
        input: &mut Input<R>,
        output: &mut impl Write,
    ) -> Result<(), AnnotateError> {
        if self.annotator.options.format != Format::Pcap {
            self.pass_bom(input, output)?;
        }
        loop {
            let end = input.at_end();
            // The call at the very end tells decoders of an input without rows.
            if end || !input.data().is_empty() {
                let used = self.block(input.data(), end, output)?;
                self.summary.bytes_read += used as u64;
                input.consume(used);
                if used > 0 && !input.data().is_empty() {
                    continue;
                }
                if end {
                    debug_assert!(input.data().is_empty(), "a decoder left the end of the input");
                    break;
                }
            }
            if input.is_slow() {
                output.flush().map_err(AnnotateError::Write)?;
            }
            if !input.more().map_err(AnnotateError::Read)? {
                return Err(AnnotateError::TooLong { line: self.line(0, &[]), limit: MAX_RECORD });
            }
        }
        output.flush().map_err(AnnotateError::Write)
    }

    /// A byte order mark is no part of the first name or address.
    fn pass_bom<R: Read>(
        &mut self,
        input: &mut Input<R>,
        output: &mut impl Write,
    ) -> Result<(), AnnotateError> {
        while input.data().len() < BOM.len() && BOM.starts_with(input.data()) && !input.at_end() {
            input.more().map_err(AnnotateError::Read)?;
        }
        if input.data().starts_with(BOM) {
            self.write(BOM, output)?;
            input.consume(BOM.len());
            self.summary.bytes_read += BOM.len() as u64;
        }
        Ok(())
    }

    /// Annotates a block from the beginning of the data; returns how much of it was consumed.
    fn block(
        &mut self,
        data: &[u8],
        end: bool,
        output: &mut impl Write,
    ) -> Result<usize, AnnotateError> {
        self.block.clear();
        let decoded = self.decoder.decode(data, end, &mut self.block);
        if !self.block.rows.is_empty() {
            self.look_up();
            let mut out = std::mem::take(&mut self.out);
            out.clear();
            self.emit(data, &mut out);
            let written = self.write(&out, output);
            self.out = out;
            written?;
        }
        if let Some(fault) = self.block.first_fault.take() {
            self.summary.first_fault = Some(self.error(fault, data).to_string());
        }
        let used = decoded.map_err(|fault| self.error(fault, data))?;
        self.lines += count_lines(&data[..used]);
        Ok(used)
    }

    fn write(&mut self, bytes: &[u8], output: &mut impl Write) -> Result<(), AnnotateError> {
        output.write_all(bytes).map_err(AnnotateError::Write)?;
        self.summary.bytes_written += bytes.len() as u64;
        Ok(())
    }

    /// Looks up all addresses of the block.
    fn look_up(&mut self) {
        if self.renderer.is_none() {
            self.begin();
        }
        let annotator = self.annotator;
        let prefix = annotator.added.contains(&Added::Prefix);
        self.hops.clear();
        self.hops.resize(self.block.cells, Hop::NONE);
        self.prefixes.clear();
        if prefix {
            self.prefixes.resize(self.block.cells, None);
        }
        let block = std::mem::take(&mut self.block);
        if prefix {
            self.match_routes(&block.v4, AnyPrefix::V4);
            self.match_routes(&block.v6, AnyPrefix::V6);
        } else {
            self.look_up_family(&block.v4);
            self.look_up_family(&block.v6);
        }
        self.block = block;
        self.count();
    }

    /// The first row told the address columns.
    fn begin(&mut self) {
        let annotator = self.annotator;
        let names = self.decoder.names();
        self.names = names
            .iter()
            .map(|name| annotator.add.iter().map(|add| added_name(name, add)).collect())
            .collect();
        let columns = annotator.table.columns();
        let style = annotator.style();
        self.renderer =
            Some(Renderer::new(columns, &annotator.added, &annotator.defaults, style, &self.names));
        if annotator.options.top > 0 {
            let prefix = annotator.added.contains(&Added::Prefix);
            self.hits = names.iter().map(|_| Hits::new(&*annotator.table, prefix)).collect();
        }
    }

    fn look_up_family<A: Family>(&mut self, keys: &Keys<A>) {
        self.scratch.clear();
        self.scratch.resize(keys.addrs.len(), Hop::NONE);
        let engine = A::in_table(&*self.annotator.table).engine();
        engine.lookup_batch(&keys.addrs, &mut self.scratch);
        let unmatched = self.unmatched();
        for (&cell, &hop) in keys.cells.iter().zip(&self.scratch) {
            self.hops[cell as usize] = hop.min(unmatched);
        }
    }

    /// Where the prefix is asked for, its route says the hop too.
    fn match_routes<A: Family>(&mut self, keys: &Keys<A>, any: fn(Prefix<A>) -> AnyPrefix) {
        self.scratch.clear();
        self.scratch.resize(keys.addrs.len(), Hop::NONE);
        let family = A::in_table(&*self.annotator.table);
        family.numbers(&keys.addrs, &mut self.scratch);
        let routes = family.routes();
        let (slots, unmatched) = (self.names.len(), self.unmatched());
        for (&found, &cell) in self.scratch.iter().zip(&keys.cells) {
            let index = found.to_bits() as usize;
            self.hops[cell as usize] = unmatched;
            if index < routes.len() {
                let route = routes.get(index);
                self.hops[cell as usize] = route.hop;
                self.prefixes[cell as usize] = Some(any(route.prefix));
                if let Some(hits) = self.hits.get_mut(cell as usize % slots) {
                    hits.route::<A>(index);
                }
            }
        }
    }

    /// The hop of an address that nothing covers, behind those of the rows; cells without an address
    /// have none.
    fn unmatched(&self) -> Hop {
        Hop::new(self.annotator.table.columns().len())
    }

    fn count(&mut self) {
        let (v4, v6) = (self.block.v4.addrs.len() as u64, self.block.v6.addrs.len() as u64);
        self.summary.v4 += v4;
        self.summary.addresses += v4 + v6;
        let (slots, unmatched) = (self.names.len(), self.unmatched());
        for row in self.hops.chunks(slots.max(1)) {
            for (slot, &hop) in row.iter().enumerate() {
                self.summary.matched += u64::from(hop < unmatched);
                if let Some(hits) = self.hits.get_mut(slot) {
                    hits.hop(hop);
                }
            }
        }
    }

    /// Writes the rows of the block to memory.
    fn emit(&mut self, data: &[u8], out: &mut Vec<u8>) {
        let Some(renderer) = &mut self.renderer else { return };
        let block = &self.block;
        let source = if self.decoder.writes_rows() { &block.text } else { data };
        let slots = self.names.len();
        // Rows have no gaps between them, so what lies between two places of insertion is one run.
        debug_assert!(block.rows.windows(2).all(|pair| pair[0].end == pair[1].start));
        let (mut copied, mut cell) = (0, 0);
        for row in &block.rows {
            out.extend_from_slice(&source[copied..row.insert]);
            copied = row.insert;
            match row.kind {
                Kind::Pass => {}
                Kind::Header => renderer.header(&self.names, out),
                Kind::Annotate | Kind::AnnotateEmpty => {
                    let from = out.len();
                    renderer.pad(row.pad, out);
                    for slot in 0..slots {
                        let prefix = self.prefixes.get(cell + slot).copied().flatten();
                        renderer.values(slot, self.hops[cell + slot], prefix, out);
                    }
                    cell += slots;
                    if row.kind == Kind::AnnotateEmpty && from < out.len() {
                        out.remove(from);
                    }
                }
            }
        }
        let end = block.rows.last().map_or(0, |row| row.end);
        out.extend_from_slice(&source[copied..end]);
    }

    /// The line of an offset.
    fn line(&self, at: usize, data: &[u8]) -> u64 {
        self.lines + count_lines(&data[..at]) + 1
    }

    fn error(&self, fault: Fault, data: &[u8]) -> AnnotateError {
        match fault {
            Fault::Options(error) => error,
            Fault::Record { at, what } => AnnotateError::Record { line: self.line(at, data), what },
            Fault::Packet { at, number, what } => AnnotateError::Packet {
                packet: number,
                offset: self.summary.bytes_read + at as u64,
                what,
            },
            Fault::Unparsable { at, slot, text } => AnnotateError::Unparsable {
                line: self.line(at, data),
                column: self.decoder.names().get(slot).cloned().unwrap_or_default(),
                text: String::from_utf8_lossy(&text).chars().take(60).collect(),
            },
        }
    }

    fn finish(mut self) -> Summary {
        let tally = self.block.tally;
        let mut summary = std::mem::take(&mut self.summary);
        summary.rows = tally.rows;
        summary.unparsable = tally.unparsable;
        summary.empty = tally.empty;
        summary.damaged = tally.damaged;
        summary.truncated = tally.truncated;
        summary.unmatched = summary.addresses - summary.matched;
        let limit = self.annotator.options.top;
        for (hits, names) in self.hits.iter().zip(&self.names) {
            for (&added, name) in self.annotator.added.iter().zip(names) {
                summary.top.push(hits.top(&*self.annotator.table, added, name.clone(), limit));
            }
        }
        summary
    }
}

fn count_lines(data: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', data).count() as u64
}

//! Reads Arrow IPC files and streams, message by message.
//!
//! The framing is read here instead of by a library, because lengths must be bounded before memory is allocated: the
//! buffer of a message grows with the bytes that are read, not with the length that the message announces.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::reader::{read_dictionary, read_footer_length, read_record_batch};
use arrow_ipc::{
    Block, Message, MessageHeader, Schema as StoredSchema, root_as_footer_with_opts,
    root_as_message_with_opts,
};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use flatbuffers::{InvalidFlatbuffer, VerifierOptions};

use super::check;
use super::room::Room;
use crate::AnnotateError;
use crate::files::guard::{broken, damaged, guarded};

/// The maximum bytes of metadata in a message. The schema of a hundred thousand columns has fewer.
const MAX_METADATA: u64 = 64 << 20;

/// Marks the beginning of a message; files before version 0.15 of the format have none.
const CONTINUATION: u32 = u32::MAX;

/// The bytes at the end of a file: the length of the footer and the magic number.
const TRAILER: u64 = 10;

/// The schema and the dictionaries, to which messages refer.
pub(in crate::files) struct Context {
    pub(in crate::files) schema: SchemaRef,
    dictionaries: HashMap<i64, ArrayRef>,
    room: Room,
    /// Number of messages with batches, and with dictionaries, so far.
    messages: [u64; 2],
}

impl Context {
    fn new(stored: StoredSchema<'_>, limit: Option<u64>) -> Result<Self, AnnotateError> {
        if !stored.endianness().equals_to_target_endianness() {
            return Err(AnnotateError::File {
                what: "the file has the other byte order than this machine".to_owned(),
            });
        }
        let schema = guarded(|| Ok::<Schema, AnnotateError>(fb_to_schema(stored)))?;
        let (schema, dictionaries) = (Arc::new(schema), HashMap::new());
        Ok(Self { schema, dictionaries, room: Room::new(limit), messages: [0; 2] })
    }

    /// Reads a message: returns a batch, or keeps a dictionary.
    fn message(
        &mut self,
        message: Message<'_>,
        body: Vec<u8>,
    ) -> Result<Option<RecordBatch>, AnnotateError> {
        let version = message.version();
        if let Some(batch) = message.header_as_record_batch() {
            self.messages[0] += 1;
            let size = check::batch(batch, &body)?;
            self.room.check(format_args!("record batch {}", self.messages[0]), size)?;
            let (body, schema) = (Buffer::from_vec(body), Arc::clone(&self.schema));
            let read =
                || read_record_batch(&body, batch, schema, &self.dictionaries, None, &version);
            return guarded(read).map(Some);
        }
        if let Some(dictionary) = message.header_as_dictionary_batch() {
            let batch = dictionary.data().ok_or_else(|| broken("a dictionary without values"))?;
            self.messages[1] += 1;
            let size = check::batch(batch, &body)?;
            self.room.check(format_args!("dictionary batch {}", self.messages[1]), size)?;
            let (body, known) = (Buffer::from_vec(body), &mut self.dictionaries);
            guarded(|| read_dictionary(&body, dictionary, &self.schema, known, &version))?;
            self.room.keep(dictionary.id(), size, dictionary.isDelta());
            return Ok(None);
        }
        match message.header_type() {
            MessageHeader::NONE => Ok(None),
            other => Err(broken(format_args!("a message of type {other:?} among the batches"))),
        }
    }
}

/// The batches of a file, located by its footer.
pub(in crate::files) struct FileBatches<R> {
    reader: R,
    pub(in crate::files) context: Context,
    /// The batches that are still to be read, last first.
    blocks: Vec<Block>,
}

impl<R: Read + Seek> FileBatches<R> {
    /// `limit` is the maximum number of bytes of a batch, unpacked, with the dictionaries.
    pub(in crate::files) fn new(mut reader: R, limit: Option<u64>) -> Result<Self, AnnotateError> {
        let len = reader.seek(SeekFrom::End(0)).map_err(AnnotateError::Read)?;
        if len < TRAILER {
            return Err(broken(format_args!("{len} bytes are no Arrow file")));
        }
        let trailer: [u8; TRAILER as usize] = read_at(&mut reader, len - TRAILER, TRAILER)?
            .try_into()
            .map_err(|_| broken("it has no end"))?;
        let footer_len = read_footer_length(trailer)? as u64;
        let Some(footer_at) = (len - TRAILER).checked_sub(footer_len) else {
            return Err(broken(format_args!("a footer of {footer_len} bytes in {len}")));
        };
        let footer = read_at(&mut reader, footer_at, footer_len)?;
        let footer = verified(root_as_footer_with_opts(&verifier(footer.len()), &footer))?;
        let schema = footer.schema().ok_or_else(|| broken("its footer has no schema"))?;
        let context = Context::new(schema, limit)?;
        let blocks: Vec<Block> = footer.recordBatches().into_iter().flatten().copied().collect();
        let dictionaries: Vec<Block> =
            footer.dictionaries().into_iter().flatten().copied().collect();
        check_blocks(dictionaries.iter().chain(&blocks), footer_at)?;
        let mut batches = Self { reader, context, blocks: blocks.into_iter().rev().collect() };
        for block in &dictionaries {
            batches.block(block)?;
        }
        Ok(batches)
    }

    /// Reads a block whose range was checked.
    fn block(&mut self, block: &Block) -> Result<Option<RecordBatch>, AnnotateError> {
        let (at, metadata_len) = (block.offset() as u64, block.metaDataLength() as u64);
        let metadata = read_at(&mut self.reader, at, metadata_len)?;
        let body_len = block.bodyLength() as u64;
        self.context.room.check_stored("a batch", body_len)?;
        let body = read_at(&mut self.reader, at + metadata_len, body_len)?;
        // Skip the continuation mark, if there is one, and the length.
        let skip = match metadata.first_chunk() {
            Some(mark) if u32::from_le_bytes(*mark) == CONTINUATION => 8,
            _ => 4,
        };
        let metadata = metadata.get(skip..).unwrap_or_default();
        let message = verified(root_as_message_with_opts(&verifier(metadata.len()), metadata))?;
        self.context.message(message, body)
    }
}

impl<R: Read + Seek> Iterator for FileBatches<R> {
    type Item = Result<RecordBatch, AnnotateError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let block = self.blocks.pop()?;
            match self.block(&block) {
                Ok(None) => {}
                found => return found.transpose(),
            }
        }
    }
}

/// Checks that every block lies before the footer, and that the blocks together are not longer than the bytes there.
fn check_blocks<'b>(
    blocks: impl Iterator<Item = &'b Block>,
    end: u64,
) -> Result<(), AnnotateError> {
    let mut left = end;
    for block in blocks {
        let number = |number: i64| u64::try_from(number).ok();
        let len = number(block.metaDataLength().into())
            .zip(number(block.bodyLength()))
            .and_then(|(metadata, body)| metadata.checked_add(body));
        let behind = number(block.offset()).zip(len).and_then(|(at, len)| at.checked_add(len));
        left = match (behind, len.and_then(|len| left.checked_sub(len))) {
            (Some(behind), Some(left)) if behind <= end => left,
            _ => {
                return Err(broken(format_args!(
                    "its footer places {} + {} bytes at byte {}, of {end} in all",
                    block.metaDataLength(),
                    block.bodyLength(),
                    block.offset()
                )));
            }
        };
    }
    Ok(())
}

/// The options for verifying metadata of this length. Its parts may overlap (tables share lists of offsets), but names
/// and tables that many fields share would be copied for each of them.
fn verifier(len: usize) -> VerifierOptions {
    let max_apparent_size = len.saturating_mul(4).saturating_add(1 << 10);
    VerifierOptions { max_apparent_size, ..VerifierOptions::default() }
}

fn verified<T>(root: Result<T, InvalidFlatbuffer>) -> Result<T, AnnotateError> {
    root.map_err(|error| damaged(format_args!("{error}")))
}

fn read_at(reader: &mut (impl Read + Seek), at: u64, len: u64) -> Result<Vec<u8>, AnnotateError> {
    reader.seek(SeekFrom::Start(at)).map_err(AnnotateError::Read)?;
    read(reader, len)
}

/// Reads `len` bytes. Memory grows with the bytes that are read.
fn read(reader: &mut impl Read, len: u64) -> Result<Vec<u8>, AnnotateError> {
    let mut bytes = Vec::with_capacity(len.min(1 << 20) as usize);
    let found = reader.take(len).read_to_end(&mut bytes).map_err(AnnotateError::Read)?;
    if (found as u64) < len {
        return Err(broken(format_args!("it ends {} bytes early", len - found as u64)));
    }
    Ok(bytes)
}

/// The batches of a stream, as they arrive.
pub(in crate::files) struct StreamBatches<R> {
    reader: R,
    pub(in crate::files) context: Context,
    ended: bool,
}

impl<R: Read> StreamBatches<R> {
    /// `limit` is the maximum number of bytes of a batch, unpacked, with the dictionaries.
    pub(in crate::files) fn new(mut reader: R, limit: Option<u64>) -> Result<Self, AnnotateError> {
        let Some(metadata) = metadata(&mut reader)? else {
            return Err(broken("it is empty"));
        };
        let message = verified(root_as_message_with_opts(&verifier(metadata.len()), &metadata))?;
        let schema = message.header_as_schema().ok_or_else(|| broken("it has no schema"))?;
        let context = Context::new(schema, limit)?;
        body(&mut reader, message, &context.room)?;
        Ok(Self { reader, context, ended: false })
    }

    /// Reads the next message. Returns its batch if it has one; the outer `None` is the end of the stream.
    fn message(&mut self) -> Result<Option<Option<RecordBatch>>, AnnotateError> {
        let Some(metadata) = metadata(&mut self.reader)? else { return Ok(None) };
        let message = verified(root_as_message_with_opts(&verifier(metadata.len()), &metadata))?;
        let body = body(&mut self.reader, message, &self.context.room)?;
        self.context.message(message, body).map(Some)
    }
}

impl<R: Read> Iterator for StreamBatches<R> {
    type Item = Result<RecordBatch, AnnotateError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            match self.message() {
                Ok(Some(None)) => {}
                Ok(Some(Some(batch))) => return Some(Ok(batch)),
                Ok(None) => self.ended = true,
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

/// The metadata of the next message; `None` at the end, with or without an end marker.
fn metadata(reader: &mut impl Read) -> Result<Option<Vec<u8>>, AnnotateError> {
    let Some(mut len) = word(reader)? else { return Ok(None) };
    if len == CONTINUATION {
        len = word(reader)?.ok_or_else(|| broken("it ends within a message"))?;
    }
    match u64::from(len) {
        0 => Ok(None),
        len @ 1..=MAX_METADATA => read(reader, len).map(Some),
        len => Err(broken(format_args!("{len} bytes of metadata in a message"))),
    }
}

/// Reads a four-byte number; `None` at the end.
fn word(reader: &mut impl Read) -> Result<Option<u32>, AnnotateError> {
    let mut bytes = [0; 4];
    let mut read = 0;
    while read < bytes.len() {
        match reader.read(&mut bytes[read..]) {
            Ok(0) if read == 0 => return Ok(None),
            Ok(0) => return Err(broken("it ends within a message")),
            Ok(more) => read += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(AnnotateError::Read(error)),
        }
    }
    Ok(Some(u32::from_le_bytes(bytes)))
}

fn body(
    reader: &mut impl Read,
    message: Message<'_>,
    room: &Room,
) -> Result<Vec<u8>, AnnotateError> {
    match u64::try_from(message.bodyLength()) {
        Ok(len) => {
            room.check_stored("a batch", len)?;
            read(reader, len)
        }
        Err(_) => Err(broken(format_args!("a body of {} bytes", message.bodyLength()))),
    }
}

impl From<ArrowError> for AnnotateError {
    fn from(error: ArrowError) -> Self {
        damaged(error)
    }
}

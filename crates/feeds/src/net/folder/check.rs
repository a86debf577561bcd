//! Reads a file before it is taken: a file that is damaged as a whole must leave nothing in the table.

use std::io::Read;
use std::ops::ControlFlow;

use fibula_core::Update;
use fibula_ingest::{Compression, Damage, Decoder, DriveError, Driver, PullResult, Sink, Tail};

use super::LONGEST_RECORD;

/// Decodes all of a file and passes nothing on.
///
/// Fatal are the faults that are fatal to `fibula build`: damage of the archive, since a failed checksum does not say
/// which bytes are wrong, and records most of which are damaged. So is a last record that is cut, because a file that
/// is complete ends with a record. Other damaged records are skipped when the file is taken.
///
/// # Errors
/// The fault, with the byte of the content behind which it is.
pub(super) fn check(
    (compression, mut input): (Compression, impl Read),
    decoder: Box<dyn Decoder>,
) -> Result<(), String> {
    let (mut driver, mut seen) = (Driver::new(decoder, LONGEST_RECORD), Seen::default());
    loop {
        let why = match driver.pull(&mut input, &mut seen) {
            Ok(PullResult::Bytes(_) | PullResult::Paused) => continue,
            Ok(PullResult::End) => break,
            Err(DriveError::Io(error)) => match compression {
                Compression::None => error.to_string(),
                _ => format!("the {compression} archive is damaged or cut short: {error}"),
            },
            Err(error) => error.to_string(),
        };
        return Err(format!("behind byte {}: {why}", driver.offset()));
    }
    let (offset, left, damaged) = (driver.offset(), driver.pending().len(), seen.damaged);
    let ended = driver.finish(Tail::End, &mut seen).map_err(|error| error.to_string());
    let is_cut = seen.damaged > damaged || !driver.pending().is_empty();
    match ended {
        Err(why) => Err(format!("behind byte {offset}: {why}")),
        Ok(_) if is_cut => {
            Err(format!("behind byte {offset}: its last record is cut: {left} bytes are left"))
        }
        Ok(_) => seen.verdict(driver.records()),
    }
}

/// What a file has.
#[derive(Default)]
struct Seen {
    damaged: u64,
    first: Option<Damage>,
}

impl Seen {
    fn verdict(self, records: u64) -> Result<(), String> {
        match self.first {
            Some(first) if self.damaged > records / 2 => Err(format!(
                "{} of {records} records are damaged; the first is record {}, byte {}: {}",
                self.damaged, first.record, first.offset, first.what
            )),
            _ => Ok(()),
        }
    }
}

impl Sink for Seen {
    fn update(&mut self, _: &Update<'_>) {}

    fn damage(&mut self, damage: &Damage) -> ControlFlow<()> {
        self.damaged += 1;
        self.first.get_or_insert_with(|| damage.clone());
        ControlFlow::Continue(())
    }
}

//! What a file must pass before it replaces the one before it.

use std::ops::ControlFlow;
use std::path::Path;

use fibula_core::Update;
use fibula_fetch::{FetchError, FetchWatch, FileUse};
use fibula_ingest::{Damage, Sink};
use fibula_rib::{AnySnapshot, Loading};

use crate::failure::Failure;
use crate::progress::{Bar, note};
use crate::source::{ReadArgs, Source};

/// Shows a transfer, and checks its file.
pub struct Checking<'a> {
    name: &'a str,
    file_use: FileUse,
    read: &'a ReadArgs,
    bar: Option<Bar>,
}

impl<'a> Checking<'a> {
    pub fn new(name: &'a str, file_use: FileUse, read: &'a ReadArgs) -> Self {
        Self { name, file_use, read, bar: None }
    }
}

impl FetchWatch for Checking<'_> {
    fn progress(&mut self, bytes: u64, of: Option<u64>) {
        self.bar.get_or_insert_with(|| Bar::new(self.name)).show_transfer(bytes, of);
    }

    fn waits(&mut self) {
        note(format_args!("{}: another process is fetching it, waiting", self.name));
    }

    fn again(&mut self, error: &FetchError) {
        self.bar = None; // the bar must be removed before a message is printed
        note(format_args!("{error}; trying again"));
    }

    fn check(&mut self, path: &Path) -> Result<(), String> {
        self.bar = None;
        let checked = match self.file_use {
            FileUse::Table => table(path, self.read),
            FileUse::Vrps => fibula_rpki::read(path, false).map(drop).map_err(Failure::from),
            FileUse::Any => Ok(()),
        };
        checked.map_err(|failure| failure.to_string())
    }
}

/// Reads a table to its end, with the options of the command.
fn table(path: &Path, read: &ReadArgs) -> Result<(), Failure> {
    let text = path.to_str().ok_or_else(|| Failure::new("the cache's folder is not UTF-8"))?;
    match Source::parse(text)? {
        Source::Snapshot(path) => {
            AnySnapshot::open_with(&path, Loading::Read)?;
        }
        _ => {
            let mut spec = read.spec(path);
            // Where it lies now is of no interest to the reader of a message.
            spec.name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            fibula_ingest::read(&spec, &mut read.decoder()?, &mut Nothing)?;
        }
    }
    Ok(())
}

/// Takes updates, and keeps none.
struct Nothing;

impl Sink for Nothing {
    fn update(&mut self, _: &Update<'_>) {}

    fn damage(&mut self, _: &Damage) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

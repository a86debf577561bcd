//! `fibula lookup --history`: the matches of addresses over time, from a file of several dates.

use fibula_fib::{DatedFib, EngineChoice};

use super::print::Printer;
use super::{Args, Subject, question};
use crate::failure::{Failure, Outcome};
use crate::source;
use crate::table;

/// Prints a line for each change of an address's match.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    let fib = open(args)?;
    let mut printer = Printer::history(args, fib.columns())?;
    let mut missed = false;
    for text in &args.questions {
        let address = match question(text) {
            Ok(Subject::Address(address)) => address,
            Ok(Subject::Prefix(_)) => {
                return Err(Failure::new(format_args!("{text}: --history is for addresses"))
                    .hint("give an address inside the prefix"));
            }
            Err(what) => return Err(Failure::new(what)),
        };
        let mut any = false;
        for (date, found) in fib.history(address) {
            let since = fib.dates().tables()[usize::from(date)].at;
            any |= found.is_some();
            printer.change(address, since, found.as_ref())?;
        }
        missed |= !any;
    }
    printer.flush()?;
    fib.snapshot().unchanged()?;
    Ok(if missed { Outcome::Negative } else { Outcome::Done })
}

/// The lookup for a few addresses. It needs no engine.
fn open(args: &Args) -> Result<DatedFib, Failure> {
    let options = crate::engines::options([EngineChoice::Search]).loading(args.read.load);
    let sources = source::tables(&args.table, &args.read)?;
    table::open_dated(&sources, &options)?.ok_or_else(|| {
        Failure::new("--history needs one file of several dates: --table year.fib")
            .hint("fibula build --as-of FILES -o year.fib writes one")
    })
}

//! `fibula completions` and `fibula man`: descriptions of the commands for shells and manuals.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, Command};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::failure::{Failure, Outcome};
use crate::output::{self, Output};
use crate::progress::note;

const COMPLETIONS: &str = "\
Examples:
  fibula completions bash > /etc/bash_completion.d/fibula
  fibula completions zsh > ~/.zfunc/_fibula
  fibula completions fish > ~/.config/fish/completions/fibula.fish";

/// Print the completion script for a shell
#[derive(ClapArgs, Debug)]
#[command(after_help = COMPLETIONS)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

const MAN: &str = "\
Examples:
  fibula man /usr/local/share/man/man1
  fibula man . && man ./fibula-lookup.1

Writes fibula.1 and a page for each command, such as fibula-lookup.1.";

/// Write manual pages into a directory
#[derive(ClapArgs, Debug)]
#[command(after_help = MAN)]
pub struct ManArgs {
    /// The directory; it is created if it does not exist
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Runs `fibula completions`.
pub fn completions(args: &CompletionsArgs, mut command: Command) -> Result<Outcome, Failure> {
    // The generator panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "fibula", &mut script);
    let mut out = output::stdout();
    out.write_all(&script)?;
    out.flush()?;
    Ok(Outcome::Done)
}

/// Runs `fibula man`.
pub fn man(args: &ManArgs, command: Command) -> Result<Outcome, Failure> {
    let folder = &args.folder;
    std::fs::create_dir_all(folder).map_err(|error| Failure::io(folder.display(), &error))?;
    let mut command = command.disable_help_subcommand(true);
    // Gives each command its whole name, as its page is called.
    command.build();
    let count = pages(&command, folder)?;
    note(format_args!("{}: {count} pages", folder.display()));
    Ok(Outcome::Done)
}

/// Writes the pages of a command and of those below it; returns how many.
fn pages(command: &Command, folder: &Path) -> Result<usize, Failure> {
    let page = Man::new(command.clone());
    let mut out = Output::create(&folder.join(page.get_filename()))?;
    page.render(&mut out)?;
    out.finish()?;
    let inner = command.get_subcommands().map(|inner| pages(inner, folder));
    Ok(1 + inner.sum::<Result<usize, Failure>>()?)
}

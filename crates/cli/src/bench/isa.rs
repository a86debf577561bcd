//! Instruction sets as the command line names them.

use fibula_simd::Isa;

use crate::progress::note;

/// An instruction set, or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsaChoice {
    All,
    One(Isa),
}

pub fn parse_isa(text: &str) -> Result<IsaChoice, String> {
    match text {
        "all" => Ok(IsaChoice::All),
        _ => text
            .parse()
            .map(IsaChoice::One)
            .map_err(|error: fibula_simd::IsaError| error.to_string()),
    }
}

/// The requested instruction sets that this machine has; `otherwise` if none was requested for.
pub fn isas(choices: &[IsaChoice], otherwise: Vec<Isa>) -> Vec<Isa> {
    if choices.is_empty() {
        return otherwise;
    }
    let wanted = |isa: &Isa| {
        choices.iter().any(|c| matches!(c, IsaChoice::All) || *c == IsaChoice::One(*isa))
    };
    for choice in choices {
        if let IsaChoice::One(isa) = choice
            && !isa.is_supported()
        {
            note(format_args!("{isa}: this machine does not have it, skipped"));
        }
    }
    Isa::available().into_iter().filter(wanted).collect()
}

use std::fmt;
use std::str::FromStr;

use crate::Level;

/// The environment variable that forces an instruction set.
const FORCE: &str = "FIBULA_ISA";

/// An instruction set for which fibula has kernels. Instruction sets are not ordered: [`Isa::forms`] tells which of
/// them a machine with this one can run.
///
/// ```
/// use fibula_simd::Isa;
/// assert!(Isa::available().contains(&Isa::Scalar));
/// assert!(Isa::detect().is_supported());
/// assert_eq!("avx2".parse(), Ok(Isa::Avx2));
/// assert_eq!(Isa::Avx512.best_of(&[Isa::Scalar, Isa::Avx2]), Isa::Avx2);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isa {
    /// Plain integer instructions, on every machine.
    Scalar,
    /// AVX2 with BMI and POPCNT: x86-64-v3, about every x86 server since 2013.
    Avx2,
    /// AVX-512 F, BW, CD, DQ and VL: x86-64-v4.
    Avx512,
    /// NEON with the CRC32 instructions: every 64-bit ARM server.
    Neon,
}

impl Isa {
    /// All of them, whether this machine has them or not. If a machine has two of them, the later one is better.
    pub const ALL: [Self; 4] = [Self::Scalar, Self::Avx2, Self::Avx512, Self::Neon];

    /// The instruction sets that a machine with this one can run, best first: this one, the ones that it includes,
    /// and the scalar one.
    pub const fn forms(self) -> &'static [Self] {
        match self {
            Self::Scalar => &[Self::Scalar],
            Self::Avx2 => &[Self::Avx2, Self::Scalar],
            Self::Avx512 => &[Self::Avx512, Self::Avx2, Self::Scalar],
            Self::Neon => &[Self::Neon, Self::Scalar],
        }
    }

    /// The best of these forms for a machine with this instruction set; the scalar one if none of them can run.
    #[must_use]
    pub fn best_of(self, forms: &[Self]) -> Self {
        self.forms().iter().copied().find(|form| forms.contains(form)).unwrap_or(Self::Scalar)
    }

    /// The best instruction set of this machine.
    pub fn best() -> Self {
        Self::available().pop().unwrap_or(Self::Scalar)
    }

    /// The best instruction set of this machine, unless `FIBULA_ISA` forces another one. If the machine does not have
    /// that one, the result is the best of its [`Isa::forms`]. An unknown word is ignored, see [`Isa::forced`].
    pub fn detect() -> Self {
        Self::forced().ok().flatten().map_or_else(Self::best, |isa| isa.level().isa())
    }

    /// The value of `FIBULA_ISA`; `None` if it is unset or empty.
    ///
    /// # Errors
    /// If the variable is set to an unknown word.
    pub fn forced() -> Result<Option<Self>, IsaError> {
        match std::env::var_os(FORCE) {
            Some(word) if !word.is_empty() => word.to_string_lossy().parse().map(Some),
            _ => Ok(None),
        }
    }

    /// The instruction sets that this machine has, in the order of [`Isa::ALL`].
    pub fn available() -> Vec<Self> {
        Self::ALL.into_iter().filter(|isa| isa.is_supported()).collect()
    }

    /// Whether this machine has it.
    pub fn is_supported(self) -> bool {
        self.level().isa() == self
    }

    /// The proof that kernels may use this instruction set, or on a machine that lacks it the best of
    /// its [`Isa::forms`].
    pub fn level(self) -> Level {
        Level::new(self)
    }

    /// `"scalar"`, `"avx2"`, `"avx512"` or `"neon"`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Neon => "neon",
        }
    }
}

impl Default for Isa {
    /// [`Isa::detect`].
    fn default() -> Self {
        Self::detect()
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Isa {
    type Err = IsaError;

    fn from_str(word: &str) -> Result<Self, IsaError> {
        Self::ALL
            .into_iter()
            .find(|isa| isa.name() == word)
            .ok_or_else(|| IsaError { word: word.to_owned() })
    }
}

/// A word that names no instruction set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IsaError {
    word: String,
}

impl IsaError {
    /// The word.
    pub fn word(&self) -> &str {
        &self.word
    }
}

impl fmt::Display for IsaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown instruction set {:?}: use scalar, avx2, avx512 or neon", self.word)
    }
}

impl std::error::Error for IsaError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for isa in Isa::ALL {
            assert_eq!(isa.to_string().parse(), Ok(isa));
        }
        assert_eq!("AVX2".parse::<Isa>().unwrap_err().word(), "AVX2");
    }

    /// Every form is one that the machine runs, once, the scalar one last.
    #[test]
    fn forms_end_with_the_scalar_one() {
        for isa in Isa::ALL {
            let forms = isa.forms();
            assert_eq!((forms.first(), forms.last()), (Some(&isa), Some(&Isa::Scalar)));
            for (i, form) in forms.iter().enumerate() {
                assert!(form.forms().iter().all(|below| forms[i..].contains(below)));
                assert!(!forms[..i].contains(form));
                assert!(form.is_supported() || !isa.is_supported());
            }
        }
    }

    #[test]
    fn levels_are_supported_forms() {
        for isa in Isa::ALL {
            let level = isa.level().isa();
            assert!(isa.forms().contains(&level) && level.is_supported());
            assert_eq!(level == isa, Isa::available().contains(&isa));
        }
        assert_eq!(Isa::Avx512.best_of(&[Isa::Scalar]), Isa::Scalar);
        assert_eq!(Isa::Avx512.best_of(&[Isa::Scalar, Isa::Avx2]), Isa::Avx2);
        assert_eq!(Isa::Avx2.best_of(&[Isa::Avx512]), Isa::Scalar);
        assert!(Isa::best().is_supported());
    }
}

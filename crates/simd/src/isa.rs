use std::fmt;
use std::str::FromStr;

use crate::Level;

/// The environment variable that forces an instruction set.
const FORCE: &str = "FIBULA_ISA";

/// An instruction set that fibula has kernels for, from the least to the most capable.
///
/// ```
/// use fibula_simd::Isa;
/// assert!(Isa::available().contains(&Isa::Scalar));
/// assert!(Isa::detect().is_supported());
/// assert_eq!("avx2".parse(), Ok(Isa::Avx2));
/// assert!(Isa::Scalar < Isa::Avx512);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Isa {
    /// Plain integer instructions, on every machine.
    Scalar,
    /// AVX2 with BMI and POPCNT: x86-64-v3, about every x86 server since 2013.
    Avx2,
    /// AVX-512 F, BW, CD, DQ and VL: x86-64-v4.
    Avx512,
}

impl Isa {
    /// All of them, whether this machine has them or not.
    pub const ALL: [Self; 3] = [Self::Scalar, Self::Avx2, Self::Avx512];

    /// The best that this machine has, unless `FIBULA_ISA` forces another. Forcing one that the
    /// machine lacks gives the best below it; an unknown word is ignored, see [`Isa::forced`].
    pub fn detect() -> Self {
        Self::forced().ok().flatten().unwrap_or(Self::Avx512).supported_or_below()
    }

    /// What `FIBULA_ISA` asks for, `None` if it is unset or empty.
    ///
    /// # Errors
    /// If the variable is set to an unknown word.
    pub fn forced() -> Result<Option<Self>, IsaError> {
        match std::env::var_os(FORCE) {
            Some(word) if !word.is_empty() => word.to_string_lossy().parse().map(Some),
            _ => Ok(None),
        }
    }

    /// The instruction sets that this machine has, least capable first.
    pub fn available() -> Vec<Self> {
        Self::ALL.into_iter().filter(|isa| isa.is_supported()).collect()
    }

    /// Whether this machine has it.
    pub fn is_supported(self) -> bool {
        self.level().isa() == self
    }

    /// The best instruction set of this machine that is not above this one.
    #[must_use]
    pub fn supported_or_below(self) -> Self {
        self.level().isa()
    }

    /// The proof that kernels may use this instruction set, or the best below it on a machine that
    /// lacks it.
    pub fn level(self) -> Level {
        Level::new(self)
    }

    /// `"scalar"`, `"avx2"` or `"avx512"`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
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
        write!(f, "unknown instruction set {:?}: use scalar, avx2 or avx512", self.word)
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

    #[test]
    fn below_is_always_supported() {
        for isa in Isa::ALL {
            let below = isa.supported_or_below();
            assert!(below <= isa && below.is_supported());
        }
        assert!(Isa::available().is_sorted());
    }
}

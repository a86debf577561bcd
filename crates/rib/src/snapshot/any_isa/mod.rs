//! Damaged and forged files. No kernel runs.

mod dated;
mod one;

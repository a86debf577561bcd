//! Tests of single baselines. The suite that every engine passes, these too, is in the tests of `fibula-engines`.

mod expansion;
#[path = "../../engines/tests/real/mod.rs"]
mod real;

//! Tests that run no kernel, or hardly any: their result does not depend on `FIBULA_ISA`.

mod damaged;

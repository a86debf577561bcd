//! The native part of the jar: lookups in tables that `fibula build` wrote, for the Java virtual machine.
//!
//! Each function exists twice: with a plain C name for Java's foreign functions (Java 22 and later), and with the name
//! and the two leading arguments of JNI for older versions. All arguments are numbers; texts and arrays lie in memory
//! that Java lends by its address. `calls` has these functions and all `unsafe`, `table` computes what they return, and
//! `watch` says when a table's file is looked at again. `docs/jvm.md` is what users read.

mod calls;
mod error;
mod table;
mod watch;

//! The DuckDB extension: lookups in tables that `fibula build` wrote, as functions of SQL.
//!
//! It uses the stable part of DuckDB's C API for extensions, so one library is loaded by DuckDB 1.2 and later. `host` is the
//! only part that calls DuckDB and has `unsafe`; `answers` computes what the functions return, `tables` keeps tables open.
//! `docs/duckdb.md` is what users read.

mod address;
mod answers;
mod host;
mod tables;

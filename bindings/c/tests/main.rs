//! What C programs see: the header, and a program in C that uses all of it.

mod header;
mod program;

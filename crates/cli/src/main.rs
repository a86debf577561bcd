//! The fibula command.
fn main() {}

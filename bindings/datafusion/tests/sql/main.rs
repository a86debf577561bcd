//! The functions in DataFusion.

mod common;
mod rows;
mod sqllogic;

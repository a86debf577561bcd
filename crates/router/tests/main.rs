//! Tests of the router.

mod control;

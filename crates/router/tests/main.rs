//! Tests of the router.

mod forward;

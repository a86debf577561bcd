//! Tests of the router.

mod pipeline;

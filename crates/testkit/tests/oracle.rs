//! The suite on the oracle itself: it must accept what is right, whatever the tables.

use fibula_testkit::{Oracle, conform, conforms};

conforms!(v4, u32, vec![("oracle".to_owned(), conform::builder::<u32, Oracle<u32>>(()))]);
conforms!(v6, u128, vec![("oracle".to_owned(), conform::builder::<u128, Oracle<u128>>(()))]);

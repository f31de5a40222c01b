//! Sessions: what a connection's statements run in.

pub mod api;

//! The two ways in which a query is run: as fast as memory allows, or with operators that spill.

/// Which operators a query is run with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// The fastest: some of them, such as hash joins, have to fit into memory.
    InMemory,
    /// Those that spill, on one thread: sorts and merges for what the others keep in hash tables.
    Spilling,
}

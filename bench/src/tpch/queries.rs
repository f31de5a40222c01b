//! TPC-H's 22 queries with the specification's validation parameters, in SQL that MySQL, MariaDB and DuckDB all take.

/// A query and what its ORDER BY fixes.
pub struct Query {
    pub number: usize,
    pub sql: &'static str,
    /// The columns that its ORDER BY names, counted from 0: rows that are equal in them may come in any order.
    pub sorted_by: &'static [usize],
}

macro_rules! query {
    ($number:literal, $file:literal, $sorted_by:expr) => {
        Query {
            number: $number,
            sql: include_str!(concat!("../../queries/tpch/", $file)),
            sorted_by: &$sorted_by,
        }
    };
}

pub const QUERIES: [Query; 22] = [
    query!(1, "q01.sql", [0, 1]),
    query!(2, "q02.sql", [0, 2, 1, 3]),
    query!(3, "q03.sql", [1, 2]),
    query!(4, "q04.sql", [0]),
    query!(5, "q05.sql", [1]),
    query!(6, "q06.sql", []),
    query!(7, "q07.sql", [0, 1, 2]),
    query!(8, "q08.sql", [0]),
    query!(9, "q09.sql", [0, 1]),
    query!(10, "q10.sql", [2]),
    query!(11, "q11.sql", [1]),
    query!(12, "q12.sql", [0]),
    query!(13, "q13.sql", [1, 0]),
    query!(14, "q14.sql", []),
    query!(15, "q15.sql", [0]),
    query!(16, "q16.sql", [3, 0, 1, 2]),
    query!(17, "q17.sql", []),
    query!(18, "q18.sql", [4, 3]),
    query!(19, "q19.sql", []),
    query!(20, "q20.sql", [0]),
    query!(21, "q21.sql", [1, 0]),
    query!(22, "q22.sql", [0]),
];

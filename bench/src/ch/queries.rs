//! CH-benCHmark's 22 queries (Cole et al., DBTest 2011), TPC-H's translated to TPC-C's tables, in SQL that MySQL and MariaDB take.
//! Upper bounds of dates lie in the future, so that rows written during a run count.

macro_rules! query {
    ($file:literal) => {
        include_str!(concat!("../../queries/ch/", $file))
    };
}

/// The text of query `n` at index `n - 1`.
pub const QUERIES: [&str; 22] = [
    query!("q01.sql"),
    query!("q02.sql"),
    query!("q03.sql"),
    query!("q04.sql"),
    query!("q05.sql"),
    query!("q06.sql"),
    query!("q07.sql"),
    query!("q08.sql"),
    query!("q09.sql"),
    query!("q10.sql"),
    query!("q11.sql"),
    query!("q12.sql"),
    query!("q13.sql"),
    query!("q14.sql"),
    query!("q15.sql"),
    query!("q16.sql"),
    query!("q17.sql"),
    query!("q18.sql"),
    query!("q19.sql"),
    query!("q20.sql"),
    query!("q21.sql"),
    query!("q22.sql"),
];

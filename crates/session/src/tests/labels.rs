//! What clients are told of the columns of derived tables, common table expressions and views.

use std::sync::Arc;

use avocet_channel::OutputColumn;

use super::Client;
use crate::Session;
use crate::api::SqlSession;

/// `table (table behind it).column of its own name`, and the flags that differ from those of an expression.
fn columns(client: &mut Client, sql: &str) -> Vec<String> {
    let prepared = client.runtime.block_on(described(&mut client.session, sql));
    let shown = |column: &OutputColumn| {
        let flags = column.flags;
        let marks = [(flags.primary_key, "key"), (flags.computed, "computed"), (flags.not_null, "not null")];
        let marks: Vec<_> = marks.iter().filter(|(is_so, _)| *is_so).map(|(_, mark)| *mark).collect();
        let (table, of, name) = (&column.table, &column.org_table, &column.org_name);
        format!("{table} ({of}).{name} {}", marks.join(", "))
    };
    prepared.iter().map(shown).collect()
}

async fn described(session: &mut Session, sql: &str) -> Arc<[OutputColumn]> {
    session.prepare(sql).await.expect("prepares").columns
}

#[test]
fn columns_are_of_the_table_that_the_query_names() {
    let mut client = Client::new();
    client.run("CREATE TABLE t (id INT PRIMARY KEY, v INT); CREATE VIEW w AS SELECT id, v + 1 AS m FROM t");
    let mut check = |sql: &str, expected: &[&str]| assert_eq!(columns(&mut client, sql), expected, "{sql}");
    check("SELECT id FROM t AS x", &["x (t).id key, not null"]);
    check(
        "SELECT * FROM (SELECT id, v + 1 AS m FROM t) AS q",
        &["q (t).id key, not null", "q ().m computed"],
    );
    check("SELECT q.id AS k FROM (SELECT id FROM t LIMIT 1) AS q", &["q (t).id not null"]);
    check("WITH c (x) AS (SELECT id FROM t) SELECT d.x FROM c AS d", &["d (t).x key, not null"]);
    check("SELECT * FROM w AS z", &["z (w).id key, not null", "z (w).m computed"]);
    check("SELECT * FROM (SELECT * FROM w) AS k", &["k (t).id key, not null", "k ().m computed"]);
    check("SELECT id FROM t UNION SELECT 1", &[" ().id not null"]);
    check(
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r",
        &["r ().n "],
    );
}

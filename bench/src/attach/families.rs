//! Tables whose rows go with those of others: by CASCADE and SET NULL, over several levels, and of a table to itself. Not all sources
//! write to their logs what becomes of children.

use mysql::Conn;
use mysql::prelude::Queryable;

use super::schema::run;
use crate::error::Result;
use crate::random::Random;

const TABLES: [&str; 5] = [
    "CREATE TABLE r.f_parent (id INT PRIMARY KEY, code VARCHAR(12) NOT NULL, v INT, UNIQUE KEY (code))",
    "CREATE TABLE r.f_child (id INT AUTO_INCREMENT PRIMARY KEY, p INT, code VARCHAR(12), v INT,
       FOREIGN KEY (p) REFERENCES r.f_parent (id) ON DELETE CASCADE ON UPDATE CASCADE,
       FOREIGN KEY (code) REFERENCES r.f_parent (code) ON DELETE SET NULL ON UPDATE CASCADE)",
    "CREATE TABLE r.f_grandchild (c INT, n INT, w VARCHAR(40), PRIMARY KEY (c, n),
       FOREIGN KEY (c) REFERENCES r.f_child (id) ON DELETE CASCADE ON UPDATE CASCADE)",
    "CREATE TABLE r.f_tree (id INT PRIMARY KEY, up INT, v INT, FOREIGN KEY (up) REFERENCES r.f_tree (id) ON DELETE CASCADE)",
    "CREATE TABLE r.f_list (id INT PRIMARY KEY, up INT, v INT, twice BIGINT AS (v * 2), KEY (twice),
       FOREIGN KEY (up) REFERENCES r.f_list (id) ON DELETE SET NULL)",
];

const PARENTS: i64 = 200;
const CHILDREN: i64 = 4_000;

pub fn load(conn: &mut Conn, random: &mut Random) -> Result<()> {
    for sql in TABLES {
        conn.query_drop(sql)?;
    }
    let parents: Vec<String> = (0..PARENTS).map(|id| format!("({id}, 'c{id}', {id})")).collect();
    conn.query_drop(format!("INSERT INTO r.f_parent VALUES {}", parents.join(", ")))?;
    let mut children = Vec::new();
    let mut grandchildren = Vec::new();
    let mut nodes = Vec::new();
    for id in 1..=CHILDREN {
        let (p, code) = (random.uniform(0, PARENTS - 1), random.uniform(0, PARENTS - 1));
        children.push(format!("({id}, {p}, 'c{code}', {id})"));
        grandchildren.push(format!("({id}, {}, 'of {id}')", random.uniform(0, 9)));
        let up = if random.percent(20) { "NULL".into() } else { random.uniform(0, id - 1).to_string() };
        nodes.push(format!("({id}, {up}, {id})"));
    }
    conn.query_drop(format!("INSERT INTO r.f_child VALUES {}", children.join(", ")))?;
    conn.query_drop(format!("INSERT INTO r.f_grandchild VALUES {}", grandchildren.join(", ")))?;
    for table in ["f_tree", "f_list"] {
        let nodes = format!("(0, NULL, 0), {}", nodes.join(", "));
        conn.query_drop(format!("INSERT INTO r.{table} (id, up, v) VALUES {nodes}"))?;
    }
    Ok(())
}

/// A change of some member of a family.
pub fn statement(random: &mut Random) -> String {
    let (p, q) = (random.uniform(0, PARENTS * 2), random.uniform(0, PARENTS * 2));
    let (c, d) = (random.uniform(1, CHILDREN * 2), random.uniform(1, CHILDREN * 2));
    let table = ["f_tree", "f_list"][random.uniform(0, 1) as usize];
    match random.uniform(0, 17) {
        0 | 1 => format!("DELETE FROM r.f_parent WHERE id = {p}"),
        2 => format!("DELETE FROM r.f_parent WHERE code = 'c{p}' OR id = {q}"),
        3 => format!("UPDATE IGNORE r.f_parent SET id = {q} WHERE id = {p}"),
        4 => format!("UPDATE IGNORE r.f_parent SET code = 'c{q}', v = v + 1 WHERE id = {p}"),
        5 => format!("UPDATE r.f_parent SET v = v + 1 WHERE id BETWEEN {p} AND {p} + 9"),
        6 => format!("INSERT IGNORE INTO r.f_parent VALUES ({p}, 'c{q}', 0), ({q}, 'c{p}', 1)"),
        7 => format!("REPLACE INTO r.f_parent VALUES ({p}, 'c{q}', 2)"),
        8 => format!(
            "INSERT IGNORE INTO r.f_child (id, p, code, v) VALUES ({c}, {p}, 'c{q}', 0), ({d}, NULL, NULL, 1), ({c} + 1, {q}, NULL, 2)"
        ),
        9 => format!("UPDATE IGNORE r.f_child SET p = {p}, v = v + 1 WHERE id BETWEEN {c} AND {c} + 5"),
        10 => format!("UPDATE IGNORE r.f_child SET id = {d} WHERE id = {c}"),
        11 => format!("UPDATE IGNORE r.f_child SET code = 'c{p}' WHERE p = {q}"),
        12 => format!("DELETE FROM r.f_child WHERE id = {c}"),
        13 => format!("INSERT IGNORE INTO r.f_grandchild VALUES ({c}, {p}, 'x'), ({d}, {q}, 'y')"),
        14 => format!("INSERT IGNORE INTO r.{table} (id, up, v) VALUES ({c}, {d}, 1), ({d}, NULL, 2)"),
        15 => format!("UPDATE IGNORE r.{table} SET up = {d}, v = v + 1 WHERE id = {c}"),
        // Roots of large parts stay.
        _ => format!("DELETE FROM r.{table} WHERE id = {c} AND id > 20"),
    }
}

/// What has a member's definition changed, or its rows copied anew.
pub fn define(conn: &mut Conn, random: &mut Random) -> Result<()> {
    let table = ["f_parent", "f_child", "f_grandchild", "f_tree", "f_list"][random.uniform(0, 4) as usize];
    match random.uniform(0, 4) {
        0 => drop(run(conn, &format!("ALTER TABLE r.{table} ADD COLUMN more INT"))?),
        1 => drop(run(conn, &format!("ALTER TABLE r.{table} DROP COLUMN more"))?),
        2 => drop(run(conn, "ALTER TABLE r.f_child RENAME INDEX code TO code2")?),
        // Rows of a statement are not in the log.
        _ => {
            if run(conn, "SET SESSION binlog_format = STATEMENT")? {
                run(
                    conn,
                    &format!(
                        "UPDATE r.{table} SET {0} = {0} LIMIT 1",
                        if table == "f_grandchild" { "w" } else { "v" }
                    ),
                )?;
                run(conn, &format!("DELETE FROM r.{table} ORDER BY 1 DESC LIMIT 1"))?;
                run(conn, "SET SESSION binlog_format = ROW")?;
            }
        }
    }
    Ok(())
}

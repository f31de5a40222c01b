//! The same statements with and without the point path must print the same: random ones, over two tables that begin
//! alike, one changed by each path. Literals come as every type beside every column, and several times in one shape, so
//! that plans are met that were compiled for other values.

use super::Client;

/// A small generator of reproducible choices (SplitMix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.roll() % n
    }

    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len() as u64) as usize]
    }

    fn literal(&mut self) -> String {
        let n = self.below(12) as i64 - 2;
        match self.below(9) {
            0..=2 => n.to_string(),
            3 => format!("'{n}'"),
            4 => format!("'{}'", self.one_of(&["a", "B", "b ", "", "ab", "1x"])),
            5 => format!("{n}.{}", self.one_of(&["5", "50", "0", "125"])),
            6 => format!("{n}e0"),
            7 => format!("'2024-01-{:02}'", self.below(12) + 1),
            _ => "NULL".into(),
        }
    }

    fn column(&mut self) -> &'static str {
        self.one_of(&["id", "a", "b", "c", "d"])
    }

    fn condition(&mut self) -> String {
        let column = self.column();
        match self.below(10) {
            0..=4 => {
                let op = self.one_of(&["=", "=", "=", "<", ">=", "<>", "<=>", ">"]);
                format!("{column} {op} {}", self.literal())
            }
            5 => format!("{} = {column}", self.literal()),
            6 => format!("{column} BETWEEN {} AND {}", self.literal(), self.literal()),
            7 => format!("{column} IN ({}, {}, {})", self.literal(), self.literal(), self.literal()),
            8 => format!("{column} IS {}NULL", self.one_of(&["", "NOT "])),
            _ => format!("{column} LIKE '{}%'", self.one_of(&["a", "1", "2024", ""])),
        }
    }

    fn filter(&mut self) -> String {
        let parts: Vec<String> = (0..=self.below(3)).map(|_| self.condition()).collect();
        parts.join(self.one_of(&[" AND ", " AND ", " OR "]))
    }

    /// Conditions of an UPDATE or DELETE. What strict mode makes an error of, it does only for rows that are looked at,
    /// and those are the path's choice: so here literals are of their columns' kinds.
    fn fitting_filter(&mut self) -> String {
        let parts: Vec<String> = (0..=self.below(2)).map(|_| self.fitting_condition()).collect();
        parts.join(" AND ")
    }

    fn fitting_condition(&mut self) -> String {
        let (n, op) = (self.below(12) as i64 - 2, self.one_of(&["=", "=", "<", ">=", "<>", "<=>"]));
        match self.below(5) {
            0 => format!("id {op} {n}"),
            1 => format!("a {op} {n}"),
            2 => format!("b {op} '{}'", self.one_of(&["a", "B", "b ", "", "ab"])),
            3 => format!("c {op} {n}.5"),
            _ => format!("d {op} '2024-01-{:02}'", self.below(12) + 1),
        }
    }

    fn select(&mut self) -> String {
        let filter = self.filter();
        match self.below(25) {
            0 => format!("SELECT COUNT(*), SUM(a), MIN(c), MAX(b), AVG(c) FROM t WHERE {filter}"),
            1 => format!("SELECT MAX({}) FROM t WHERE {filter}", self.column()),
            2 => format!(
                "SELECT id, {}, 1.5, 'x' FROM t WHERE {filter} ORDER BY id DESC LIMIT {}",
                self.column(),
                self.below(4) + 1
            ),
            3 => format!("SELECT DISTINCT a FROM t WHERE {filter} ORDER BY a"),
            4 => format!(
                "SELECT x.id, y.id FROM t x JOIN t y ON x.a = y.id AND y.a > {} WHERE x.{} ORDER BY x.id, y.id",
                self.literal(),
                self.one_of(&["id > 3", "a = 2", "b = 'a'", "id = 5"])
            ),
            5 => format!(
                "SELECT x.id, y.id, y.b, z.id FROM t x LEFT JOIN t y ON x.a = y.id AND y.{} LEFT JOIN t z ON z.c = y.c \
                 WHERE {} ORDER BY x.id, y.id, z.id",
                self.condition(),
                self.one_of(&[
                    "x.id > 3",
                    "x.a = 2",
                    "x.id = 5 AND y.id IS NULL",
                    "y.a = 1",
                    "z.id IS NULL",
                    "x.b = 'a'"
                ])
            ),
            6 => format!(
                "SELECT x.id, y.id, z.id FROM t x LEFT JOIN t y ON {} JOIN t z ON z.id = x.a WHERE {} ORDER BY x.id, y.id LIMIT 5",
                self.one_of(&[
                    "y.a = x.id",
                    "y.id = x.a + 1 AND x.a > 1",
                    "y.d = x.d",
                    "y.id = 3",
                    "y.id = x.id AND 1 = 0"
                ]),
                self.one_of(&[
                    "x.id = 5",
                    "x.a = 1",
                    "z.a = 2",
                    "x.a BETWEEN 1 AND 3",
                    "COALESCE(y.a, 1) = 1"
                ])
            ),
            7 => format!(
                "SELECT a, COUNT(*), SUM(c) + 1, MIN(d), COUNT(DISTINCT b) FROM t WHERE {filter} GROUP BY a ORDER BY {}",
                self.one_of(&["a", "a DESC", "COUNT(*) DESC, a", "SUM(c), a LIMIT 2"])
            ),
            8 => format!(
                "SELECT x.d, x.id % 2, COUNT(y.id), MAX(y.c) FROM t x LEFT JOIN t y ON y.a = x.id WHERE x.a = {} \
                 GROUP BY x.d, x.id % 2 HAVING COUNT(*) > {} ORDER BY 1, 2",
                self.below(6),
                self.below(3)
            ),
            9 => format!(
                "SELECT id, a FROM t WHERE {} {}IN (SELECT {} FROM t WHERE {filter}) {} ORDER BY id",
                self.column(),
                self.one_of(&["", "", "NOT "]),
                self.column(),
                self.one_of(&["", "AND id > 5", "AND a = 2", "OR a = 1"])
            ),
            10 => format!(
                "SELECT id, d FROM t x WHERE {} {}EXISTS (SELECT 1 FROM t y WHERE y.{} = x.{} AND y.{}) ORDER BY id",
                self.one_of(&["x.id < 9 AND", "x.a = 3 AND", ""]),
                self.one_of(&["", "", "NOT "]),
                self.column(),
                self.column(),
                self.condition()
            ),
            11 => {
                let answer = self.one_of(&["COUNT(*)", "MAX(y.c)", "MIN(y.b)", "SUM(y.a) + x.a", "y.id"]);
                // Which rows behind a LIMIT fail for several answers is the path's choice.
                let orders =
                    if answer == "y.id" { &["x.id"][..] } else { &["x.id", "x.id DESC LIMIT 2", "s, x.id"] };
                format!(
                    "SELECT x.id, (SELECT {answer} FROM t y WHERE y.a = x.id AND y.{}) AS s FROM t x WHERE x.{} ORDER BY {}",
                    self.condition(),
                    self.one_of(&["id = 4", "id BETWEEN 2 AND 9", "a = 1"]),
                    self.one_of(orders)
                )
            }
            12 => format!(
                "SELECT id FROM t WHERE a > (SELECT AVG(a) FROM t WHERE {filter}) AND id < 12 ORDER BY id",
            ),
            13 => format!(
                "SELECT x.id, x.a {}IN (SELECT y.{} FROM t y WHERE y.id < x.id AND y.{}) FROM t x WHERE x.id < 12 ORDER BY x.id",
                self.one_of(&["", "NOT "]),
                self.column(),
                self.condition()
            ),
            14 => format!(
                "SELECT x.id, q.n, q.s FROM t x {}JOIN (SELECT a, COUNT(*) AS n, SUM(c) AS s FROM t WHERE {filter} GROUP BY a) q \
                 ON q.a = x.{} WHERE x.{} ORDER BY x.id, q.n, q.s",
                self.one_of(&["", "LEFT "]),
                self.one_of(&["id", "a"]),
                self.one_of(&["id < 8", "a = 2", "id = 3"])
            ),
            15 => format!(
                "SELECT COUNT(*), MAX(m) FROM (SELECT d, MAX(id) AS m FROM t WHERE {filter} GROUP BY d ORDER BY m DESC LIMIT 3) q"
            ),
            16 => format!(
                "SELECT x.a, COUNT(*), SUM((SELECT COUNT(*) FROM t y WHERE y.a = x.id)) FROM t x \
                 WHERE (x.a, x.id) IN (SELECT a, id FROM t WHERE {filter}) GROUP BY x.a HAVING COUNT(*) < 9 ORDER BY x.a"
            ),
            17 | 18 => format!(
                "SELECT x.id, y.id, z.d, (SELECT COUNT(*) FROM t w WHERE w.a = x.id) FROM t x {}JOIN t y ON y.id = x.a \
                 LEFT JOIN t z ON z.a = x.id AND z.id > 9 {} ORDER BY {}, z.id LIMIT {}",
                self.one_of(&["", "", "LEFT "]),
                self.one_of(&["", "WHERE x.a > 1", "WHERE x.c > 3.5", "WHERE y.b = 'a'", "WHERE z.id IS NULL"]),
                self.one_of(&["x.id", "x.id DESC", "x.c, x.id", "x.a DESC, x.b DESC, x.id"]),
                self.one_of(&["1", "3", "2 OFFSET 2", "9", "100"])
            )
            // Where only the leading table's columns are in the order, it leads; ties are of rows alike.
            .replace(", z.id LIMIT", self.one_of(&[", z.id LIMIT", " LIMIT"]))
            .replace("SELECT x.id, y.id, z.d", "SELECT x.id, y.id, 1"),
            20 => format!(
                "SELECT id, {} FROM t WHERE {filter} UNION {}SELECT a, {} FROM t WHERE id < {} ORDER BY 1, 2 LIMIT {}",
                self.column(),
                self.one_of(&["", "ALL "]),
                self.column(),
                self.below(9),
                self.below(20)
            ),
            21 => format!(
                "SELECT a, b FROM t WHERE id < {} {} SELECT a, b FROM t WHERE {filter} {} (SELECT id, b FROM t WHERE a = {} ORDER BY id LIMIT 2) ORDER BY 1, 2",
                self.below(9),
                self.one_of(&["UNION", "UNION ALL", "UNION", "EXCEPT", "INTERSECT"]),
                self.one_of(&["UNION", "UNION ALL"]),
                self.below(6)
            ),
            22 => format!(
                "WITH x AS (SELECT * FROM t WHERE {filter}), y (k, n) AS (SELECT a, COUNT(*) FROM x GROUP BY a)
                 SELECT x.id, y.n FROM x {} JOIN y ON y.k = x.a ORDER BY 1, 2",
                self.one_of(&["", "LEFT"])
            ),
            23 => format!(
                "SELECT id FROM t WHERE a IN (SELECT id FROM t WHERE id < {} UNION SELECT a FROM t WHERE id = {}) ORDER BY 1",
                self.below(9),
                self.below(30)
            ),
            24 => format!(
                "SELECT t.id, u.n FROM t LEFT JOIN (SELECT a AS k, 1 AS n FROM t WHERE id < {} UNION ALL SELECT id, 2 FROM t WHERE id < 4) u ON u.k = t.id WHERE t.id < {} ORDER BY 1, 2",
                self.below(9),
                self.below(9)
            ),
            _ => format!("SELECT * FROM t WHERE {filter} ORDER BY id"),
        }
    }

    fn change(&mut self) -> String {
        match self.below(17) {
            7 => format!(
                "UPDATE {}t x JOIN t y ON y.id = x.a SET x.c = y.c + {}, x.d = y.d WHERE x.{} = {}",
                self.one_of(&["", "IGNORE "]),
                self.below(3),
                self.one_of(&["id", "a"]),
                self.below(20)
            ),
            8 => format!(
                "UPDATE t x, t y SET x.a = {}, y.c = {} WHERE y.id = x.a AND x.id < {}",
                self.below(9),
                self.below(9),
                self.below(20)
            ),
            9 => format!("DELETE x FROM t x JOIN t y ON y.id = x.a WHERE y.id = {}", self.below(30)),
            10 => format!(
                "UPDATE t SET c = (SELECT COUNT(*) FROM (SELECT * FROM t) u WHERE u.a = t.a), a = a + 1 WHERE id = {}",
                self.below(30)
            ),
            11 => format!(
                "UPDATE t SET c = {} WHERE id {} (SELECT u.a FROM (SELECT * FROM t) u WHERE u.id < {})",
                self.below(50),
                self.one_of(&["IN", "NOT IN"]),
                self.below(8)
            ),
            12 => format!(
                "UPDATE t SET a = a + 1 WHERE {} ORDER BY c * 2 DESC, id LIMIT {}",
                self.fitting_filter(),
                self.below(3)
            ),
            13 => format!(
                "INSERT {}INTO t SELECT id + {}, a, b, c, d FROM t WHERE {}{}",
                self.one_of(&["", "IGNORE "]),
                self.below(40),
                self.one_of(&["id = 7", "id = 3", "a = 2"]),
                self.one_of(&["", " ON DUPLICATE KEY UPDATE a = VALUES(a), c = t.c + 1"])
            ),
            14 => format!(
                "INSERT INTO t (id, a, c) VALUES ({}, (SELECT MAX(u.a) FROM (SELECT * FROM t) u WHERE u.id < {}), 1)",
                self.below(60),
                self.below(9)
            ),
            15 => format!(
                "UPDATE IGNORE t SET id = id + {}, b = {} WHERE id IN ({}, {})",
                self.below(3),
                self.literal(),
                self.below(20),
                self.below(20)
            ),
            16 => format!(
                "DELETE FROM t WHERE {} AND EXISTS (SELECT 1 FROM (SELECT * FROM t) u WHERE u.id = t.a) ORDER BY -id LIMIT 1",
                self.fitting_filter()
            ),
            0 => format!(
                "UPDATE t SET {} = {} WHERE {}",
                self.one_of(&["a", "b", "c", "d"]),
                self.literal(),
                self.fitting_filter()
            ),
            1 => format!(
                "UPDATE t SET a = a + {}, c = c - {} WHERE id = {}",
                self.literal(),
                self.literal(),
                self.below(30)
            ),
            2 if self.below(3) == 0 => {
                format!("DELETE FROM t WHERE {} ORDER BY id LIMIT 2", self.fitting_filter())
            }
            3 => format!("REPLACE INTO t VALUES {}", self.row(30)),
            4 => format!(
                "INSERT INTO t VALUES {}, {} ON DUPLICATE KEY UPDATE a = VALUES(a) + {}, c = c + {}",
                self.row(30),
                self.row(30),
                self.literal(),
                self.literal()
            ),
            _ => format!("INSERT INTO t (id, a, b, c, d) VALUES {}", self.row(60)),
        }
    }

    fn row(&mut self, ids: u64) -> String {
        let id = self.below(ids);
        format!("({id}, {}, {}, {}, {})", self.literal(), self.literal(), self.literal(), self.literal())
    }
}

/// A database of its own, so that both sides have the same names in their texts.
fn side(client: &mut Client, database: &str, point: &str) {
    client.run(&format!("CREATE DATABASE {database}; USE {database}; SET avocet_point_path = {point}; SET time_zone = '+02:00'"));
    client.run(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(10), c DECIMAL(8,2), d DATE,
                         KEY (a, b), KEY (d), KEY (c, id), KEY (b))",
    );
}

fn run_both(seed: u64, statements: usize) {
    let mut with = Client::new();
    let mut without = with.another();
    side(&mut with, "with_plans", "ON");
    side(&mut without, "without_plans", "OFF");
    let mut dice = Dice(seed);
    for id in 0..20 {
        let row = format!(
            "INSERT INTO t VALUES ({id}, {}, '{}', {}.5, '2024-01-{:02}')",
            dice.below(6),
            dice.one_of(&["a", "b", "AB", "1", ""]),
            dice.below(9),
            dice.below(9) + 1
        );
        assert_eq!(with.run(&row), without.run(&row));
    }
    for n in 0..statements {
        let is_change = dice.below(4) == 0;
        let text = if is_change { dice.change() } else { dice.select() };
        let (a, b) = (with.run(&text), without.run(&text));
        // What a statement was refused for is one thing; that both refuse it is what matters.
        let failed = |s: &str| s.contains("ERROR");
        assert!(
            // Of strings that differ only in case, MAX gives the one that it met first.
            a.eq_ignore_ascii_case(&b) || (failed(&a) && failed(&b)),
            "seed {seed}, statement {n}: {text}\nwith plans:\n{a}\nwithout:\n{b}"
        );
        if is_change {
            let all = "SELECT * FROM t ORDER BY id";
            assert_eq!(with.run(all), without.run(all), "seed {seed}, after statement {n}: {text}");
        }
    }
}

#[test]
fn plans_answer_as_the_general_path_does() {
    for seed in 1..=5 {
        run_both(seed, 300);
    }
}

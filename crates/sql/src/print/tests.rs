use avocet_types::expr::SqlMode;

use super::*;
use crate::kept::canonical;
use crate::parse::{StatementKind, parse, parse_expr};

fn printed(sql: &str) -> String {
    let mut statements = parse(sql.as_bytes(), SqlMode::DEFAULT).expect("it parses");
    let StatementKind::Query(tree) = statements.remove(0).kind else { panic!("{sql}: no query") };
    let names = Names::Qualified { left_out: Some("d") };
    query(&tree, sql.as_bytes(), Style { names, strings: None, charset: Charset::Utf8mb4, quote: '`' })
}

/// MySQL 9.7's texts.
#[test]
fn queries_are_printed_as_mysql_prints_them() {
    for (sql, text) in [
        ("select t.a+1 x from d.t where not t.a", "select (`t`.`a` + 1) AS `x` from `t` where (0 = `t`.`a`)"),
        (
            "select 1 from d.t where not(t.a=1 and t.b like 'x') or t.c in (1)",
            "select 1 from `t` where ((`t`.`a` <> 1) or (not((`t`.`b` like 'x'))) or (`t`.`c` = 1))",
        ),
        (
            "select sum(t.a) over (partition by t.b order by t.c desc rows 1 preceding) s from d.t",
            "select sum(`t`.`a`) OVER (PARTITION BY `t`.`b` ORDER BY `t`.`c` desc ROWS BETWEEN 1 PRECEDING AND CURRENT \
             ROW)  AS `s` from `t`",
        ),
        (
            "(select 1 from e.t order by t.a limit 1) union all select t.a from d.t, d.u limit 2 offset 3",
            "(select 1 from `e`.`t` order by `t`.`a` limit 1) union all select `t`.`a` from (`t` join `u`) limit 3,2",
        ),
        (
            "select group_concat(distinct t.a order by t.b) from d.t left join d.u on t.a = u.a",
            "select group_concat(distinct `t`.`a` order by `t`.`b` ASC separator ',') from (`t` left join `u` \
             on((`t`.`a` = `u`.`a`)))",
        ),
        (
            "with recursive c(n) as (select 1 as a union all select c.n+1 from c) select 'it''s\\n' from c where exists \
             (select 2)",
            "with recursive `c` (`n`) as (select 1 AS `a` union all select (`c`.`n` + 1) from `c`) select 'it\\'s\\n' \
             from `c` where exists(select 2)",
        ),
    ] {
        assert_eq!(printed(sql), text, "{sql}");
        assert_eq!(printed(text), text, "it prints as itself");
    }
}

/// Lines of an expression, a tab and what MySQL 9.7 makes of it in information_schema.
const PRINTED: &str = include_str!("printed.txt");

#[test]
fn expressions_are_printed_as_mysql_prints_them() {
    let mut lines = 0;
    for line in PRINTED.lines() {
        let (written, printed) = line.split_once('\t').expect("two columns");
        let expr = parse_expr(written.as_bytes(), SqlMode::DEFAULT).expect(written);
        let text = canonical(&expr, written.as_bytes(), Charset::Utf8mb4);
        assert_eq!(text, printed, "{written}");
        // What is kept is read again, and prints the same.
        let again = parse_expr(text.as_bytes(), SqlMode::DEFAULT).expect(&text);
        assert_eq!(canonical(&again, text.as_bytes(), Charset::Utf8mb4), printed, "{written}, again");
        lines += 1;
    }
    assert!(lines > 150, "{lines} lines");
}

/// MySQL leaves these parentheses out, and reads its own text otherwise.
#[test]
fn operands_are_read_as_they_were_written() {
    for text in [
        "select (2 | (3 in (select 1))) AS `a`",
        "select ((3 > all (select 1)) | 2) AS `a`",
        "select ((3 in (select 1)) / 2) AS `a`",
        "select (2 = (3 > any (select 1))) AS `a`",
        "select ((3 in (select 1)) between (4 in (select 2)) and 5 in (select 3)) AS `a`",
        "select ((3 in (select 1)) like (4 in (select 2)) escape (5 in (select 3))) AS `a`",
        "select ((3 in (select 3)) in (1,2)) AS `a`",
        "select (3 in (select 3)) in (select 1) AS `a`",
        "select ((3 member of ('[3]')) + 1) AS `a`",
        "select ((-(3)) collate utf8mb4_bin) AS `a`",
        "select ((~(3)) collate utf8mb4_bin) AS `a`",
        "select ((3 in (select 1)) + interval 3 in (select 1) day) AS `a`",
        // As MySQL prints them.
        "select (2 = 3 in (select 1)) AS `a`,(3 > all (select 1) = 2) AS `b`,-(3 in (select 1)) AS `c`",
        "select (3 in (select 1) and 3 > any (select 1)) AS `a`,if(3 in (select 1),1,2) AS `b`",
        "(select 1 AS `a` limit 2) order by `a` desc limit 1",
        "((select 1 AS `a` limit 3) order by `a` limit 2) order by `a` desc",
    ] {
        assert_eq!(printed(text), text);
    }
}

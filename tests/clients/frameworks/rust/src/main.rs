//! What an application does with sqlx; each step prints one line of JSON with its name and what it gave.

use std::fmt::Debug;
use std::future::Future;

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc};
use futures_util::TryStreamExt;
use rust_decimal::Decimal;
use serde_json::{Value, json};
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::mysql::{MySqlConnectOptions, MySqlPool, MySqlPoolOptions, MySqlRow};
use sqlx::types::Json;
use sqlx::{Column, Connection, Executor, FromRow, QueryBuilder, Row, SqlSafeStr, TypeInfo, ValueRef};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

async fn step<T: Debug>(name: &str, run: impl Future<Output = Outcome<T>>) {
    let line = match run.await {
        Ok(gave) => json!({ "step": name, "gave": format!("{gave:?}") }),
        Err(error) => json!({ "step": name, "error": error.to_string() }),
    };
    println!("{line}");
}

/// Number, SQLSTATE and kind of an error that is expected.
fn refused<T: Debug>(outcome: Result<T, sqlx::Error>) -> Outcome<String> {
    let error = outcome.map(|gave| format!("{gave:?}")).err().ok_or("was not refused")?;
    let by = error.as_database_error().ok_or_else(|| error.to_string())?;
    let number = by.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>().map(|by| by.number());
    Ok(format!("{number:?} {:?} {:?} {}", by.code(), by.kind(), by.message()))
}

#[derive(Debug, FromRow)]
#[allow(dead_code, reason = "shown by Debug")]
struct Account {
    id: u64,
    owner: String,
    balance: Decimal,
    note: Option<String>,
}

#[derive(Debug, PartialEq, sqlx::Type)]
#[sqlx(rename_all = "lowercase")]
enum Colour {
    Red,
    Blue,
}

/// Names and types of a row's columns.
fn columns(row: &MySqlRow) -> Vec<String> {
    row.columns().iter().map(|column| format!("{} {}", column.name(), column.type_info().name())).collect()
}

async fn definitions(pool: &MySqlPool) -> Outcome<()> {
    for table in [
        "CREATE TABLE accounts (id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT, owner VARCHAR(40) NOT NULL UNIQUE, \
         balance DECIMAL(12,2) NOT NULL DEFAULT 0, note TEXT)",
        "CREATE TABLE entries (id INT PRIMARY KEY AUTO_INCREMENT, account BIGINT UNSIGNED NOT NULL, amount INT NOT NULL, \
         CHECK (amount <> 0), FOREIGN KEY (account) REFERENCES accounts (id))",
        "CREATE TABLE kinds (id INT PRIMARY KEY, t TINYINT, ut TINYINT UNSIGNED, s SMALLINT, m MEDIUMINT, i INT, ui INT UNSIGNED, \
         b BIGINT, ub BIGINT UNSIGNED, yes BOOLEAN, f FLOAT, d DOUBLE, dec1 DECIMAL(30,10), c CHAR(5), v VARCHAR(20), x TEXT, \
         vb VARBINARY(20), bl BLOB, da DATE, ti TIME(3), dt DATETIME(6), ts TIMESTAMP(6) NULL, y YEAR, \
         e ENUM('red','blue'), st SET('a','b'), j JSON, bi BIT(10))",
    ] {
        pool.execute(table).await?;
    }
    Ok(())
}

async fn kinds(pool: &MySqlPool) -> Outcome<String> {
    let moment = NaiveDate::from_ymd_opt(2024, 2, 29).and_then(|day| day.and_hms_micro_opt(13, 14, 15, 678_901)).ok_or("a moment")?;
    sqlx::query(
        "INSERT INTO kinds VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(1).bind(-128_i8).bind(255_u8).bind(-32_768_i16).bind(-8_388_608).bind(i32::MIN).bind(u32::MAX)
    .bind(i64::MIN).bind(u64::MAX).bind(true).bind(1.5_f32).bind(-2.25_f64)
    .bind(Decimal::from_str_exact("12345678901234567.0123456789")?).bind("abc").bind("añb").bind("text".repeat(1_000))
    .bind(&[0_u8, 1, 255][..]).bind(vec![7_u8; 3_000]).bind(moment.date()).bind(NaiveTime::from_hms_milli_opt(1, 2, 3, 4))
    .bind(moment).bind(moment.and_utc()).bind(1999_u16).bind(Colour::Blue).bind("a,b").bind(Json(json!({"a": [1, 2.5, null]})))
    .bind(5_u64)
    .execute(pool)
    .await?;
    let row = sqlx::query("SELECT * FROM kinds").fetch_one(pool).await?;
    let ints: (i8, u8, i16, i32, i32, u32, i64, u64, bool) =
        (row.try_get("t")?, row.try_get("ut")?, row.try_get("s")?, row.try_get("m")?, row.try_get("i")?, row.try_get("ui")?,
         row.try_get("b")?, row.try_get("ub")?, row.try_get("yes")?);
    let reals: (f32, f64, Decimal) = (row.try_get("f")?, row.try_get("d")?, row.try_get("dec1")?);
    let texts: (String, String, String) = (row.try_get("c")?, row.try_get("v")?, row.try_get("x")?);
    let bytes: (Vec<u8>, Vec<u8>) = (row.try_get("vb")?, row.try_get("bl")?);
    let moments: (NaiveDate, NaiveTime, NaiveDateTime, DateTime<Utc>, u16) =
        (row.try_get("da")?, row.try_get("ti")?, row.try_get("dt")?, row.try_get("ts")?, row.try_get("y")?);
    let others: (Colour, String, Json<Value>, u64) = (row.try_get("e")?, row.try_get("st")?, row.try_get("j")?, row.try_get("bi")?);
    Ok(format!("{ints:?} {reals:?} {} {} {} {bytes:?} {moments:?} {others:?} {:?}", texts.0, texts.1, texts.2.len(), columns(&row)))
}

async fn transactions(pool: &MySqlPool) -> Outcome<Vec<i64>> {
    let mut seen = Vec::new();
    let count = || sqlx::query_scalar::<_, i64>("SELECT COUNT(*) FROM entries");
    let insert = || sqlx::query("INSERT INTO entries (account, amount) VALUES (1, 5)");
    let mut tx = pool.begin().await?;
    insert().execute(&mut *tx).await?;
    let mut inner = tx.begin().await?;
    insert().execute(&mut *inner).await?;
    seen.push(count().fetch_one(&mut *inner).await?);
    inner.rollback().await?;
    seen.push(count().fetch_one(&mut *tx).await?);
    tx.commit().await?;
    seen.push(count().fetch_one(pool).await?);
    let mut dropped = pool.begin().await?;
    insert().execute(&mut *dropped).await?;
    drop(dropped);
    seen.push(count().fetch_one(pool).await?);
    Ok(seen)
}

async fn migrations(pool: &MySqlPool) -> Outcome<Vec<(i64, String, bool)>> {
    let one = |version, what: &'static str, sql: &'static str| {
        Migration::new(version, what.into(), MigrationType::Simple, sql.into_sql_str(), false)
    };
    let all = vec![
        one(1, "make", "CREATE TABLE moved (id INT PRIMARY KEY); INSERT INTO moved VALUES (1), (2);"),
        one(2, "widen", "ALTER TABLE moved ADD COLUMN name VARCHAR(10) NOT NULL DEFAULT 'x';"),
    ];
    let migrator = Migrator { migrations: all.into(), ..Migrator::DEFAULT };
    migrator.run(pool).await?;
    migrator.run(pool).await?;
    Ok(sqlx::query_as("SELECT version, description, success FROM _sqlx_migrations ORDER BY version").fetch_all(pool).await?)
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let var = |name: &str| std::env::var(name);
    let options = MySqlConnectOptions::new().host(&var("SUITE_HOST")?).port(var("SUITE_PORT")?.parse()?).username("root");
    let mut first = sqlx::MySqlConnection::connect_with(&options).await?;
    first.execute("CREATE DATABASE sqlx_suite").await?;
    let options = options.database("sqlx_suite");
    let pool = MySqlPoolOptions::new().max_connections(4).connect_with(options.clone()).await?;
    let pool = &pool;

    step("ping", async { Ok(first.ping().await?) }).await;
    step("session", async {
        Ok(sqlx::query_as::<_, (String, String, String)>("SELECT @@sql_mode, @@time_zone, @@collation_connection").fetch_one(pool).await?)
    }).await;
    step("definitions", definitions(pool)).await;
    step("insert", async {
        let done = sqlx::query("INSERT INTO accounts (owner, balance) VALUES (?, ?), (?, ?)")
            .bind("ada").bind(Decimal::new(10_050, 2)).bind("bob").bind(Decimal::new(-1, 2)).execute(pool).await?;
        Ok((done.rows_affected(), done.last_insert_id()))
    }).await;
    step("query_as", async { Ok(sqlx::query_as::<_, Account>("SELECT * FROM accounts ORDER BY id").fetch_all(pool).await?) }).await;
    step("optional", async { Ok(sqlx::query_as::<_, Account>("SELECT * FROM accounts WHERE id = ?").bind(9).fetch_optional(pool).await?) }).await;
    step("scalar", async { Ok(sqlx::query_scalar::<_, Decimal>("SELECT SUM(balance) FROM accounts").fetch_one(pool).await?) }).await;
    step("kinds", kinds(pool)).await;
    step("nulls", async {
        sqlx::query("INSERT INTO kinds (id, x, j, ts) VALUES (2, ?, ?, ?)")
            .bind(None::<String>).bind(None::<Json<Value>>).bind(None::<DateTime<Utc>>).execute(pool).await?;
        let row = sqlx::query("SELECT * FROM kinds WHERE id = 2").fetch_one(pool).await?;
        let mut nulls = Vec::new();
        for at in 0..row.len() {
            nulls.push(row.try_get_raw(at)?.is_null());
        }
        Ok(nulls)
    }).await;
    step("text protocol", async {
        let row = pool.fetch_one(sqlx::raw_sql("SELECT id, ub, d, dec1, da, dt, e, st, j, yes FROM kinds WHERE id = 1")).await?;
        Ok((columns(&row), row.try_get::<u64, _>("ub")?, row.try_get::<NaiveDateTime, _>("dt")?, row.try_get::<Json<Value>, _>("j")?))
    }).await;
    step("several statements", async {
        let mut rows = sqlx::raw_sql("SELECT 1 AS a; SELECT 'x' AS b; UPDATE accounts SET note = 'n'; SELECT 2.5 AS c").fetch_many(pool);
        let mut seen = Vec::new();
        while let Some(next) = rows.try_next().await? {
            seen.push(match next {
                sqlx::Either::Left(done) => format!("{} rows", done.rows_affected()),
                sqlx::Either::Right(row) => format!("{:?}", columns(&row)),
            });
        }
        Ok(seen)
    }).await;
    step("duplicate", async { refused(sqlx::query("INSERT INTO accounts (owner) VALUES ('ada')").execute(pool).await) }).await;
    step("null refused", async { refused(sqlx::query("INSERT INTO accounts (owner) VALUES (?)").bind(None::<String>).execute(pool).await) }).await;
    step("foreign key", async { refused(sqlx::query("INSERT INTO entries (account, amount) VALUES (99, 1)").execute(pool).await) }).await;
    step("check", async { refused(sqlx::query("INSERT INTO entries (account, amount) VALUES (1, 0)").execute(pool).await) }).await;
    step("syntax", async { refused(pool.execute("SELEC 1").await) }).await;
    step("no table", async { refused(sqlx::query("SELECT * FROM nowhere").fetch_all(pool).await) }).await;
    step("transactions", transactions(pool)).await;
    step("upsert", async {
        let done = sqlx::query("INSERT INTO accounts (id, owner) VALUES (1, 'ada') ON DUPLICATE KEY UPDATE balance = balance + ?")
            .bind(5).execute(pool).await?;
        Ok((done.rows_affected(), done.last_insert_id()))
    }).await;
    step("query builder", async {
        let mut builder = QueryBuilder::new("INSERT INTO entries (account, amount) ");
        builder.push_values(1..=500, |mut row, amount| {
            row.push_bind(1_u64).push_bind(amount);
        });
        let inserted = builder.build().execute(pool).await?.rows_affected();
        let mut builder = QueryBuilder::new("SELECT SUM(amount) FROM entries WHERE amount IN (");
        let mut list = builder.separated(", ");
        for amount in [1, 7, 400] {
            list.push_bind(amount);
        }
        builder.push(")");
        Ok((inserted, builder.build_query_scalar::<Option<Decimal>>().fetch_one(pool).await?))
    }).await;
    step("stream", async {
        let mut rows = sqlx::query_as::<_, (i32, i32)>("SELECT id, amount FROM entries ORDER BY amount, id").fetch(pool);
        let (mut count, mut sum) = (0, 0_i64);
        while let Some((_, amount)) = rows.try_next().await? {
            (count, sum) = (count + 1, sum + i64::from(amount));
        }
        Ok((count, sum))
    }).await;
    step("a stream that is left", async {
        let mut one = pool.acquire().await?;
        {
            let mut rows = sqlx::query("SELECT id FROM entries").fetch(&mut *one);
            rows.try_next().await?;
        }
        Ok(sqlx::query_scalar::<_, i64>("SELECT COUNT(*) FROM accounts").fetch_one(&mut *one).await?)
    }).await;
    step("describe", async {
        let mut one = pool.acquire().await?;
        let described = one.describe("SELECT a.id, a.note, COUNT(*) AS n, a.balance * 2 AS twice FROM accounts a WHERE a.owner = ? GROUP BY a.id".into_sql_str()).await?;
        let nullable: Vec<_> = (0..described.columns().len()).map(|at| described.nullable(at)).collect();
        let columns: Vec<_> = described.columns().iter().map(|column| format!("{} {}", column.name(), column.type_info().name())).collect();
        Ok((columns, nullable, described.parameters().map(|given| given.map_right(|count| count))))
    }).await;
    step("many prepared statements", async {
        let mut one = pool.acquire().await?;
        let mut sum = 0;
        for at in 0..250_i64 {
            let text = format!("SELECT CAST(? AS SIGNED) + {at}");
            sum += sqlx::query_scalar::<_, i64>(sqlx::AssertSqlSafe(text)).bind(at).fetch_one(&mut *one).await?;
        }
        one.clear_cached_statements().await?;
        Ok(sum)
    }).await;
    step("migrations", migrations(pool)).await;
    step("after the migrations", async { Ok(sqlx::query_as::<_, (i32, String)>("SELECT * FROM moved").fetch_all(pool).await?) }).await;
    step("locks", async {
        let mut one = pool.acquire().await?;
        Ok(sqlx::query_as::<_, (Option<i64>, Option<i64>)>("SELECT GET_LOCK('l', 1), RELEASE_LOCK('l')").fetch_one(&mut *one).await?)
    }).await;
    step("concurrently", async {
        let all = (0..40_i64).map(|at| sqlx::query_scalar::<_, i64>("SELECT CAST(? AS SIGNED) * 2").bind(at).fetch_one(pool));
        Ok(futures_util::future::try_join_all(all).await?.into_iter().sum::<i64>())
    }).await;
    step("close", async {
        first.close().await?;
        pool.close().await;
        Ok(pool.is_closed())
    }).await;
    Ok(())
}

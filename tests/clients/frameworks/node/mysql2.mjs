// mysql2: text and prepared statements, types both ways, named and nested parameters, streams, pools, transactions, errors.
import { Readable } from "node:stream";
import mysql from "mysql2/promise";
import mysqlCallbacks from "mysql2";
import { host, port, refused, step } from "./steps.mjs";

const options = { host, port, user: "root" };
const admin = await mysql.createConnection(options);
await admin.query("CREATE DATABASE mysql2");
const connection = await mysql.createConnection({ ...options, database: "mysql2", multipleStatements: true, namedPlaceholders: true });
const pool = mysql.createPool({ ...options, database: "mysql2", connectionLimit: 4 });

const definition = `CREATE TABLE everything (id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT, i8 TINYINT, i16 SMALLINT, i24 MEDIUMINT, i32 INT,
    i64 BIGINT, big BIGINT UNSIGNED, f FLOAT, d DOUBLE, dec1 DECIMAL(20,6), c CHAR(5), v VARCHAR(100), t TEXT, b VARBINARY(20), bl BLOB,
    day DATE, at DATETIME(6), ts TIMESTAMP(3) NULL, tm TIME(2), y YEAR, e ENUM('a','b'), s SET('x','y','z'), bits BIT(10), j JSON)`;
const row = [-8, -16, -24, -32, "-9223372036854775807", "18446744073709551615", 1.5, Math.PI, "12345678901234.567890", "abc", "ünï 🦜",
    "text\\with'quotes\"\n", Buffer.from([0, 1, 255]), Buffer.from("blob"), "2024-02-29", "2024-02-29 12:34:56.123456",
    "2024-02-29 12:34:56.789", "-12:34:56.78", 2024, "b", "x,z", Buffer.from([2, 170]), JSON.stringify({ a: [1, 2.5, "z", null] })];
const columns = "i8,i16,i24,i32,i64,big,f,d,dec1,c,v,t,b,bl,day,at,ts,tm,y,e,s,bits,j";
const marks = row.map(() => "?").join(",");

await step("create", async () => (await connection.query(definition))[0].warningStatus);
await step("insert, text", async () => (await connection.query({ sql: `INSERT INTO everything (${columns}) VALUES (${marks})`, values: row, namedPlaceholders: false }))[0].insertId);
await step("insert, prepared", async () => (await connection.execute({ sql: `INSERT INTO everything (${columns}) VALUES (${marks})`, values: row, namedPlaceholders: false }))[0].insertId);
for (const [name, extra] of [["plain", {}], ["strings", { dateStrings: true, supportBigNumbers: true, bigNumberStrings: true }], ["arrays", { rowsAsArray: true }], ["nested", { nestTables: "_" }]]) {
    for (const how of ["query", "execute"]) {
        await step(`select, ${name}, ${how}`, async () => (await connection[how]({ sql: "SELECT * FROM everything ORDER BY id", ...extra }))[0]);
    }
}
await step("fields", async () => (await connection.query("SELECT * FROM everything"))[1].map((f) => [f.name, f.orgTable, f.schema, f.columnType, f.columnLength, f.decimals, f.flags, f.characterSet]));
await step("fields, prepared", async () => (await pool.execute("SELECT id, v, COUNT(*) n, SUM(i32) s, MAX(at) m FROM everything GROUP BY id, v"))[1].map((f) => [f.name, f.columnType, f.columnLength, f.decimals]));
await step("named", async () => (await connection.execute("SELECT :a + :b AS sum, :a AS again", { a: 2, b: 40 }))[0]);
await step("lists", async () => (await pool.query("SELECT id FROM everything WHERE id IN (?) AND ?? = ? ORDER BY id", [[1, 2, 3], "i8", -8]))[0]);
await step("bulk", async () => (await pool.query("INSERT INTO everything (i8, v) VALUES ?", [[[1, "a"], [2, "b"], [3, null]]]))[0]);
await step("set of an object", async () => (await pool.query("UPDATE everything SET ? WHERE id = ?", [{ v: "changed", i16: null, at: new Date(2024, 0, 2, 3, 4, 5) }, 3]))[0]);
await step("several statements", async () => (await connection.query({ sql: "SELECT 1 AS one; UPDATE everything SET i8 = 9 WHERE id = 4; SELECT i8 FROM everything WHERE id = 4", namedPlaceholders: false }))[0]);
await step("upsert", async () => (await connection.query("INSERT INTO everything (id, i8) VALUES (4, 1) AS new ON DUPLICATE KEY UPDATE i8 = new.i8 + 1"))[0]);
await step("prepare, many times", async () => {
    const statement = await connection.prepare("SELECT ? AS a, ? AS b");
    const rows = [];
    for (const values of [[1, "x"], [null, "2.5"], [7.5, "é"], [true, null]]) rows.push((await statement.execute(values))[0][0]);
    await statement.close();
    return rows;
});
await step("transaction", async () => {
    await connection.beginTransaction();
    await connection.query("DELETE FROM everything");
    const within = (await connection.query("SELECT COUNT(*) n FROM everything"))[0];
    const outside = (await pool.query("SELECT COUNT(*) n FROM everything"))[0];
    await connection.rollback();
    return [within, outside, (await pool.query("SELECT COUNT(*) n FROM everything"))[0]];
});
await step("stream", () => new Promise((resolve, reject) => {
    const plain = mysqlCallbacks.createConnection({ ...options, database: "mysql2" });
    const rows = [];
    plain.query("WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT i FROM n").stream({ highWaterMark: 5 })
        .on("data", (found) => rows.push(found.i)).on("error", reject).on("end", () => { plain.end(); resolve([rows.length, Math.max(...rows)]); });
}));
await step("load data", async () => {
    const admin2 = await mysql.createConnection({ ...options, database: "mysql2" });
    await admin2.query("SET GLOBAL local_infile = 1");
    await admin2.query("CREATE TABLE loaded (a INT, b VARCHAR(10))");
    const gave = (await admin2.query({ sql: "LOAD DATA LOCAL INFILE 'x' INTO TABLE loaded FIELDS TERMINATED BY ','", infileStreamFactory: () => Readable.from(["1,one\n2,two\n"]) }))[0];
    const rows = (await admin2.query("SELECT * FROM loaded ORDER BY a"))[0];
    await admin2.end();
    return [gave.affectedRows, rows];
});
await step("large packet", async () => (await pool.query("SELECT LENGTH(?) AS n", ["x".repeat(20_000_000)]))[0]);
for (const sql of ["SELECT nothing", "SELECT * FROM nowhere", "SELEC 1", "INSERT INTO everything (id) VALUES (1)", "INSERT INTO everything (i8) VALUES (1000)", "SELECT 1 FROM everything, everything", "CREATE TABLE everything (a INT)", "USE nowhere"]) {
    await step(`error: ${sql}`, () => refused(pool.query(sql)));
}
await step("change of user", async () => {
    await admin.query("CREATE USER other@localhost IDENTIFIED BY 'secret'");
    await admin.query("GRANT SELECT ON mysql2.* TO other@localhost");
    await admin.changeUser({ user: "other", password: "secret", database: "mysql2" });
    return [(await admin.query("SELECT CURRENT_USER() u, DATABASE() d"))[0], await refused(admin.query("DELETE FROM everything"))];
});
await step("compressed", async () => {
    const compressed = await mysql.createConnection({ ...options, database: "mysql2", compress: true });
    const rows = (await compressed.query("SELECT REPEAT('a', 100000) AS long_text"))[0][0].long_text.length;
    await compressed.end();
    return rows;
});
await step("pool", async () => {
    const sums = await Promise.all(Array.from({ length: 40 }, (_, i) => pool.execute("SELECT ? + 1 AS n", [i])));
    return sums.map(([rows]) => rows[0].n).reduce((a, b) => Number(a) + Number(b), 0);
});
await Promise.all([admin.end(), connection.end(), pool.end()]);

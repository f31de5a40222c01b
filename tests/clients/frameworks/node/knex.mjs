// Knex: migrations, the schema builder, queries, joins, subqueries, upserts, transactions, what it reads of a schema.
import knexOf from "knex";
import { host, port, refused, step } from "./steps.mjs";

const client = "mysql2";
const admin = knexOf({ client, connection: { host, port, user: "root" } });
await admin.raw("CREATE DATABASE knex");
const knex = knexOf({ client, connection: { host, port, user: "root", database: "knex", dateStrings: true } });

class Migrations {
    async getMigrations() { return ["1_people", "2_orders", "3_changes"]; }
    getMigrationName(name) { return name; }
    getMigration(name) { return steps[name]; }
}
const steps = {
    "1_people": {
        up: (k) => k.schema.createTable("people", (t) => {
            t.increments(); t.string("name", 60).notNullable().index(); t.string("email").unique(); t.integer("age").unsigned();
            t.decimal("balance", 12, 2).defaultTo("0.00"); t.boolean("active").defaultTo(true); t.json("settings"); t.text("notes", "mediumtext");
            t.enu("kind", ["admin", "user"]).defaultTo("user"); t.uuid("key"); t.binary("photo"); t.timestamp("seen_at", { precision: 6 });
            t.timestamps(true, true); t.comment("who buys");
        }),
        down: (k) => k.schema.dropTable("people"),
    },
    "2_orders": {
        up: (k) => k.schema.createTable("orders", (t) => {
            t.bigIncrements("id"); t.integer("person_id").unsigned().notNullable().references("id").inTable("people").onDelete("CASCADE");
            t.date("placed").notNullable(); t.double("weight"); t.float("discount"); t.index(["person_id", "placed"]);
        }),
        down: (k) => k.schema.dropTable("orders"),
    },
    "3_changes": {
        up: (k) => k.schema.alterTable("people", (t) => {
            t.renameColumn("notes", "remarks"); t.string("city").after("email"); t.string("name", 120).notNullable().alter(); t.dropColumn("photo"); t.dropIndex(["name"]); t.index(["city", "name"], "where_who");
        }),
        down: (k) => k.schema.alterTable("people", (t) => { t.dropIndex([], "where_who"); t.index(["name"]); t.dropColumn("city"); t.renameColumn("remarks", "notes"); t.binary("photo"); }),
    },
};
const migrationSource = new Migrations();
await step("migrate", () => knex.migrate.latest({ migrationSource }));
await step("migrations that there are", () => knex.migrate.list({ migrationSource }));
await step("columns", async () => Object.entries(await knex("people").columnInfo()).sort());
await step("definition", async () => (await knex.raw("SHOW CREATE TABLE people"))[0]);
await step("definition of orders", async () => (await knex.raw("SHOW CREATE TABLE orders"))[0]);
await step("has", async () => [await knex.schema.hasTable("people"), await knex.schema.hasTable("nobody"), await knex.schema.hasColumn("people", "city")]);
const at = "2024-01-02 03:04:05";
const people = ["Ada", "Bob", "Cyd", "Dan"].map((name, i) => ({ name, email: `${name.toLowerCase()}@example.org`, age: 20 + i, balance: 10.5 * i, settings: JSON.stringify({ theme: i % 2 ? "dark" : "light", tags: [i] }), city: i < 3 ? "Rome" : null, kind: i ? "user" : "admin", created_at: at, updated_at: at }));
await step("insert", () => knex("people").insert(people));
await step("insert in batches", () => knex.batchInsert("orders", Array.from({ length: 40 }, (_, i) => ({ person_id: 1 + (i % 3), placed: `2024-0${1 + (i % 9)}-15`, weight: i / 4, discount: 0.25 })), 7));
await step("select", () => knex("people").orderBy("id"));
await step("where", () => knex("people").where("age", ">", 20).whereNotNull("city").whereIn("name", ["Bob", "Cyd"]).orWhere((q) => q.whereNull("city").andWhereILike("email", "d%")).select("id", "name").orderBy("id"));
await step("json", () => knex("people").jsonExtract("settings", "$.theme", "theme").whereJsonPath("settings", "$.theme", "=", "dark").orderBy("id"));
await step("whereJsonSupersetOf", () => knex("people").whereJsonSupersetOf("settings", { theme: "light" }).pluck("name").then((n) => n.sort()));
await step("join and group", () => knex("orders as o").join("people as p", "p.id", "o.person_id").groupBy("p.name").select("p.name").count({ n: "*" }).sum({ w: "o.weight" }).avg({ a: "o.weight" }).orderBy("p.name"));
await step("left join", () => knex("people").leftJoin("orders", function () { this.on("orders.person_id", "people.id").andOnVal("orders.weight", ">", 9); }).countDistinct("orders.id as n").groupBy("people.id", "people.name").select("people.name").orderBy("people.id"));
await step("subquery", () => knex("people").whereExists(knex("orders").whereRaw("orders.person_id = people.id")).select("name", knex("orders").max("placed").whereRaw("person_id = people.id").as("last")).orderBy("name"));
await step("union", () => knex("people").select("name").where("age", "<", 22).unionAll((q) => q.select("name").from("people").where("age", ">=", 22)).orderBy("name"));
await step("with", () => knex.withRecursive("n", (q) => q.select(knex.raw("1 as i")).from(knex.raw("dual")).unionAll([knex.select(knex.raw("i + 1")).from("n").where("i", "<", 5)])).select("*").from("n"));
await step("window", () => knex("orders").select("id").rowNumber("nth", (q) => q.partitionBy("person_id").orderBy("id")).where("id", "<", 8).orderBy("id"));
await step("distinct by an expression", () => knex("people").distinct("age").orderByRaw("-age"));
await step("paged", () => knex("orders").orderBy("placed", "desc").orderBy("id").limit(5).offset(3).select("id", "placed"));
await step("update", () => knex("people").where({ name: "Bob" }).update({ balance: knex.raw("balance + ?", [1.25]), city: "Oslo" }));
await step("increment", () => knex("people").where("id", 1).increment({ age: 2, balance: 0.1 }));
await step("upsert", () => knex("people").insert({ email: "bob@example.org", name: "Robert" }).onConflict("email").merge(["name"]));
await step("ignore", () => knex("people").insert({ email: "bob@example.org", name: "Nobody" }).onConflict("email").ignore());
await step("after changes", () => knex("people").select("id", "name", "age", "balance", "city").orderBy("id"));
await step("transaction", async () => {
    await knex.transaction(async (t) => { await t("people").insert({ name: "Eve", email: "eve@example.org" }); throw new Error("no"); }).catch((e) => e.message);
    await knex.transaction(async (t) => {
        await t("people").where("id", 1).forUpdate().first();
        await t.transaction(async (inner) => { await inner("people").where("id", 1).del(); throw new Error("inner"); }).catch(() => {});
        await t("people").insert({ name: "Fay", email: "fay@example.org" });
    }, { isolationLevel: "repeatable read" });
    return knex("people").pluck("name").then((names) => names.sort());
});
await step("stream", async () => { let n = 0; for await (const row of knex("orders").select("id").stream()) n += row.id; return n; });
await step("refused: unique", () => refused(knex("people").insert({ name: "x", email: "bob@example.org" })));
await step("refused: foreign key", () => refused(knex("orders").insert({ person_id: 99, placed: "2024-01-01" })));
await step("refused: not null", () => refused(knex("people").insert({ name: null })));
await step("refused: enum", () => refused(knex("people").insert({ name: "x", kind: "king" })));
await step("cascade", async () => { await knex("people").where("id", 2).del(); return knex("orders").count({ n: "*" }); });
await step("truncate", async () => { await knex("orders").truncate(); return knex("orders").insert({ person_id: 1, placed: "2024-02-29" }); });
await step("roll back", () => knex.migrate.rollback({ migrationSource }, true));
await Promise.all([admin.destroy(), knex.destroy()]);

// TypeORM: entities (as schemas) with relations, what synchronize makes and finds different afterwards, migrations, the
// repository and the query builder, upserts, transactions, locks, errors of the database.
import "reflect-metadata";
import typeorm from "typeorm";
import { host, port, refused, step } from "./steps.mjs";

const { DataSource, EntitySchema, In, IsNull, Like, MoreThan, Not, Raw, Table, TableColumn, TableForeignKey, TableIndex } = typeorm;
const options = { type: "mysql", host, port, username: "root", dateStrings: true, logging: false };
const admin = await new DataSource({ ...options }).initialize();
await admin.query("CREATE DATABASE typeorm");

const User = new EntitySchema({ name: "User", tableName: "users", columns: {
    id: { type: "int", primary: true, generated: true }, name: { type: "varchar", length: 80 }, email: { type: "varchar", unique: true, nullable: true },
    age: { type: "int", unsigned: true, nullable: true }, balance: { type: "decimal", precision: 12, scale: 2, default: 0 }, active: { type: "boolean", default: true },
    settings: { type: "json", nullable: true }, role: { type: "enum", enum: ["admin", "user"], default: "user" }, flags: { type: "set", enum: ["a", "b", "c"], nullable: true },
    born: { type: "date", nullable: true }, seen: { type: "datetime", precision: 6, nullable: true }, photo: { type: "blob", nullable: true }, big: { type: "bigint", nullable: true },
    half: { type: "double", asExpression: "balance / 2", generatedType: "STORED", nullable: true }, createdAt: { type: "datetime", createDate: true, select: false }, version: { type: "int", version: true }, deletedAt: { type: "datetime", deleteDate: true, nullable: true },
}, indices: [{ columns: ["age", "name"] }], relations: {
    posts: { type: "one-to-many", target: "Post", inverseSide: "user", cascade: true }, profile: { type: "one-to-one", target: "Profile", joinColumn: true, cascade: true, nullable: true },
    boss: { type: "many-to-one", target: "User", nullable: true, onDelete: "SET NULL" },
} });
const Post = new EntitySchema({ name: "Post", tableName: "posts", columns: {
    id: { type: "bigint", primary: true, generated: "increment" }, title: { type: "varchar" }, body: { type: "mediumtext", nullable: true }, score: { type: "float", nullable: true },
}, indices: [{ columns: ["title"], fulltext: true }], relations: { user: { type: "many-to-one", target: "User", inverseSide: "posts", onDelete: "CASCADE", nullable: false }, tags: { type: "many-to-many", target: "Tag", joinTable: true, cascade: true } } });
const Tag = new EntitySchema({ name: "Tag", tableName: "tags", columns: { label: { type: "varchar", length: 30, primary: true } } });
const Profile = new EntitySchema({ name: "Profile", tableName: "profiles", columns: { id: { type: "varchar", length: 36, primary: true }, about: { type: "text" } } });
const ofAges = new EntitySchema({ name: "Ages", type: "view", tableName: "ages", expression: "SELECT role, AVG(age) AS mean FROM users GROUP BY role", columns: { role: { type: "varchar" }, mean: { type: "decimal" } } });

const db = await new DataSource({ ...options, database: "typeorm", entities: [User, Post, Tag, Profile, ofAges], migrationsTableName: "done" }).initialize();
await step("synchronize", () => db.synchronize());
await step("nothing left to be done", async () => (await db.driver.createSchemaBuilder().log()).upQueries.map((q) => q.query));
for (const table of ["users", "posts", "tags", "profiles", "posts_tags_tags"]) await step(`definition of ${table}`, async () => (await db.query(`SHOW CREATE TABLE ${table}`))[0]["Create Table"]);
const users = db.getRepository("User"), posts = db.getRepository("Post"), tags = db.getRepository("Tag");
await step("save", () => users.save([
    { name: "Ada", email: "ada@example.org", age: 36, balance: "12.50", settings: { theme: "dark", n: [1, null] }, flags: ["a", "c"], born: "1815-12-10", seen: "2024-02-29 12:00:00.123456", photo: Buffer.from([1, 2]), big: "9007199254740993", role: "admin" },
    { name: "Bob", email: "bob@example.org", age: 20 }, { name: "Cyd", age: 30, settings: { theme: "light" } }]).then((all) => all.map((u) => [u.id, u.version])));
await step("save with relations", async () => users.save({ name: "Eve", boss: { id: 1 }, profile: await db.getRepository("Profile").save({ id: "p1", about: "me" }), posts: [{ title: "one", score: 1.5, tags: [{ label: "x" }, { label: "y" }] }, { title: "two" }] }).then((u) => [u.id, u.posts.map((p) => p.id)]));
await step("find", () => users.find({ order: { id: "ASC" } }));
await step("relations", () => users.find({ relations: { posts: { tags: true }, profile: true, boss: true }, order: { id: "ASC", posts: { id: "DESC", tags: { label: "ASC" } } } }));
await step("relations, page", () => users.findAndCount({ relations: { posts: true }, order: { posts: { title: "DESC" }, id: "ASC" }, take: 2, skip: 1 }));
await step("separate queries", () => users.find({ relations: { posts: true }, relationLoadStrategy: "query", order: { id: "ASC" } }).then((all) => all.map((u) => u.posts.length)));
for (const [name, condition] of Object.entries({ in: { id: In([1, 3]) }, like: { name: Like("%b") }, more: { age: MoreThan(20) }, or: [{ name: "Ada" }, { age: IsNull() }], not: { email: Not(IsNull()) }, raw: { name: Raw((a) => `${a} = 'Bob'`) }, relation: { posts: { title: "two" } } }))
    await step(`where ${name}`, () => users.find({ where: condition, select: { id: true, name: true }, order: { id: "ASC" } }));
await step("query builder", () => users.createQueryBuilder("u").leftJoin("u.posts", "p").select("u.name", "name").addSelect("COUNT(p.id)", "n").groupBy("u.id").having("COUNT(p.id) >= :n", { n: 0 }).orderBy("n", "DESC").addOrderBy("u.id").getRawMany());
await step("subquery", () => users.createQueryBuilder("u").where((q) => `u.id IN ${q.subQuery().select("p.userId").from("Post", "p").where("p.title = :t").getQuery()}`).setParameter("t", "one").getMany());
await step("select of a subquery", () => users.createQueryBuilder("u").select("u.id", "id").addSelect((q) => q.select("MAX(p.title)").from("Post", "p").where("p.userId = u.id"), "last").orderBy("u.id").getRawMany());
await step("distinct", () => users.createQueryBuilder("u").select("u.role", "role").distinct(true).orderBy("u.role").getRawMany());
await step("joined, page, sorted by the other", () => users.createQueryBuilder("u").leftJoinAndSelect("u.posts", "p").orderBy("p.title", "ASC").addOrderBy("u.name", "DESC").take(3).getMany());
await step("stream", async () => { let n = 0; for await (const row of await users.createQueryBuilder("u").stream()) n += row.u_id; return n; });
await step("sums", async () => [await users.count(), await users.sum("age"), await users.average("age"), await users.maximum("balance"), await users.exists({ where: { name: "Ada" } })]);
await step("view", () => db.getRepository("Ages").find({ order: { role: "ASC" } }));
await step("update", () => users.update({ name: "Bob" }, { balance: () => "balance + 1.25", role: "admin" }).then((r) => r.affected));
await step("increment", async () => { await users.increment({ id: 1 }, "age", 2); return users.findOne({ where: { id: 1 }, select: { age: true, half: true, balance: true } }); });
await step("insert", () => users.createQueryBuilder().insert().values([{ name: "Fay" }, { name: "Gus", age: () => "40 + 2" }]).execute().then((r) => r.identifiers));
await step("upsert", async () => { await users.upsert([{ email: "bob@example.org", name: "Robert" }, { email: "hal@example.org", name: "Hal" }], ["email"]); return users.find({ select: { id: true, name: true }, order: { id: "ASC" } }); });
await step("ignore", () => tags.createQueryBuilder().insert().orIgnore().values([{ label: "x" }, { label: "new" }]).execute().then((r) => r.raw.affectedRows));
await step("version", async () => { const ada = await users.findOneBy({ id: 1 }); ada.name = "Ada L."; await users.save(ada); return (await users.findOneBy({ id: 1 })).version; });
await step("soft delete", async () => { await users.softDelete({ name: "Gus" }); const left = await users.count(); await users.restore({ name: "Gus" }); return [left, await users.count({ withDeleted: true })]; });
await step("relation builder", async () => { await posts.createQueryBuilder().relation("Post", "tags").of(2).add("x"); await posts.createQueryBuilder().relation("Post", "user").of(2).set(1); return posts.find({ relations: { tags: true, user: true }, order: { id: "ASC", tags: { label: "ASC" } } }).then((all) => all.map((p) => [p.title, p.user.name, p.tags])); });
await step("transaction", async () => {
    await db.transaction(async (m) => { await m.insert("User", { name: "Ivy" }); throw new Error("no"); }).catch(() => {});
    await db.transaction("SERIALIZABLE", async (m) => {
        const ada = await m.findOne("User", { where: { id: 1 }, lock: { mode: "pessimistic_write" } });
        await m.update("User", 1, { age: ada.age + 1 });
        await m.transaction(async (inner) => { await inner.delete("User", 1); throw new Error("inner"); }).catch(() => {});
    });
    return [await users.countBy({ name: "Ivy" }), (await users.findOneBy({ id: 1 })).age];
});
for (const mode of ["pessimistic_read", "pessimistic_write", "pessimistic_partial_write", "pessimistic_write_or_fail"])
    await step(`lock ${mode}`, () => db.transaction((m) => m.createQueryBuilder("User", "u").setLock(mode).where("u.id = 1").getMany()).then((r) => r.length));
await step("refused: unique", () => refused(users.insert({ name: "x", email: "ada@example.org" })));
await step("refused: foreign key", () => refused(posts.insert({ title: "x", user: { id: 999 } })));
await step("refused: out of range", () => refused(users.insert({ name: "x", age: -1 })));
await step("migration", async () => {
    const runner = db.createQueryRunner();
    await runner.createTable(new Table({ name: "scratch", columns: [{ name: "id", type: "int", isPrimary: true, isGenerated: true, generationStrategy: "increment" }, { name: "user", type: "int", isNullable: true }, { name: "note", type: "varchar", length: "20", default: "'none'", comment: "a note" }] }), true);
    await runner.addColumn("scratch", new TableColumn({ name: "extra", type: "decimal", precision: 8, scale: 3, default: "1.5" }));
    await runner.changeColumn("scratch", "note", new TableColumn({ name: "remark", type: "varchar", length: "40", isNullable: true, charset: "utf8mb4", collation: "utf8mb4_bin" }));
    await runner.createIndex("scratch", new TableIndex({ name: "extras", columnNames: ["extra", "remark"], isUnique: true }));
    await runner.createForeignKey("scratch", new TableForeignKey({ name: "of_user", columnNames: ["user"], referencedTableName: "users", referencedColumnNames: ["id"], onDelete: "CASCADE" }));
    const made = await runner.getTable("scratch");
    await runner.dropForeignKey("scratch", "of_user"); await runner.dropIndex("scratch", "extras"); await runner.renameTable("scratch", "scratched"); await runner.dropColumn("scratched", "extra");
    const left = await runner.getTable("scratched");
    await runner.dropTable("scratched"); await runner.release();
    return [made, left].map((t) => [t.name, t.columns.map((c) => [c.name, c.type, c.length, c.default, c.isNullable, c.comment, c.collation]), t.indices.map((i) => [i.name, i.columnNames, i.isUnique]), t.foreignKeys.map((k) => [k.name, k.columnNames, k.onDelete])]);
});
await step("remove", async () => { await users.remove(await users.findBy({ name: "Eve" })); return [await posts.count(), await users.count()]; });
await step("drop", () => db.dropDatabase());
await Promise.all([admin.destroy(), db.destroy()]);

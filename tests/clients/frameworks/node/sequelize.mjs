// Sequelize: models with associations of each kind, sync and the query interface, finders with nested includes, scopes,
// hooks, counts and pages, upserts, transactions, locks, validation and errors of the database.
import Sequelize from "sequelize";
import { host, port, refused, step } from "./steps.mjs";

const { DataTypes, Op, QueryTypes, col, fn, literal, where } = Sequelize;
const options = { host, port, dialect: "mysql", logging: false, dialectOptions: { dateStrings: true }, typeValidation: true };
const admin = new Sequelize.Sequelize("", "root", "", options);
await admin.query("CREATE DATABASE sequelize");
const db = new Sequelize.Sequelize("sequelize", "root", "", options);

const User = db.define("user", {
    name: { type: DataTypes.STRING(80), allowNull: false, validate: { len: [2, 80] } }, email: { type: DataTypes.STRING, unique: true },
    age: DataTypes.INTEGER.UNSIGNED, balance: { type: DataTypes.DECIMAL(12, 2), defaultValue: 0 }, active: { type: DataTypes.BOOLEAN, defaultValue: true },
    settings: DataTypes.JSON, key: { type: DataTypes.UUID }, role: { type: DataTypes.ENUM("admin", "user"), defaultValue: "user" },
    born: DataTypes.DATEONLY, seen: DataTypes.DATE(6), photo: DataTypes.BLOB, initial: { type: DataTypes.VIRTUAL, get() { return this.name?.[0]; } },
}, { timestamps: false, indexes: [{ fields: ["age", "name"] }], scopes: { grown: { where: { age: { [Op.gte]: 21 } } } } });
const Post = db.define("post", { title: DataTypes.STRING, body: DataTypes.TEXT("medium"), score: DataTypes.DOUBLE, deletedAt: DataTypes.DATE }, { timestamps: true, createdAt: false, updatedAt: false, paranoid: true });
const Tag = db.define("tag", { label: { type: DataTypes.STRING(30), primaryKey: true } }, { timestamps: false });
const Profile = db.define("profile", { about: DataTypes.STRING }, { timestamps: false });
User.hasMany(Post, { as: "posts", foreignKey: { name: "userId", allowNull: false }, onDelete: "CASCADE" });
Post.belongsTo(User, { as: "user", foreignKey: "userId" });
Post.belongsToMany(Tag, { through: "post_tags", timestamps: false });
Tag.belongsToMany(Post, { through: "post_tags", timestamps: false });
User.hasOne(Profile, { foreignKey: "userId" });
User.belongsTo(User, { as: "boss", foreignKey: "bossId", constraints: true });

const plain = (found) => JSON.parse(JSON.stringify(found));
await step("sync", async () => { await db.sync(); });
await step("sync again, force and alter", async () => { await db.sync({ force: true }); await db.sync({ alter: true }); });
await step("tables", async () => (await db.getQueryInterface().showAllTables()).map((t) => t.tableName ?? t).sort());
for (const table of ["users", "posts", "tags", "post_tags", "profiles"]) {
    await step(`describe ${table}`, () => db.getQueryInterface().describeTable(table));
    await step(`indexes of ${table}`, async () => (await db.getQueryInterface().showIndex(table)).map((i) => [i.name, i.primary, i.unique, i.fields.map((f) => f.attribute)]));
    await step(`foreign keys of ${table}`, () => db.getQueryInterface().getForeignKeyReferencesForTable(table));
}
await step("create", async () => plain(await User.create({ name: "Ada", email: "ada@example.org", age: 36, balance: "12.50", settings: { theme: "dark", n: [1, { x: null }] }, born: "1815-12-10", seen: "2024-02-29 12:00:00.123456", photo: Buffer.from([1, 2, 3]), role: "admin" })));
await step("create many", async () => plain(await User.bulkCreate([{ name: "Bob", email: "bob@example.org", age: 20, bossId: 1 }, { name: "Cyd", email: "cyd@example.org", age: 30, bossId: 1, settings: { theme: "light" } }, { name: "Dan", email: "dan@example.org", bossId: 2 }])).length);
await step("create with associations", async () => plain(await User.create({ name: "Eve", posts: [{ title: "one", score: 1.5, tags: [{ label: "x" }, { label: "y" }] }, { title: "two", score: 2.5 }], profile: { about: "me" } }, { include: [{ association: "posts", include: [Tag] }, Profile] })));
await step("all", async () => plain(await User.findAll({ order: ["id"] })));
await step("include", async () => plain(await User.findAll({ include: [{ association: "posts", include: [Tag] }, Profile, "boss"], order: ["id", [{ model: Post, as: "posts" }, "id", "DESC"], [{ model: Post, as: "posts" }, Tag, "label"]] })));
await step("include, required, page", async () => plain(await User.findAndCountAll({ include: [{ association: "posts", where: { score: { [Op.gt]: 1 } }, required: true }], limit: 2, order: ["id"] })));
await step("separate", async () => plain(await User.findAll({ include: [{ association: "posts", separate: true, order: ["id"], limit: 1 }], order: ["id"] })));
await step("through", async () => plain(await Tag.findAll({ include: [{ model: Post, through: { attributes: [] }, attributes: ["title"] }], order: ["label"] })));
for (const [name, condition] of Object.entries({
    or: { [Op.or]: [{ age: { [Op.between]: [20, 30] } }, { name: { [Op.like]: "E%" } }] }, in: { id: [1, 3], email: { [Op.ne]: null } }, not: { [Op.not]: { name: ["Ada"] }, age: { [Op.is]: null } },
    json: { "settings.theme": "dark" }, nested: { settings: { theme: "light" } }, regexp: { name: { [Op.regexp]: "^[AB]" } }, startsWith: { email: { [Op.startsWith]: "c" } },
})) await step(`where ${name}`, async () => plain(await User.findAll({ where: condition, attributes: ["id"], order: ["id"] })));
await step("functions", async () => plain(await User.findAll({ attributes: [[fn("UPPER", col("name")), "loud"], [literal("age IS NULL"), "ageless"]], where: where(fn("CHAR_LENGTH", col("name")), 3), order: [[fn("LOWER", col("name")), "DESC"]] })));
await step("subquery in the attributes, grouped by", async () => plain(await User.findAll({ attributes: [[literal("(SELECT COUNT(*) FROM posts p WHERE p.userId = user.id)"), "posted"], [fn("COUNT", col("id")), "n"]], group: ["posted"], order: [literal("posted")], raw: true })));
await step("group", async () => plain(await User.findAll({ attributes: ["role", [fn("COUNT", col("id")), "n"], [fn("AVG", col("age")), "mean"]], group: "role", having: literal("COUNT(id) > 0"), order: ["role"], raw: true })));
await step("aggregates", async () => [await User.count({ distinct: true, col: "role" }), await User.max("age"), await User.sum("balance"), await User.min("born"), await User.scope("grown").count(), await User.count({ group: ["role"] })]);
await step("update", () => User.update({ balance: literal("balance + 1.25"), active: false }, { where: { age: { [Op.lt]: 35 } } }));
await step("update with limit", () => User.update({ balance: 7 }, { where: {}, limit: 2, order: ["id"] }).catch((e) => e.message));
await step("increment", async () => { await User.increment({ age: 2 }, { where: { id: [1, 2] } }); return plain(await User.findAll({ attributes: ["id", "age", "balance", "active"], order: ["id"] })); });
await step("upsert", async () => { await User.upsert({ email: "bob@example.org", name: "Robert", age: 50 }); return plain(await User.findOne({ where: { email: "bob@example.org" } })); });
await step("bulk upsert", async () => { await User.bulkCreate([{ id: 3, name: "Cydney", email: "cyd@example.org" }, { id: 9, name: "Gus" }], { updateOnDuplicate: ["name"] }); return plain(await User.findAll({ attributes: ["id", "name"], order: ["id"] })); });
await step("find or create", async () => [(await User.findOrCreate({ where: { name: "Ada" } }))[1], (await User.findOrCreate({ where: { name: "Hal" }, defaults: { age: 9 } }))[1]]);
await step("associations", async () => { const post = await Post.findOne({ where: { title: "two" } }); await post.setTags(["x"]); await post.createTag({ label: "z" }); await post.removeTag("x"); return plain(await post.getTags({ joinTableAttributes: [] })); });
await step("soft delete", async () => { await Post.destroy({ where: { title: "one" } }); const left = await Post.count(); await Post.restore({ where: { title: "one" } }); return [left, await Post.count(), await Post.count({ paranoid: false })]; });
await step("transaction", async () => {
    await db.transaction(async (transaction) => { await User.create({ name: "Ivy" }, { transaction }); throw new Error("no"); }).catch(() => {});
    await db.transaction({ isolationLevel: "READ COMMITTED" }, async (transaction) => { const ada = await User.findByPk(1, { transaction, lock: transaction.LOCK.UPDATE, skipLocked: true }); ada.age += 1; await ada.save({ transaction }); });
    return [await User.count({ where: { name: "Ivy" } }), (await User.findByPk(1)).age];
});
await step("refused: unique", () => refused(User.create({ name: "x1", email: "ada@example.org" })));
await step("refused: foreign key", () => refused(Post.create({ title: "x", userId: 999 })));
await step("refused: no table", () => refused(db.query("SELECT * FROM nowhere")));
await step("raw", () => db.query("SELECT id, name FROM users WHERE id > :id ORDER BY id", { replacements: { id: 2 }, type: QueryTypes.SELECT }));
await step("bound", () => db.query("SELECT $1 + 1 AS n, name FROM users WHERE name = $2", { bind: [41, "Ada"], type: QueryTypes.SELECT }));
await step("query interface", async () => {
    const q = db.getQueryInterface();
    await q.addColumn("users", "city", { type: DataTypes.STRING(20), after: "email", defaultValue: "?" }); await q.changeColumn("users", "city", { type: DataTypes.STRING(40), allowNull: false, defaultValue: "" });
    await q.renameColumn("users", "city", "town"); await q.addIndex("users", ["town"], { name: "towns" }); await q.addConstraint("users", { fields: ["town", "name"], type: "unique", name: "once" });
    await q.removeIndex("users", "towns"); await q.removeConstraint("users", "once"); await q.createTable("scratch", { id: { type: DataTypes.BIGINT, autoIncrement: true, primaryKey: true } }); await q.renameTable("scratch", "scratched"); await q.dropTable("scratched");
    return [await q.describeTable("users"), (await q.showAllTables()).length];
});
await step("delete", async () => [await User.destroy({ where: { name: "Eve" } }), await Post.count({ paranoid: false })]);
await step("drop", async () => { await db.drop(); return db.getQueryInterface().showAllTables(); });
await Promise.all([admin.close(), db.close()]);

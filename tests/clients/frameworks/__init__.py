"""The suites by the names that tests/clients/suites takes.

Each is a module with `install(cache)`, which fetches the package and gives what `run` needs, `run(package, address, work,
parts)`, which gives {test: (passed | failed | skipped, why)}, and `name_of(test)`, which takes out of a test's name what
differs between servers.
"""

from . import django, go_sql_driver, java, node, pymysql, rust, sqlalchemy

SUITES = {
    "sqlalchemy": sqlalchemy,
    "django": django,
    "pymysql": pymysql,
    "go-sql-driver": go_sql_driver,
    "mysql2": node.Program("mysql2"),
    "knex": node.Program("knex"),
    "sequelize": node.Program("sequelize"),
    "typeorm": node.Program("typeorm"),
    "connector-j": java.Program("Jdbc", "jdbc:mysql:"),
    "mariadb-connector-j": java.Program("Jdbc", "jdbc:mariadb:"),
    "hibernate": java.Program("Hibernate"),
    "mysql_async": rust.OwnTests("mysql_async", "0.37.1", ["minimal-rust", "derive", "chrono", "time", "rust_decimal", "bigdecimal", "binlog"]),
    "mysql": rust.OwnTests("mysql", "28.0.4", ["default-rust", "chrono", "time", "rust_decimal", "bigdecimal", "binlog"]),
    "sqlx": rust.Program(),
}

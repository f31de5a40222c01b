"""The HTTP endpoint as programs see it: who gets in, what Prometheus reads, what the console asks for."""

import base64
import http.client
import json
import socket
import ssl
import sys
import time

import pymysql
from prometheus_client.parser import text_string_to_metric_families

port, endpoint = int(sys.argv[1]), sys.argv[2]


def connect(user="root", password="", **more):
    return pymysql.connect(host="127.0.0.1", port=port, user=user, password=password, autocommit=True, **more)


def get(path, user=None, password="", method="GET", tls=False, headers=None):
    host, number = endpoint.rsplit(":", 1)
    if tls:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        conn = http.client.HTTPSConnection(host, int(number), timeout=10, context=context)
    else:
        conn = http.client.HTTPConnection(host, int(number), timeout=10)
    headers = dict(headers or {})
    if user is not None:
        token = base64.b64encode(f"{user}:{password}".encode()).decode()
        headers["Authorization"] = f"Basic {token}"
    conn.request(method, path, headers=headers)
    response = conn.getresponse()
    body = response.read().decode()
    conn.close()
    return response, body


def check(name, found, wanted):
    if found != wanted:
        sys.exit(f"{name}: {found!r} instead of {wanted!r}")
    print(f"ok  {name}")


db = connect()
sql = db.cursor()
for statement in [
    "CREATE DATABASE shop",
    "CREATE TABLE shop.orders (id INT PRIMARY KEY, amount DECIMAL(10, 2))",
    "INSERT INTO shop.orders VALUES (1, 10.5), (2, 20), (3, 30)",
    "CREATE USER viewer@localhost IDENTIFIED BY 'seeing'",
    "CREATE USER watcher@localhost IDENTIFIED BY 'pass:word'",
    "GRANT PROCESS, REPLICATION CLIENT ON *.* TO watcher@localhost",
    "CREATE USER native@localhost IDENTIFIED WITH mysql_native_password BY 'old'",
    "CREATE USER tls@localhost IDENTIFIED BY 'x' REQUIRE SSL",
    "CREATE USER locked@localhost IDENTIFIED BY 'x' ACCOUNT LOCK",
    "CREATE USER expired@localhost IDENTIFIED BY 'x' PASSWORD EXPIRE",
]:
    sql.execute(statement)

# Who gets in.
response, _ = get("/")
check("without an account", (response.status, response.headers["WWW-Authenticate"][:5]), (401, "Basic"))
for name, user, password, tls, status in [
    ("a wrong password", "watcher", "wrong", False, 401),
    ("no password", "watcher", "", False, 401),
    ("nobody", "nobody", "x", False, 401),
    ("a password with a colon", "watcher", "pass:word", False, 200),
    ("the same again", "watcher", "pass:word", False, 200),
    ("mysql_native_password", "native", "old", False, 200),
    ("root without a password on this machine", "root", "", False, 200),
    ("an account that asks for TLS, without", "tls", "x", False, 401),
    ("an account that asks for TLS, with", "tls", "x", True, 200),
    ("TLS", "watcher", "pass:word", True, 200),
    ("a locked account", "locked", "x", False, 403),
    ("an expired password", "expired", "x", False, 403),
]:
    check(name, get("/metrics", user, password, tls=tls)[0].status, status)
check("another scheme", get("/", headers={"Authorization": "Bearer x"})[0].status, 401)
sql.execute("ALTER USER watcher@localhost IDENTIFIED BY 'new'")
check("a password that was changed", get("/metrics", "watcher", "pass:word")[0].status, 401)
check("the new one", get("/metrics", "watcher", "new")[0].status, 200)

# Other requests.
check("POST", get("/metrics", "watcher", "new", method="POST")[0].status, 405)
check("HEAD", [get("/metrics", "watcher", "new", method="HEAD")[n] for n in (1,)], [""])
check("no such page", get("/etc/passwd", "watcher", "new")[0].status, 404)
check("a path that goes up", get("/../../etc/passwd", "watcher", "new")[0].status, 404)
with socket.create_connection(tuple(endpoint.split(":"))) as raw:
    raw.sendall(b"NONSENSE\r\n\r\n")
    check("no HTTP", raw.recv(100).split(b"\r\n")[0], b"HTTP/1.1 400 Bad Request")
with socket.create_connection(tuple(endpoint.split(":"))) as raw:
    try:
        raw.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * 1_000_000)
        refused = raw.recv(100).split(b"\r\n")[0].split()[1] in (b"400", b"431")
    except (BrokenPipeError, ConnectionResetError):
        refused = True
    check("an endless head", refused, True)

# What Prometheus reads.
for n in range(50):
    sql.execute("SELECT amount FROM shop.orders WHERE id = %s", (n,))
sql.execute("SELECT SUM(amount) FROM shop.orders")
response, text = get("/metrics", "watcher", "new")
check("its content type", response.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
families = {family.name: family for family in text_string_to_metric_families(text)}
value = {sample.name: sample.value for family in families.values() for sample in family.samples if not sample.labels}
check("statements", value["avocet_statements_total"] >= 60, True)
check("a histogram", families["avocet_commit_wait_seconds"].type, "histogram")
buckets = [s for s in families["avocet_commit_wait_seconds"].samples if s.name.endswith("_bucket")]
check("its buckets grow", all(a.value <= b.value for a, b in zip(buckets, buckets[1:])), True)
check("its last is all", buckets[-1].value, value["avocet_commit_wait_seconds_count"])


def memory():
    """Tables are counted now and then."""
    families = text_string_to_metric_families(get("/metrics", "watcher", "new")[1])
    return next({s.labels["use"]: s.value for s in f.samples} for f in families if f.name == "avocet_memory_bytes")


for _ in range(100):
    if memory()["hot_pages"] > 0:
        break
    time.sleep(0.1)
check("memory", 0 < sum(memory().values()) < value["avocet_memory_limit_bytes"], True)
sql.execute("SELECT name, value FROM avocet.metrics WHERE name = 'avocet_memory_limit_bytes'")
check("the same by SQL", sql.fetchone(), ("avocet_memory_limit_bytes", value["avocet_memory_limit_bytes"]))

# What the console asks for.
for name in ["server", "metrics", "activity", "statements", "replication", "tables", "routes"]:
    response, body = get(f"/api/{name}", "watcher", "new")
    answer = json.loads(body)
    check(f"/api/{name}", (response.status, sorted(answer)), (200, ["columns", "rows"]))


def top(user, password):
    answer = json.loads(get("/api/statements", user, password)[1])
    return {row[1]: dict(zip(answer["columns"], row)) for row in answer["rows"]}


found = top("watcher", "new")["SELECT `amount` FROM `shop` . `orders` WHERE `id` = ?"]
check("a digest", (found["count"], found["row_count"], found["errors"]), (50, 3, 0))
check("statements of others", top("viewer", "seeing"), {})

# A connection of HTTP is one of the server's.
kept = http.client.HTTPConnection(*endpoint.split(":"), timeout=10)
headers = {"Authorization": "Basic " + base64.b64encode(b"watcher:new").decode()}


def ask():
    kept.request("GET", "/api/server", headers=headers)
    return json.loads(kept.getresponse().read())["rows"][0][0]


check("a session", [ask(), ask()], ["watcher@localhost"] * 2)
sql.execute("SELECT id FROM performance_schema.processlist WHERE user = 'watcher'")
(connection,) = sql.fetchone()
sql.execute(f"KILL {connection}")
time.sleep(0.2)
try:
    ask()
    ended = False
except (http.client.HTTPException, OSError):
    ended = True
check("KILL ends it", ended, True)

# Summaries by digest.
for text in ["SELECT nothing FROM shop.orders", "SELECT nothing FROM shop.orders"]:
    try:
        sql.execute(text)
    except pymysql.err.OperationalError:
        pass
SUMMARY = "performance_schema.events_statements_summary_by_digest"
sql.execute(f"SELECT COUNT_STAR, SUM_ERRORS FROM {SUMMARY} WHERE DIGEST_TEXT = 'SELECT NOTHING FROM `shop` . `orders`' OR DIGEST_TEXT = 'SELECT `nothing` FROM `shop` . `orders`'")
check("errors", sql.fetchone(), (2, 2))
sql.execute(f"SELECT COUNT(*) FROM {SUMMARY} WHERE QUERY_SAMPLE_TEXT LIKE '%pass:word%'")
check("no password in samples", sql.fetchone(), (0,))
sql.execute(f"TRUNCATE TABLE {SUMMARY}")
sql.execute(f"SELECT DIGEST_TEXT FROM {SUMMARY}")
check("TRUNCATE TABLE begins anew", sql.fetchall(), (("TRUNCATE TABLE `performance_schema` . `events_statements_summary_by_digest`",),))
sql.execute("SET avocet_statement_summary = OFF")
sql.execute("SELECT 'not counted'")
sql.execute(f"SELECT COUNT(*) FROM {SUMMARY} WHERE DIGEST_TEXT = 'SELECT ?'")
check("switched off", sql.fetchone(), (0,))

"""From tables of a real PostgreSQL, through the real Debezium engine, into Thalweg, and back out as changes: the final
result of each query must be what PostgreSQL itself says of it.

The workload is random but seeded: inserts, updates that leave a TOASTed column alone, changes of keys, deletes,
transactions that are rolled back, TRUNCATE; some of it before the snapshot, most of it after. The engine is stopped
in the middle without having told PostgreSQL how far it came, so that a stretch of the log comes twice.

Run by test.sh. Everything lives in a temporary directory; the server listens on a port that was free.
"""

import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from decimal import Decimal
from pathlib import Path

SEED = int(os.environ.get("THALWEG_E2E_SEED", "1"))
PATIENCE = 100  # seconds for the engine to deliver what was written

SCHEMA = """
CREATE TABLE customers (id INT PRIMARY KEY, name TEXT NOT NULL, region TEXT, notes TEXT);
ALTER TABLE customers ALTER COLUMN notes SET STORAGE EXTERNAL;
CREATE TABLE orders (
  id BIGINT PRIMARY KEY, customer INT NOT NULL, amount NUMERIC(12, 2), status TEXT, placed TIMESTAMP NOT NULL,
  shipped TIMESTAMPTZ, due DATE, doc JSONB, proof BYTEA, tags TEXT[]);
CREATE TABLE items (
  order_id BIGINT, line SMALLINT, sku TEXT, qty INT, price NUMERIC(10, 4), ratio DOUBLE PRECISION,
  PRIMARY KEY (order_id, line));
ALTER TABLE items REPLICA IDENTITY FULL;
CREATE TABLE visits (id INT PRIMARY KEY, page TEXT, ms INT);
"""

TABLES = ["customers", "orders", "items", "visits"]

# As Thalweg declares them.
DECLARATIONS = {
    "customers": "id INT PRIMARY KEY, name TEXT NOT NULL, region TEXT, notes TEXT",
    "orders": "id BIGINT PRIMARY KEY, customer INT NOT NULL, amount DECIMAL(12, 2), status TEXT, "
    "placed TIMESTAMP NOT NULL, shipped TIMESTAMPTZ, due DATE, doc JSON, proof BYTEA, tags TEXT[], "
    "WATERMARK FOR placed AS placed - INTERVAL '400 days'",
    "items": "order_id BIGINT, line SMALLINT, sku TEXT, qty INT, price DECIMAL(10, 4), ratio DOUBLE PRECISION, "
    "PRIMARY KEY (order_id, line)",
    "visits": "id INT PRIMARY KEY, page TEXT, ms INT",
}

# Name, key, columns of the sink, and a query that both understand.
QUERIES = [
    ("copies", ["id"], "id BIGINT, customer INT, amount DECIMAL(12, 2), status TEXT, placed TIMESTAMP, shipped TIMESTAMPTZ, due DATE",
     "SELECT id, customer, amount, status, placed, shipped, due FROM orders"),
    ("notes", ["id"], "id INT, name TEXT, length BIGINT",
     "SELECT id, name, length(notes) AS length FROM customers WHERE notes IS NOT NULL"),
    ("per_customer", ["customer"], "customer INT, n BIGINT, total DECIMAL(22, 2), first TIMESTAMP, last TIMESTAMP",
     "SELECT customer, count(*) AS n, sum(amount) AS total, min(placed) AS first, max(placed) AS last FROM orders GROUP BY customer"),
    ("large", ["status"], "status TEXT, n BIGINT, total DECIMAL(22, 2)",
     "SELECT coalesce(status, 'none') AS status, count(*) AS n, sum(amount) AS total FROM orders GROUP BY 1 HAVING sum(amount) > 500"),
    ("skus", ["sku"], "sku TEXT, qty BIGINT, worth DECIMAL(30, 4), dearest DECIMAL(10, 4)",
     "SELECT sku, sum(qty) AS qty, sum(qty * price) AS worth, max(price) AS dearest FROM items GROUP BY sku"),
    ("regions", ["region"], "region TEXT, n BIGINT",
     "SELECT coalesce(region, 'nowhere') AS region, count(*) AS n FROM customers GROUP BY 1"),
    ("pages", ["page"], "page TEXT, n BIGINT, ms BIGINT",
     "SELECT page, count(*) AS n, sum(ms) AS ms FROM visits GROUP BY page"),
    ("ids", ["id"], "id BIGINT, n BIGINT",
     "SELECT id, count(*) AS n FROM (SELECT id FROM orders UNION ALL SELECT CAST(id AS BIGINT) FROM customers) AS both_of_them GROUP BY id"),
]


# Where a person reads; what the engine says goes into a file.
OUT = os.fdopen(os.dup(1), "w")


def say(message):
    print(message, file=OUT, flush=True)


def fail(message):
    raise Failed(f"debezium: {message}")


class Failed(Exception):
    """The test has not passed."""


class Server:
    """A PostgreSQL server of our own."""

    def __init__(self, directory):
        self.bin = Path(subprocess.check_output(["pg_config", "--bindir"], text=True).strip())
        self.directory = directory
        self.data = directory / "pg"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        # The server refuses to be root.
        self.user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        if self.user:
            shutil.chown(directory, "postgres")

    def run(self, *command):
        done = subprocess.run([*self.user, *map(str, command)], capture_output=True, text=True, cwd="/")
        if done.returncode:
            fail(f"{command[0]}: {done.stderr}{done.stdout}")

    def __enter__(self):
        self.run(self.bin / "initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
        options = (
            f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.directory} "
            "-c wal_level=logical -c fsync=off -c max_wal_senders=4 -c max_replication_slots=4"
        )
        self.run(self.bin / "pg_ctl", "-D", self.data, "-l", self.directory / "pg.log", "-o", options, "-w", "start")
        return self

    def __exit__(self, *_):
        self.run(self.bin / "pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop")

    def sql(self, text):
        """The rows of the last query, as tuples of text or None."""
        command = [self.bin / "psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-qAt", "-F", "\x1f",
                   "-P", "null=\x1e", "-v", "ON_ERROR_STOP=1"]
        done = subprocess.run(command, input=text, capture_output=True, text=True)
        if done.returncode:
            fail(f"psql: {done.stderr}")
        rows = done.stdout.split("\n")[:-1]
        return [tuple(None if cell == "\x1e" else cell for cell in row.split("\x1f")) for row in rows]


class Workload:
    """Statements that change the tables, remembering which keys there are."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.keys = {table: set() for table in TABLES}
        self.next = 1

    def text(self):
        return self.rng.choice(["'new'", "'paid'", "'sent'", "NULL", "'été ''quoted'' \\ \"'"])

    def time(self):
        return f"TIMESTAMP '2024-01-01' + {self.rng.randrange(30_000_000_000_000)} * INTERVAL '1 microsecond'"

    def row(self, table, key):
        rng = self.rng
        maybe = lambda value: value if rng.random() < 0.85 else "NULL"
        if table == "customers":
            notes = maybe(f"repeat('{rng.choice('abc')}', {rng.choice([10, 9000])})")
            return f"{key}, 'name {rng.randrange(50)}', {maybe(repr(rng.choice(['north', 'south'])))}, {notes}"
        if table == "orders":
            doc = maybe(f"""'{{"n": {rng.randrange(9)}, "s": "x\\"y"}}'""")
            return (
                f"{key}, {rng.randrange(20)}, {maybe(rng.randrange(-100, 90000) / 100)}, {self.text()}, {self.time()}, "
                f"{maybe('(' + self.time() + ') AT TIME ZONE ' + repr('UTC'))}, {maybe(f'DATE {chr(39)}2024-01-01{chr(39)} + {rng.randrange(400)}')}, {doc}, "
                f"{maybe(repr(chr(92) + 'xdead00beef'))}, {maybe('ARRAY[' + repr('a') + ', NULL]')}"
            )
        if table == "items":
            return (
                f"{key[0]}, {key[1]}, 'sku {rng.randrange(12)}', {maybe(rng.randrange(1, 9))}, "
                f"{maybe(rng.randrange(1_000_000) / 10_000)}, {maybe(rng.random())}"
            )
        return f"{key}, '/{rng.randrange(6)}', {maybe(rng.randrange(5000))}"

    def new_key(self, table):
        self.next += 1
        return (self.next // 3, self.next % 3) if table == "items" else self.next

    def where(self, table, key):
        return f"order_id = {key[0]} AND line = {key[1]}" if table == "items" else f"id = {key}"

    def statement(self):
        rng, table = self.rng, self.rng.choice(TABLES)
        keys = self.keys[table]
        kind = rng.random()
        if kind < 0.45 or not keys:
            key = self.new_key(table)
            if key in keys:
                return ""
            keys.add(key)
            return f"INSERT INTO {table} VALUES ({self.row(table, key)});"
        key = rng.choice(sorted(keys))
        where = self.where(table, key)
        if kind < 0.75:
            change = {
                "customers": f"name = 'name {rng.randrange(50)}'" if rng.random() < 0.7 else f"notes = repeat('z', {rng.choice([5, 8000])})",
                "orders": f"amount = {rng.randrange(90000) / 100}, status = {self.text()}",
                "items": f"qty = {rng.randrange(1, 9)}",
                "visits": f"ms = {rng.randrange(5000)}",
            }[table]
            return f"UPDATE {table} SET {change} WHERE {where};"
        if kind < 0.82:
            other = self.new_key(table)
            if other in keys:
                return ""
            keys.discard(key)
            keys.add(other)
            change = f"order_id = {other[0]}, line = {other[1]}" if table == "items" else f"id = {other}"
            if table == "customers":
                # Left alone, a TOASTed value would be neither in the record nor under the new key.
                change += ", notes = notes || ''"
            return f"UPDATE {table} SET {change} WHERE {where};"
        keys.discard(key)
        return f"DELETE FROM {table} WHERE {where};"

    def transaction(self):
        n = self.rng.randrange(1, 8)
        if self.rng.random() < 0.1:
            before = {table: set(keys) for table, keys in self.keys.items()}
            body = "".join(self.statement() for _ in range(n))
            self.keys = before
            return f"BEGIN;{body}ROLLBACK;"
        return f"BEGIN;{''.join(self.statement() for _ in range(n))}COMMIT;"

    def transactions(self, n):
        return "\n".join(self.transaction() for _ in range(n))

    def truncate(self, table):
        self.keys[table].clear()
        return f"TRUNCATE {table};"


def properties(server, directory):
    return {
        "name": "engine",
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
        "offset.storage.file.filename": str(directory / "offsets.dat"),
        # Never while it runs: after a restart a stretch of the log comes again.
        "offset.flush.interval.ms": "3600000",
        "database.hostname": "127.0.0.1",
        "database.port": str(server.port),
        "database.user": "postgres",
        "database.password": "none",
        "database.dbname": "postgres",
        "topic.prefix": "shop",
        "plugin.name": "pgoutput",
        "publication.autocreate.mode": "all_tables",
        "slot.name": "thalweg",
        "snapshot.mode": "initial",
        "skipped.operations": "none",
        "key.converter.schemas.enable": "false",
        "value.converter.schemas.enable": "false",
        "poll.interval.ms": "50",
    }


class Capture:
    """Collects what the engine emits, by topic, until a logical message says that it was all."""

    def __init__(self):
        self.records = {f"shop.public.{table}": [] for table in TABLES}
        self.began = threading.Event()
        self.arrived = threading.Event()
        self.wanted = None

    def take(self, records):
        self.began.set()
        for record in records:
            topic, value = str(record.destination()), record.value()
            if topic == "shop.message":
                if json.loads(str(value))["message"]["prefix"] == self.wanted:
                    self.arrived.set()
            elif topic in self.records:
                self.records[topic].append("null" if value is None else str(value))

    def until(self, server, directory, wanted, during=lambda: None):
        """Runs the engine until the message of that name has come."""
        from pydbzengine import BasePythonChangeHandler, DebeziumJsonEngine

        take = self.take

        class Handler(BasePythonChangeHandler):
            def handleJsonBatch(self, records):
                take(records)

        self.wanted = wanted
        self.arrived.clear()
        engine = DebeziumJsonEngine(properties=properties(server, directory), handler=Handler(),
                                    jvm_opts=["-Xmx384m", "-XX:TieredStopAtLevel=1"])
        thread = threading.Thread(target=engine.run, daemon=True)
        thread.start()
        if not self.began.wait(PATIENCE):
            fail(f"the engine has delivered nothing within {PATIENCE} s")
        during()
        if not self.arrived.wait(PATIENCE):
            fail(f"the engine has not delivered everything within {PATIENCE} s; see its log in {directory}")
        engine.close()
        thread.join(PATIENCE)


def say_end(server, name):
    server.sql(f"SELECT pg_logical_emit_message(true, '{name}', '');")


def script(directory):
    parts = []
    for table, columns in DECLARATIONS.items():
        parts.append(
            f"CREATE TABLE {table} ({columns}) WITH (connector = 'single_file', path = '{directory}/{table}.ndjson', "
            "format = 'debezium_json');"
        )
    for name, key, columns, query in QUERIES:
        parts.append(
            f"CREATE TABLE out_{name} ({columns}, PRIMARY KEY ({', '.join(key)})) WITH (connector = 'single_file', "
            f"path = '{directory}/out_{name}.ndjson', format = 'debezium_json', \"json.timestamp_format\" = 'rfc3339');"
            f"INSERT INTO out_{name} {query};"
        )
    return "SET updating_ttl = '0'; SET pipeline.epoch_max_rows = 97;\n" + "\n".join(parts)


def final_rows(path, key):
    """What is left of a changelog; also how many changes it has."""
    rows, n = {}, 0
    for line in path.read_text().splitlines():
        change = json.loads(line, parse_float=Decimal)
        before, after = change["before"], change["after"]
        identity = tuple((before or after)[k] for k in key)
        n += 1
        if (rows.get(identity) is not None) != (before is not None):
            fail(f"{path.name}: {line} does not follow from what came before it")
        if before is not None and rows[identity] != before:
            fail(f"{path.name}: {line} takes away another row than {rows[identity]}")
        rows[identity] = after
    return [row for row in rows.values() if row is not None], n


def normal(cell):
    """One spelling for a value that both sides spell in their own ways."""
    if cell is None:
        return None
    text = str(cell)
    if len(text) > 10 and text[4:5] == "-" and text[10] in "T ":
        text = text.replace("T", " ").removesuffix("Z").removesuffix("+00")
        return text.rstrip("0").rstrip(".") if "." in text else text
    try:
        return Decimal(text).normalize() + 0
    except ArithmeticError:
        return text


def compare(server, directory):
    total = 0
    for name, key, _, query in QUERIES:
        rows, n = final_rows(directory / f"out_{name}.ndjson", key)
        total += n
        got = sorted((tuple(normal(cell) for cell in row.values()) for row in rows), key=repr)
        expected = sorted(
            (tuple(normal(cell) for cell in row) for row in server.sql(f"SET timezone = 'UTC'; {query};")), key=repr)
        if not expected:
            fail(f"{name}: PostgreSQL has no rows, so that nothing is tested")
        if got != expected:
            wrong = [row for row in got if row not in expected][:3], [row for row in expected if row not in got][:3]
            fail(f"{name}: {len(got)} rows, of which {wrong[0]} … are not in PostgreSQL, which has {wrong[1]} …")
        say(f"  {name}: {len(got)} rows out of {n} changes, as in PostgreSQL")
    return total


def main(thalweg, directory):
    os.chdir(directory)  # the engine writes its log where it stands
    with open(directory / "engine.log", "w") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    work = Workload(SEED)
    with Server(directory) as server:
        server.sql(SCHEMA + work.transactions(60))
        capture = Capture()

        def first():
            server.sql(work.transactions(150) + work.truncate("visits") + work.transactions(60))
            say_end(server, "half")

        # Changes that are not in the snapshot begin when it has begun to arrive, and the slot is there.
        capture.until(server, directory, "half", first)
        server.sql(work.transactions(150))
        say_end(server, "end")
        capture.until(server, directory, "end")
        for topic, lines in capture.records.items():
            (directory / f"{topic.rsplit('.', 1)[1]}.ndjson").write_text("".join(line + "\n" for line in lines))
        n_records = sum(map(len, capture.records.values()))
        (directory / "script.sql").write_text(script(directory))
        done = subprocess.run([thalweg, "run", directory / "script.sql"], capture_output=True, text=True)
        if done.returncode:
            fail(f"thalweg: {done.stderr}")
        say(f"debezium: {n_records} records (seed {SEED})")
        compare(server, directory)


if __name__ == "__main__":
    work_directory = Path(tempfile.mkdtemp(prefix="thalweg-debezium-"))
    status = 1
    try:
        main(os.path.abspath(sys.argv[1]), work_directory)
        shutil.rmtree(work_directory)
        say("debezium: 1 passed, 0 failed")
        status = 0
    except Failed as failed:
        say(f"{failed}\n  everything is left in {work_directory}\ndebezium: 0 passed, 1 failed")
    finally:
        # The engine's threads would keep a process alive that has nothing more to do.
        os._exit(status)

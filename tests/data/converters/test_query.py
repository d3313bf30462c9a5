"""A Graph of two queries: SQL over DuckDB, SQLite and PostgreSQL, Cypher over Ladybug and Neo4j."""

import sqlite3
import tempfile

import pandas as pd
import pytest
from support import postgres

from gcnii import from_frames, from_query
from gcnii.errors import InputError

duckdb = pytest.importorskip("duckdb")
ladybug = pytest.importorskip("ladybug")
neo4j = pytest.importorskip("neo4j")

N = 30
CREATED = (
    "CREATE TABLE person (id INTEGER, age INTEGER, income DOUBLE PRECISION, member BOOLEAN, "
    "label TEXT)",
    "CREATE TABLE knows (source INTEGER, target INTEGER, weight DOUBLE PRECISION)",
)
PEOPLE = [
    (i, None if i % 7 == 0 else 20 + i, 1.5 * i, i % 3 == 0, None if i % 5 == 0 else "xy"[i % 2])
    for i in range(N)
]
LINKS = [(i, (i + 1) % N, i / 4 + 1) for i in range(N)]
NODES = "SELECT * FROM person ORDER BY id"
EDGES = "SELECT * FROM knows ORDER BY source"
CYPHER = (
    "MATCH (p:Person) RETURN p.id AS id, p.age AS age, p.income AS income, p.member AS member, "
    "p.label AS label ORDER BY id",
    "MATCH (a:Person)-[k:Knows]->(b:Person) "
    "RETURN a.id AS source, b.id AS target, k.weight AS weight ORDER BY source",
)


@pytest.fixture
def expected():
    columns = ("id", "age", "income", "member", "label")
    nodes = pd.DataFrame(PEOPLE, columns=columns).astype({"age": "Int64"})
    return from_frames(nodes, pd.DataFrame(LINKS, columns=["source", "target", "weight"]))


def filled(connection, mark="?"):
    cursor = connection.cursor()
    for statement in CREATED:
        cursor.execute(statement)
    for table, rows in (("person", PEOPLE), ("knows", LINKS)):
        marks = ", ".join([mark] * len(rows[0]))
        cursor.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
    return connection


@pytest.fixture
def shop():
    with sqlite3.connect(":memory:") as connection:
        yield filled(connection)
    connection.close()


def test_duckdb_gives_arrow(expected):
    with duckdb.connect() as connection:
        graph = from_query(NODES, EDGES, filled(connection))
    assert graph.fingerprint == expected.fingerprint
    assert (graph.features, graph.nodes) == (expected.features, expected.nodes)


def test_a_null_of_sqlite_is_missing_and_its_integers_are_numbers(expected, shop):
    graph = from_query(NODES, EDGES, shop)
    assert (graph.fingerprint, graph.features) == (expected.fingerprint, expected.features)
    assert graph.features[1] == "age (missing)"


def test_rows_may_be_dicts(expected, shop):
    def named(cursor, row):
        return dict(zip((column[0] for column in cursor.description), row, strict=True))

    shop.row_factory = named
    assert from_query(NODES, EDGES, shop).fingerprint == expected.fingerprint


def test_options_say_what_columns_mean(shop):
    nodes = "SELECT id AS number, age, income, label AS kind FROM person"
    graph = from_query(nodes, EDGES, shop, id="number", label="kind", drop=["weight", "income"])
    assert (graph.features, graph.weighted) == (("age", "age (missing)"), False)


def test_cypher_over_ladybug(expected):
    connection = ladybug.Connection(ladybug.Database(":memory:"))
    connection.execute(
        "CREATE NODE TABLE Person(id INT64 PRIMARY KEY, age INT64, income DOUBLE, member BOOLEAN, "
        "label STRING)"
    )
    connection.execute("CREATE REL TABLE Knows(FROM Person TO Person, weight DOUBLE)")
    keys = ("id", "age", "income", "member", "label")
    properties = ", ".join(f"{key}: ${key}" for key in keys)
    for row in PEOPLE:
        connection.execute(f"CREATE (:Person {{{properties}}})", dict(zip(keys, row, strict=True)))
    for source, target, weight in LINKS:
        connection.execute(
            "MATCH (a:Person {id: $a}), (b:Person {id: $b}) CREATE (a)-[:Knows {weight: $w}]->(b)",
            {"a": source, "b": target, "w": weight},
        )
    assert from_query(*CYPHER, connection).fingerprint == expected.fingerprint


class Driver:
    """Answers as Neo4j's driver does, with its own records; there is no server here."""

    def execute_query(self, query):
        keys = ("id", "age", "income", "member", "label")
        keys, rows = (keys, PEOPLE) if query == CYPHER[0] else (("source", "target", "w"), LINKS)
        records = [neo4j.Record(dict(zip(keys, row, strict=True))) for row in rows]
        return neo4j.EagerResult(records, None, list(keys))


def test_records_of_neo4j(expected):
    graph = from_query(*CYPHER, Driver(), weight="w")
    assert graph.fingerprint == expected.fingerprint


@pytest.fixture(scope="module")
def server():
    if postgres.find() is None or postgres.owner() is None:
        pytest.skip("no PostgreSQL here: apt-get install postgresql")
    with tempfile.TemporaryDirectory(prefix="postgres-") as folder, postgres.server(folder) as url:
        url = url.replace("+psycopg", "")
        import psycopg

        with psycopg.connect(url) as connection:
            filled(connection, "%s")
        yield url


@pytest.mark.slow
@pytest.mark.parametrize("library", ["psycopg", "adbc_driver_postgresql.dbapi"])
def test_postgresql_by_psycopg_and_by_adbc(library, server, expected):
    connect = pytest.importorskip(library).connect
    with connect(server) as connection:
        assert from_query(NODES, EDGES, connection).fingerprint == expected.fingerprint
        numeric = (
            "SELECT id, income::numeric(9, 2) AS income, gen_random_uuid() AS code FROM person"
        )
        with pytest.warns(UserWarning, match="'code' .30 different texts"):
            graph = from_query(numeric, EDGES, connection)
        assert (graph.features, graph.X.ravel()[:3].tolist()) == (("income",), [0, 1.5, 3])


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("SELECT age2", "the query of the nodes failed: no such column: age2"),
        ("CREATE TABLE t (x)", "the query of the nodes returns no table; it must be a SELECT"),
        ("SELECT 1 AS id WHERE 0", "nodes has no rows; a graph needs at least one node"),
        (
            "SELECT 1 AS id UNION ALL SELECT 'a'",
            "the column 'id' of the nodes holds values of type int and str, which no one type of "
            "Arrow has; convert it in the query, such as by CAST(… AS TEXT), in Cypher toString(…)",
        ),
        (7, "nodes must be the text of a query, got int"),
    ],
)
def test_what_is_no_table_is_refused_in_a_sentence(query, sentence, shop):
    with pytest.raises(InputError) as refused:
        from_query(query, EDGES, shop)
    assert str(refused.value) == sentence


def test_what_is_no_connection_is_refused(shop):
    for given, kind in (("shop.db", "str"), (shop.cursor(), "Cursor")):
        sentence = rf"connection must be a connection of DuckDB.*got {kind}"
        with pytest.raises(InputError, match=sentence):
            from_query(NODES, EDGES, given)

"""New nodes and edges with odd cells, labelled by a trained model."""

import copy
import csv
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import gcnii
from gcnii.data import load
from gcnii.inference.new_nodes import OldNodes, label_new, predict_new, read_new
from hostile.folders import CELLS, Rows, encoded, text_of, write
from hostile.judging import Silent, Wrong, answer_of, nothing_written
from hostile.trainings import EDGES, ROWS, WORDS

HARMLESS = (
    "order",
    "edge order",
    "turned",
    "columns",
    "numbers",
    "doubled",
    "frames",
    "median",
    "bom",
)


class NewNodes:
    """A new node's answer is that of its plain form, whatever form it is in; or it is refused."""

    name, few, quick, long = "new-nodes", 4, 60, 1000

    def __init__(self, home: Path):
        write(home / "people", encoded({"nodes.csv": ROWS, "edges.csv": EDGES}))
        weighted = [["source", "target", "weight"]]
        weighted += [[u, v, str((int(u[1:]) + int(v[1:])) % 4 + 1)] for u, v in EDGES[1:]]
        write(home / "weighted", encoded({"nodes.csv": ROWS, "edges.csv": weighted}))
        self.models = []
        for name in ("people", "weighted"):
            graph = load(home / name)
            self.models.append((graph, gcnii.fit(graph, **WORDS)))
        plain = self.models[0][0]
        bare = gcnii.from_scipy(
            _square(plain),
            np.round(np.random.default_rng(0).normal(size=(24, 2)), 1),
            plain.labels,
            nodes=plain.nodes,
            features=["age", "height"],
        )
        self.models.append((bare, gcnii.fit(bare, **WORDS)))

    def attempt(self, random: Random, folder: Path) -> None:
        """Plain tables of new nodes, and the same in another form, or with something odd."""
        which = random.randrange(len(self.models))
        graph, result = self.models[which]
        tables = self._drawn(random, which)
        harmless = random.random() < 0.6
        if harmless:
            told = random.choice(HARMLESS)
            changed, order = self._same(random, tables, told, graph)
        else:
            changed, told = self._odd(random, tables)
            order = list(range(len(tables["nodes.csv"]) - 1))
        write(folder / "new", encoded(changed))
        if told == "bom":
            for path in (folder / "new").iterdir():
                path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
        with nothing_written(folder):
            answer = answer_of(lambda: self._label(result, graph, folder / "new"))
        told = f"{('people', 'weighted', 'bare')[which]}: {told}"
        if harmless:
            write(folder / "plain", encoded(tables))
            plain = answer_of(lambda: self._label(result, graph, folder / "plain"))
            if told.endswith("frames"):
                answer = answer_of(lambda: self._framed(random, result, graph, tables))
            if answer.value is None or plain.value is None:
                raise Wrong(f"{told}: refused: {answer.sentence or plain.sentence}")
            self._compare(answer.value, plain.value, order, told)
        elif answer.value is not None:
            self._judge(answer.value, changed, told)
            framed = answer_of(lambda: self._framed(random, result, graph, changed))
            if framed.value is not None:
                self._compare(answer.value, framed.value, order, f"{told}, in frames")

    @staticmethod
    def _label(result: Any, graph: Any, folder: Path) -> pd.DataFrame:
        old = OldNodes(graph)
        return label_new(result, old, read_new(result, folder, old), "cpu")

    @staticmethod
    def _framed(random: Random, result: Any, graph: Any, tables: dict[str, Rows]) -> pd.DataFrame:
        frames = []
        for rows in tables.values():
            columns = {
                name: [cells[j].strip() or None for cells in rows[1:]]
                for j, name in enumerate(rows[0])
            }
            make = random.choice((pd.DataFrame, pl.DataFrame, pa.table))
            frames.append(make(columns))
        return predict_new(result, *frames, graph, "cpu")

    @staticmethod
    def _drawn(random: Random, which: int) -> dict[str, Rows]:
        count = random.randint(1, 4)
        head = ["id", "age", "height"] if which == 2 else ["id", "age", "town"]
        nodes = [head]
        for i in range(count):
            second = (
                str(random.randint(-9, 9) / 2) if which == 2 else random.choice(("Oslo", "Rome"))
            )
            nodes.append([f"q{i}", str(random.randint(0, 10)), second])
        edges = [["source", "target", "weight"][: 3 if which == 1 else 2]]
        for i in range(count):
            for old in random.sample(range(24), 2):
                edges.append([f"q{i}", f"p{old}", "2"][: len(edges[0])])
        return {"nodes.csv": nodes, "edges.csv": edges}

    def _same(
        self, random: Random, tables: dict[str, Rows], how: str, graph: Any
    ) -> tuple[dict[str, Rows], list[int]]:
        """Tables that mean the same, and where each row was before."""
        changed = copy.deepcopy(tables)
        nodes, edges = changed["nodes.csv"], changed["edges.csv"]
        order = list(range(len(nodes) - 1))
        if how == "order":
            random.shuffle(order)
            nodes[1:] = [tables["nodes.csv"][1 + i] for i in order]
        elif how == "edge order":
            edges[1:] = random.sample(edges[1:], len(edges) - 1)
        elif how == "turned":
            edges[1:] = [[v, u, *rest] for u, v, *rest in edges[1:]]
        elif how == "columns":
            places = random.sample(range(len(nodes[0])), len(nodes[0]))
            changed["nodes.csv"] = [[row[j] for j in places] for row in nodes]
        elif how == "numbers":
            for row in nodes[1:]:
                row[1] = random.choice((f" {row[1]}", f"{row[1]}.0", f"{row[1]}e0", f"+{row[1]}"))
        elif how == "doubled" and len(edges[0]) == 2:
            edges.append(random.choice([row[::-1] for row in edges[1:]]))
        elif how == "median":
            tables["nodes.csv"][1][1] = ""
            changed["nodes.csv"][1][1] = str(self._median(graph))
        return changed, order

    @staticmethod
    def _median(graph: Any) -> float:
        if graph.table is not None:
            known = [float(one) for one in graph.table.columns["age"] if one == one]
            return float(np.median(known))
        return float(np.median(np.asarray(graph.X)[:, 0]))

    @staticmethod
    def _odd(random: Random, tables: dict[str, Rows]) -> tuple[dict[str, Rows], str]:
        changed = copy.deepcopy(tables)
        name = random.choice(list(changed))
        rows = changed[name]
        i, j = random.randrange(len(rows)), random.randrange(len(rows[0]))
        cell = random.choice(CELLS)
        how = random.choice(("cell", "cell", "cell", "cell", "row", "column", "no rows", "copy"))
        if how == "cell":
            rows[i][j] = cell
        elif how == "row":
            rows[i] = rows[i][:-1]
        elif how == "column":
            changed[name] = [row[:j] + row[j + 1 :] for row in rows]
        elif how == "no rows":
            del rows[1:]
        else:
            rows.append(list(rows[i]))
        return changed, f"{name}: {how} {i}, {j}: {cell[:30]!r}"

    @staticmethod
    def _judge(table: pd.DataFrame, changed: dict[str, Rows], told: str) -> None:
        """One row per new node, by its name, with probabilities that add up to 1."""
        rows = list(csv.reader(text_of(changed["nodes.csv"]).splitlines()))
        if "id" in [one.strip().lower() for one in changed["nodes.csv"][0]] and rows:
            head = [one.strip().lower() for one in changed["nodes.csv"][0]]
            names = [row[head.index("id")].strip() for row in changed["nodes.csv"][1:] if any(row)]
            if table["node"].tolist() != names:
                raise Silent(f"{told}: nodes {table['node'].tolist()!r:.200}, not {names!r:.200}")
        P = probabilities(table)
        if not np.isfinite(P).all() or not np.allclose(P.sum(1), 1, atol=1e-4):
            raise Silent(f"{told}: probabilities {P.tolist()}")

    @staticmethod
    def _compare(found: pd.DataFrame, plain: pd.DataFrame, order: list[int], told: str) -> None:
        plain = plain.iloc[order]
        if found["node"].tolist() != plain["node"].tolist():
            raise Silent(f"{told}: other nodes")
        if not np.allclose(probabilities(found), probabilities(plain), atol=1e-4):
            raise Silent(
                f"{told}: {probabilities(found).tolist()}, not {probabilities(plain).tolist()}"
            )

    def close(self) -> None:
        """Nothing to end."""


def probabilities(table: pd.DataFrame) -> Any:
    """The columns of the classes."""
    return table[[name for name in table if name.startswith("p(")]].to_numpy(float)


def _square(graph: Any) -> Any:
    A = np.zeros((graph.n, graph.n))
    u, v = graph.edges
    A[u, v] = A[v, u] = 1
    return A

"""docs/evidence/scale.md and its picture say what results/bench has."""

import re
from pathlib import Path

import pytest

from gcnii.cost import H200
from gcnii_paper.report.scale import (
    PLANS,
    draw_growth,
    papers_plans,
    parts_of,
    read_scale,
    scale_tables,
    slope,
    terminal_tables,
)

ROOT = Path(__file__).parents[3]
BENCH, PAGE = ROOT / "results" / "bench", ROOT / "docs" / "evidence" / "scale.md"


@pytest.fixture(scope="module")
def record():
    return read_scale(BENCH / "scale-cpu.json")


def test_the_page_has_the_tables_that_results_and_plans_give():
    part, _ = re.findall(
        r"`gcnii report readme` -->\n(.*?)<!-- end of results -->",
        PAGE.read_text("utf-8"),
        re.DOTALL,
    )
    assert part == scale_tables(BENCH)


def test_the_plans_of_papers100m_are_those_of_the_command_and_some_fit():
    rows = papers_plans().rows
    assert len(rows) == len(PLANS)
    assert {row[-1] for row in rows} == {"yes", "no"}
    for row in rows:
        assert (float(row[4]) <= 0.95 * H200.memory / 2**30) == (row[-1] == "yes")


def test_a_gpu_has_one_table_and_says_what_torchrun_costs(record):
    times = {"alone": 2.0, "torchrun": 2.02, "two by gloo": 9.0, "2.4 million nodes": 6.8}
    about = {"n": 0, "processes": 1, "waiting": 0.1, "computing": 1.5, "peak_bytes": 2**30}
    rows = [{"kind": kind, "best": best, **about} for kind, best in times.items()]
    empty = {part: [] for part in ("cuts", "growth", "planned")}
    (part,) = parts_of(record | empty | {"device": "cuda: NVIDIA H200", "processes": rows})
    assert "under torchrun takes 1.010 of the time" in part.remark
    assert [row[3] for row in part.rows] == ["2000 ms", "2020 ms", "9000 ms", "6800 ms"]
    assert part.rows[0][-1] == "1024 MiB"


def test_a_slope_is_the_power_of_growth():
    assert slope([(x, 3 * x**1.5) for x in (1, 2, 4, 8)]) == pytest.approx(1.5)


def test_time_and_memory_grow_no_faster_than_the_work(record):
    table = next(part for part in parts_of(record) if part.title == "Growth")
    slopes = {row[0]: (float(row[2]), float(row[3])) for row in table.rows}
    assert set(slopes) == {"nodes", "entries", "layers", "width"}
    assert slopes["layers"][0] < 1.2
    assert slopes["nodes"][1] < 1.2
    assert slopes["width"][0] < 2.0  # products by weights grow with its square


def test_the_picture_needs_no_second_run(tmp_path, record):
    assert draw_growth(tmp_path / "growth.png", record).stat().st_size > 20_000


def test_a_terminal_has_the_same_tables(record):
    titles = [str(table.renderables[0]) for table in terminal_tables(record)]
    assert titles == [part.title for part in parts_of(record)]
    assert titles == ["One graph over several processes", "Halos", "Plans and what was measured",
                      "Growth"]  # fmt: skip


def test_metis_leaves_less_to_exchange_than_blocks_or_chance(record):
    for row in record["cuts"]:
        others = [
            one["halo"]
            for one in record["cuts"]
            if (one["graph"], one["parts"]) == (row["graph"], row["parts"])
        ]
        assert row["how"] != "metis" or row["halo"] == min(others)

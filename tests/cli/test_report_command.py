"""gcnii report html."""

import json

from command_line import call
from made_up import a_page_of_everything, measured


def test_the_command_writes_the_page_and_both_figures(tmp_path):
    for one in a_page_of_everything():
        one.save(tmp_path / "results" / "cells")
    answer = call("report", "html", "--out", "made/report.html", cwd=tmp_path)
    assert (answer.code, answer.err) == (0, "")
    written = [f"made/{name}" for name in ("report.html", "figure1.svg", "figure1.png", "figure2.svg", "figure2.png")]
    assert answer.out.split() == written
    assert all((tmp_path / name).stat().st_size > 5000 for name in written)
    assert "replicates" in (tmp_path / "made" / "report.html").read_text("utf-8")


def test_the_command_says_which_folder_it_needs(tmp_path):
    answer = call("report", "html", cwd=tmp_path)
    assert answer.code == 2
    assert answer.err.startswith("gcnii: results has no folder cells; give the folder")


def test_a_broken_file_is_named(tmp_path):
    path = measured("table2/gcnii/cora", [85.0]).save(tmp_path / "results" / "cells")
    path.write_text(json.dumps({"cell": "table2/gcnii/cora"}))
    answer = call("report", "html", cwd=tmp_path)
    assert answer.code == 2
    assert "gcnii-cora.json is not a measured cell" in answer.err

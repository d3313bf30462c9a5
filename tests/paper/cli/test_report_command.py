"""gcnii report html and readme."""

import json

import pytest
from markupsafe import escape
from support.command_line import call, write_pets
from support.made_up_cells import a_page_of_everything, measured


def test_the_command_writes_the_page_and_both_figures(tmp_path):
    for one in a_page_of_everything():
        one.save(tmp_path / "results" / "cells")
    answer = call("report", "html", "--out", "made/report.html", cwd=tmp_path)
    assert (answer.code, answer.err) == (0, "")
    written = [
        f"made/{name}"
        for name in ("report.html", "figure1.svg", "figure1.png", "figure2.svg", "figure2.png")
    ]
    assert answer.out.split() == written
    assert all((tmp_path / name).stat().st_size > 5000 for name in written)
    assert "replicates" in (tmp_path / "made" / "report.html").read_text("utf-8")


def test_without_cells_the_error_names_the_missing_folder(tmp_path):
    answer = call("report", "html", cwd=tmp_path)
    assert answer.code == 2
    assert answer.err.startswith("gcnii: there is no folder results/cells; `gcnii reproduce export")


def test_a_broken_file_is_named(tmp_path):
    path = measured("table2/gcnii/cora", [85.0]).save(tmp_path / "results" / "cells")
    path.write_text(json.dumps({"cell": "table2/gcnii/cora"}))
    answer = call("report", "html", cwd=tmp_path)
    assert answer.code == 2
    assert "gcnii-cora.json is not a measured cell" in answer.err
    assert answer.err.endswith("; restore it, or move it away\n")


def test_a_folder_as_page_and_a_project_without_a_readme_are_refused(tmp_path):
    measured("table2/gcnii/cora", [85.0]).save(tmp_path / "results" / "cells")
    page, readme = (
        call("report", "html", "--out", "results", cwd=tmp_path),
        call("report", "readme", cwd=tmp_path),
    )
    assert (page.code, readme.code) == (2, 2)
    assert (
        page.err
        == "gcnii: --out results is a folder; name the page in it, such as results/report.html\n"
    )
    assert readme.err == "gcnii: . has no README.md; give the project's folder\n"


@pytest.mark.slow
@pytest.mark.long
def test_the_doctors_document_of_a_graph_with_a_hostile_name_is_shown_as_text(tmp_path):
    name = r'"><img src=x onerror=alert(1)> a\b\1 $x$ $\frac$'
    write_pets(tmp_path / name)
    words = ("--model", "gcn", "--depths", "2", "--device", "cpu", "--json", "--trials", "2")
    document = call("doctor", f"./{name}", *words, cwd=tmp_path)
    (tmp_path / "results" / "doctor").mkdir(parents=True)
    (tmp_path / "results" / "doctor" / "x.json").write_text(document.out)
    measured("table2/gcnii/cora", [85.0]).save(tmp_path / "results" / "cells")
    answer = call("report", "html", cwd=tmp_path)
    assert (answer.code, answer.err) == (0, "")
    html = (tmp_path / "report.html").read_text("utf-8")
    assert "<img" not in html
    assert f"on {escape(name)}</h2>" in html

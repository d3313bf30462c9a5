"""What an option gives is the difference to the record, paired by split."""

import json

import pytest

from gcnii_paper.ablating import ablation_tables


def row(val, test=(0.5, 0.5)):
    return {"val": list(val), "test": list(test), "seconds": 3.2}


@pytest.fixture
def folder(tmp_path):
    def keep(name, **rows):
        about = {"graph": name.removesuffix("-by-depth"), "command": f"python ablate {name}"}
        (tmp_path / f"{name}.json").write_text(json.dumps(about | {"rows": rows}))

    changed = {"head last": row((0.5, 0.6)), "attention": row((0.8, 0.8))}
    keep("texas", record=row((0.7, 0.9)), **changed)
    keep("wisconsin", record=row((0.4, 0.4)), **{"head all": row((0.5, 0.5))})
    keep("cora-by-depth", **{"2 layers": row((0.8, 0.8), (0.7, 0.9))})
    return tmp_path


def test_differences_are_paired_and_a_dot_marks_the_record_s_own_value(folder):
    lines = ablation_tables(folder).splitlines()
    assert lines[0] == "|Validation|texas|wisconsin|"
    assert lines[2] == "|the record|80.0|40.0|"
    assert lines[3] == "|head last|-25.0 ± 5.0|●|"  # -0.2 and -0.3
    assert lines[4] == "|head all|●|+10.0 ± 0.0|"
    assert lines[5] == "|attention|+0.0 ± 10.0|–|"  # not measured on wisconsin


def test_attention_by_depth_has_a_table_of_its_own_and_every_command_is_printed(folder):
    text = ablation_tables(folder)
    assert "|2 layers|80.0|80.0 ± 14.1|3|" in text
    assert text.endswith(
        "    python ablate texas\n    python ablate wisconsin\n    python ablate cora-by-depth\n"
    )


def test_without_measurements_there_is_nothing_to_show(tmp_path):
    assert ablation_tables(tmp_path) == "\n"

"""A study as tables and as a picture."""

import pytest
from rich.console import Console

from gcnii.analysis.report import BEST_TRIALS, draw_study, importance_table, trial_table, words
from gcnii.report.figures import save

PNG = b"\x89PNG\r\n\x1a\n"


def trial(number, model="gcn", val=(0.8, 0.9), outcome="complete"):
    settings = {"layers": 2, "alpha": 0.1, "lr": 0.012, "scale": "rows", "epochs": 8}
    about = {"val_loss": [1.0] * len(val), "epochs": [8] * len(val), "seconds": 0.1}
    return {
        **about,
        "number": number,
        "model": model,
        "settings": settings,
        "outcome": outcome,
        "val": list(val),
    }


@pytest.fixture
def document():
    """What study.json holds, of a study of fifteen settings."""
    trials = [trial(number, val=(0.9 - number / 100, 0.8)) for number in range(12)]
    trials += [trial(12, "mlp"), trial(13, outcome="given up"), trial(14, val=(), outcome="lost")]
    return {
        "graph": "pets",
        "measured": "accuracy",
        "tried": len(trials),
        "searched": {"gcn": ["layers", "lr", "scale"], "mlp": ["lr", "scale"]},
        "trials": trials,
        "winner": {"number": 0, "model": "gcn"},
        "importances": [
            {"name": "lr", "share": 0.7, "error": 0.12},
            {"name": "layers", "share": 0.3, "error": 0.05},
        ],
    }


def text(table):
    console = Console(width=100, record=True, file=None, quiet=False)
    with console.capture() as shown:
        console.print(table)
    return shown.get()


def test_the_table_has_the_ten_best_with_their_settings(document):
    title, header, *rows = text(trial_table(document)).splitlines()
    assert title == "The best settings by validation (accuracy in %)"
    assert header.split() == ["val", "±", "model", "settings"]
    assert len(rows) == BEST_TRIALS
    assert " ".join(rows[0].split()) == "1 85.0 5.0 gcn layers 2, lr 0.012, scale rows"


def test_only_what_was_searched_is_shown_and_in_the_papers_words(document):
    settings = document["trials"][0]["settings"]
    assert words(settings, "mlp", document) == "lr 0.012, scale rows"
    assert words(settings, "other", document) == "layers 2, α 0.1, lr 0.012, scale rows"


def test_a_switch_is_named_where_it_is_on():
    settings = {"layers": 2, "product_first": True, "residual": False, "row_norm": "layer"}
    document = {"searched": {"gcnii-plus": list(settings)}}
    assert words(settings, "gcnii-plus", document) == "layers 2, product first, rows layer"


def test_what_mattered_has_an_error_bar(document):
    title, header, *rows = text(importance_table(document)).splitlines()
    assert title == "What mattered among the settings of gcn (share in the best tenth)"
    assert header.split() == ["setting", "share", "±"]
    assert [row.split() for row in rows] == [["lr", "70%", "12%"], ["layers", "30%", "5%"]]


def test_with_few_trials_it_says_so(document):
    document["importances"] = []
    assert text(importance_table(document)) == "What mattered: too few trials of gcn to say\n"


def test_the_picture_shows_every_trial_and_the_best_so_far(document, tmp_path):
    drawing = draw_study(document)
    left, right = drawing.axes
    shown = sum(len(points.get_offsets()) for points in left.collections)
    assert shown == 14  # all but the one that was lost
    (step,) = left.lines
    best = list(step.get_ydata())
    assert best == sorted(best)
    assert left.get_ylabel() == "validation accuracy in %"
    assert [bar.get_width() for bar in right.patches] == [30.0, 70.0]
    assert save(drawing, tmp_path / "search.png").read_bytes().startswith(PNG)


def test_a_picture_of_few_trials_says_that_they_are_too_few(document, tmp_path):
    document |= {"importances": [], "trials": [trial(0, val=(0.5,))], "tried": 1}
    drawing = draw_study(document)
    assert [one.get_text() for one in drawing.axes[1].texts] == ["too few trials to say"]
    assert save(drawing, tmp_path / "search.png").read_bytes().startswith(PNG)

"""docs/defaults.md: what a graph without published settings is trained with, and why."""

from __future__ import annotations

from collections.abc import Sequence

from gcnii.errors import InputError
from gcnii.files import Document
from gcnii.nn.settings import Settings
from gcnii.report.tables import markdown_table
from gcnii.train.own import (
    ASSUMED,
    BOUNDS,
    DEFAULTS,
    FEWEST,
    LEAST,
    LONGEST,
    LOW,
    MOST_NODES,
    MOSTLY,
    STOP,
    TELLING,
    UNLIKE,
    kind_of,
)
from gcnii_paper.defaults import GCNII, ITSELF, WHOM, DefaultsStudy, Row, candidates, mean

HEADS = (
    *("graph", "ρ", "homophily", "default", "best baseline", "difference", "in force", "setting"),
)
PAGE = """\
# The default for graphs without published settings

Made by `gcnii report readme` from results/defaults, which holds every split;
`gcnii reproduce defaults` measures what is missing there, and prints the tables.

## What `gcnii train my_graph` does

For a graph of your own, and for a graph of the catalog that nobody published settings for (film,
squirrel, chameleon-filtered, minesweeper, amazon-photo, coauthor-cs):

- **Features**: rows are divided by their length (`scale length`) if they are like word counts:
  fewer than {mostly:.0%} nonzero, never negative, and no column much larger than the others; else
  each column is standardised (`scale standard`), and so are the columns of a table.
- **Stopping**: at most {epochs} epochs, patience {patience}, and the weights with the highest
  validation score, among equals the lowest loss (`monitor val_score_loss`). A graph of your own is
  trained on, up to {longest} epochs, while the best epoch is among the last {patience} (`longest`),
  unless `epochs` is given.
- **Several labels per node**: thresholds are chosen on the validation nodes
  (`label_threshold validation`), and the loss is monitored.
- **Model and settings**: by three traits, read from the training nodes of the first split:
  - ρ, the number of training nodes per feature.
  - The homophily of their labels: (h - Σ p_k²) / (1 - Σ p_k²), with h the share of the edges
    between training nodes whose labels are equal and p_k the share of these edges' ends with label
    k. It is 1 if all are equal and 0 as by chance; with fewer than {fewest} such edges, or several
    labels per node, it is taken as {assumed:g}.
  - Where homophily is below {unlike:g}, what else tells a node's class: Cohen's κ between the label
    of a training node and that of the nearest other one, by the cosine of their out-links, or of
    their features, times the share of nodes that have anything in common with another. *Links tell*
    if that of links is at least {telling:g} and the larger one; *features tell* if that of features
    is. With fewer than {least}
    training nodes neither is estimated.

{chosen}
A model that is given is used: GCNII, GCNII* and its printed form have the settings of the first
three lines, by ρ and homophily alone, and GCNII+ those of all five. A setting that is given wins
over the default, and the default over the model's card. The stopping rule is that of GCNII and of
the five baselines below; other models keep their own, and their own batches. `graphsage-mean` is
trained on the full graph up to {nodes:,} nodes, unless a setting of its sampling is given. Every
setting in force is in `run.json`.

In a directed graph of your own, nodes gather from in- and out-neighbours (direction both), except
where links tell, which was measured with out-links; in one of the catalog, from out-neighbours.

The scikit-learn classifier has its own numbers, which its parameters show.

## How it was chosen

{candidates} and five baselines (mlp, gcn,
gat, appnp, graphsage-mean, with the same scaling, stopping and thresholds, and their own defaults
otherwise) were measured once on {graphs} graphs, on three to ten splits each, or on as many seeds
where there is one split. For each kind of graphs, the default is the setting with the highest mean
difference from the best baseline, in validation scores; test scores do not enter.

To see whether the choice carries over, it is made again for each graph without it, and without
graphs made of the same data (cora, cora-full, cora-ml).

{rows}
Test accuracy in % (humango: micro-F1). *Default*: the setting that is chosen without the graph.
*Best baseline*: by test score. *Difference*: default less baseline, paired by split, ± its standard
error. *In force*: the same difference for the default that is shipped. The setting is what was
chosen among: for GCNII the number of layers, then α, λ, dropout, decay_conv and decay_dense.

{means}
## What it does not show

- The two bounds of ρ, {low} and {high}, and the list of candidates were set after looking at
  validation scores of these graphs, with test scores printed beside them. Leaving a graph out does
  not undo that.
- The rule of homophily within ρ < {low}, its bound, {bound}, and the two kinds of graphs where
  links or features tell were made after looking at these graphs, test scores among them: with
  GCNII, texas, cornell and wisconsin lost 8 to 11 points to an MLP. The traits that tell them apart
  read no label but those of training nodes, and the bounds {unlike:g} and {telling:g} stand in wide
  gaps between these graphs.
- Links tell on two graphs, features on three of one collection; each is left with the others of
  its kind to choose by. Chameleon and squirrel hold many nodes twice, which is part of why links
  tell there (`chameleon-filtered` is without them, and is of another kind).
- Few edges between training nodes make homophily uncertain: cornell's is below 0 in eight of its
  ten splits. The first split decides for all of them, so labels that it trains on, and another
  split tests on, have a part in the choice between settings.
- {misses}
- Only two graphs have ρ ≥ {high}, and each is left with the other to choose by.
- Other widths, 16 layers and other scalings were not measured, nor were GCNII* and its printed
  form, which have GCNII's numbers, as in the paper.
"""


def defaults_page(study: DefaultsStudy) -> str:
    """The page; the study must be complete."""
    if None in study.chosen:
        raise InputError(
            "results/defaults does not hold every kind of graphs; `gcnii reproduce defaults` "
            "measures what is missing"
        )
    return PAGE.format(
        mostly=MOSTLY,
        **STOP,
        longest=LONGEST,
        fewest=FEWEST,
        assumed=ASSUMED,
        nodes=MOST_NODES,
        chosen=chosen_table(study),
        unlike=UNLIKE,
        telling=TELLING,
        least=LEAST,
        candidates=f"{len(GCNII)} settings of GCNII, or {len(WHOM)} or {len(ITSELF)} of GCNII+,",
        graphs=len(study.counted),
        rows=rows_table(study.rows),
        means=means_sentence(study),
        low=BOUNDS[0],
        high=BOUNDS[1],
        bound=LOW,
        misses=_misses(study),
    )


def chosen_table(study: DefaultsStudy) -> str:
    """What is chosen for each kind of graphs."""
    names = [name for name in GCNII[0] if name != "lr"]
    rows = (
        [
            words,
            default.model,
            *(f"{chosen[name]:g}" if chosen else "–" for name in names),
            _options(chosen or {}, names),
        ]
        for words, default, chosen in zip(kind_words(), DEFAULTS, study.chosen, strict=True)
    )
    return markdown_table(["graphs with", "model", *names, "and"], rows)


def _options(settings: Settings, known: Sequence[str]) -> str:
    """`loops none, input_dropout 0.3`: the settings that have no column, but for the step size."""
    rest = {name: value for name, value in settings.items() if name not in (*known, "lr")}
    return ", ".join(name if value is True else f"{name} {value}" for name, value in rest.items())


def rows_table(rows: Sequence[Row]) -> str:
    """A line for each graph."""
    return markdown_table(HEADS, map(_line, rows))


def _line(row: Row) -> list[str]:
    ours = [f"{mean(row.default):.1f}", _lead(row, row.default)] if row.left_out else ["–", "–"]
    best = f"{row.best} {mean(row.baselines[row.best]):.1f}"
    rho = f"{row.traits.rho:.2f}" if row.traits.rho < BOUNDS[1] else f"{row.traits.rho:.0f}"
    homophily = f"{round(row.traits.homophily, 2) + 0.0:.2f}"
    return [
        *(row.graph, rho, homophily, ours[0], best, ours[1], _lead(row, row.shipped)),
        setting_words(row.left_out, kind_of(row.traits)) if row.left_out else "–",
    ]


def _lead(row: Row, ours: Sequence[float]) -> str:
    difference, error = row.lead(ours)
    return f"{_rounded(difference):+.1f} ± {error:.1f}"


def _rounded(difference: float) -> float:
    return round(difference, 1) + 0.0  # not -0.0


def setting_words(settings: Settings, kind: int) -> str:
    """`8; 0.1; 0.5; 0.6; 0.01; 0.0005`: what distinguishes the candidates of this kind."""
    tried = candidates(kind)
    apart = (name for name in tried[0] if len({one[name] for one in tried}) > 1)
    values = (settings[name] for name in apart)
    return "; ".join(one if isinstance(one, str) else f"{one:g}" for one in values)


def means_sentence(study: DefaultsStudy) -> str:
    """The mean over the counted graphs, beside that of each baseline."""
    if not study.counted:
        return ""
    ranked = sorted(study.baselines.items(), key=lambda one: -one[1])
    others = ", ".join(f"{name} {score:.1f}" for name, score in ranked)
    return (
        f"Mean of {len(study.counted)} graphs, each left out of its own choice: the default "
        f"{study.mean:.1f}; {others}.\n"
    )


def _misses(study: DefaultsStudy) -> str:
    """Which graphs are more than a point below their best baseline when left out."""
    below = [row for row in study.counted if row.lead(row.default)[0] < -1]
    told = "; ".join(
        f"{row.graph} ({_rounded(row.lead(row.default)[0]):+.1f} left out, "
        f"{_rounded(row.lead(row.shipped)[0]):+.1f} with the default in force)"
        for row in below
    )
    if not told:
        return "No graph is more than one point below its best baseline when it is left out."
    return (
        f"{len(study.counted) - len(below)} of {len(study.counted)} graphs are within one point of "
        f"their best baseline or above it. The exception: {told}."
    )


def kind_words() -> list[str]:
    """`ρ < 1` and so on, in the order of what is chosen."""
    low, high = BOUNDS
    apart = f"homophily < {UNLIKE:g}"
    return [
        f"ρ < {low}, homophily ≥ {LOW}",
        f"{low} ≤ ρ < {high}; or ρ < {low}, homophily < {LOW}",
        f"ρ ≥ {high}",
        f"{apart}, links tell",
        f"{apart}, features tell",
    ]


def as_document(study: DefaultsStudy, word: str = "") -> Document:
    """The study as JSON: rows of the graphs whose names hold this word."""
    return {
        "chosen": dict(zip(kind_words(), study.chosen, strict=True)),
        "mean": {"default": study.mean, **study.baselines} if study.counted else {},
        "graphs": [_row_document(row) for row in study.rows if word in row.graph],
    }


def _row_document(row: Row) -> Document:
    traits = row.traits
    known = {"graph": row.graph, "rho": traits.rho, "homophily": traits.homophily}
    known |= {"links": traits.links, "features": traits.features, "kind": kind_of(traits)}
    leads = {"default": row.default, "shipped": row.shipped}
    return known | {
        "left out": row.left_out,
        "baselines": {name: mean(scores) for name, scores in row.baselines.items()},
        "best": row.best,
        **{name: mean(scores) if scores else None for name, scores in leads.items()},
        **{
            f"{name} difference": dict(zip(("mean", "error"), row.lead(scores), strict=True))
            for name, scores in leads.items()
            if scores
        },
    }

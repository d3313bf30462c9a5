"""gcnii explain: why a trained model gives a node its label."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.table import Table

from gcnii.cli.options import Overwrite, print_json, refuse_below_one, refuse_unwritable
from gcnii.cli.predict import ASKED, Asked, Bundle, notice_change
from gcnii.cli.terminal import say, table_console
from gcnii.errors import InputError
from gcnii.files import refuse_replacing
from gcnii.inference.explain import TOP, Explanation, HopShare
from gcnii.report.figures import is_figure
from gcnii.report.tables import plain_table
from gcnii.targets.scores import number_shown


def explain(
    bundle: Bundle,
    node: str,
    /,
    *,
    graph: str | None = None,
    label: str | None = None,
    against: str | None = None,
    top: int = TOP,
    out: Path | None = None,
    overwrite: Overwrite = False,
    asked: Asked = ASKED,
) -> None:
    """Say why the best run by validation, or an ensemble, gives a node its label or number.

    Parameters
    ----------
    node
        The node's name, or its number if the graph has no names.
    graph
        The graph of the node; default: the one it was trained on.
    label
        The label to explain; default: the predicted one. Of several numbers, the one to explain.
    against
        Another label; the difference of the two scores is explained.
    top
        How many nodes, features, hops and edges to show.
    out
        A .png or .svg file for a drawing of the neighbourhood.
    """
    refuse_below_one(top=top)
    if out:
        if out.suffix not in (".png", ".svg"):
            raise InputError(f"--out must end in .png or .svg, got {out.name}")
        refuse_unwritable(out.parent)
        refuse_replacing(out, is_figure, inputs=[bundle, graph], overwrite=overwrite)
    result, data = asked.load(asked.open(bundle), bundle, graph)
    notice_change(result, data, graph)
    found = result.explain(data, node, label=label, against=against, top=top, device=asked.device)
    if out:
        found.draw(out, overwrite=overwrite)
    if asked.json:
        print_json(found.document() | {"bundle": str(bundle), "out": out and str(out)})
    else:
        _print(found, top)
        if out:
            print(out)


def _print(found: Explanation, top: int) -> None:
    for sentence in found.sentences:
        say(sentence)
    print()
    console = table_console()
    for table in _tables(found, top):
        console.print(table, "")
    if found.unranked:
        say(f"{found.unranked}.")
    if found.removal:
        say(_at_random(found))
    if found.attributed:
        say(_adds_up(found))
    for note in found.notes:
        say(f"{note[0].upper()}{note[1:]}.")


def _tables(found: Explanation, top: int) -> Iterable[Table]:
    def shown(value: float) -> str:
        return number_shown(value) if found.number else f"{value:.4f}"

    def signed(share: float) -> str:
        return f"{'-' if share < 0 else '+'}{shown(abs(share))}"

    true = "true" if found.number else "true class"
    nodes = plain_table("node", "hop", "predicted", true, "share", numbers=slice(4, 5))
    for one in found.nodes:
        about = (str(one.node), _hop(one.hop), one.label, one.known or "")
        nodes.add_row(*about, signed(one.share))
    features = plain_table("feature", "share")
    for each in found.features:
        features.add_row(str(each.feature), signed(each.share))
    hops = plain_table("hop", "nodes", "share")
    for hop, count, share in _shortened(found.hops, top):
        hops.add_row(hop, str(count), signed(share))
    hops.add_row("bias", "", signed(found.bias))
    hops.add_row("residual", "", f"{found.residual:+.1e}")
    if found.attributed:
        yield from (nodes, features, hops)
    if found.links:
        fall = f"drop of {found.label}" if found.number else "drop of log p"
        table = plain_table("edge", "", "", fall, numbers=slice(3, 4))
        for link in found.links:
            table.add_row(str(link.source), "–", str(link.target), shown(link.effect))
        yield table


def _shortened(hops: Sequence[HopShare], top: int) -> Iterable[tuple[str, int, float]]:
    """The first `top` hops, and the others together."""
    for one in hops[:top]:
        yield _hop(one.hop), one.nodes, one.share
    if rest := hops[top:]:
        name = f"{_hop(rest[0].hop)} and more"
        yield name, sum(one.nodes for one in rest), sum(one.share for one in rest)


def _at_random(found: Explanation) -> str:
    """What removing as many edges that are not the strongest does."""
    assert found.removal
    mean, deviation = found.removal.random_mean, found.removal.random_deviation
    what, each = f"the probability of {found.label}", f"{mean:.3f} ± {deviation:.3f}"
    if found.number:
        what, each = found.label, f"{number_shown(mean)} ± {number_shown(deviation)}"
    return (
        f"With as many random edges of its 2-hop neighbourhood removed, {what} is {each} "
        f"({len(found.removal.random)} draws)."
    )


def _adds_up(found: Explanation) -> str:
    whole = found.unit if found.number else f"the {found.unit}"
    if found.exact:
        return f"The shares add up to {whole}; the residual {found.residual:.1e} is rounding."
    who = "Not all members are" if found.weights else f"{found.model} is not"
    form = ".4g" if found.number else ".3f"
    over = f"{found.residual:+{form}} of {whole} {found.score:{form}} over"
    return f"{who} piecewise linear here: the shares leave {over}."


def _hop(hop: int | None) -> str:
    return "no way" if hop is None else str(hop)

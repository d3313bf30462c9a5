"""The page and the card of an ensemble: its members, what they weigh, and what was left out."""

import re
from dataclasses import replace
from html import unescape

import pytest
from support import chromium

from gcnii import open_bundle
from gcnii.inference.evaluate import graph_helps
from gcnii.inference.page import write_page
from gcnii.results.card import board

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # what `evaluate` has to warn of


@pytest.fixture(scope="module")
def with_curves(ensemble, tmp_path_factory):
    bundle = ensemble.save(tmp_path_factory.mktemp("bundles") / "own")
    opened = open_bundle(bundle, curves=True)
    return replace(opened, left_out=("plus was left out: there was no <time> for it",))


@pytest.fixture(scope="module")
def page(with_curves, own, tmp_path_factory):
    return write_page(with_curves, tmp_path_factory.mktemp("page") / "own.html", own)


@pytest.fixture(scope="module")
def html(page):
    return page.read_text()


@pytest.mark.parametrize(("width", "scheme"), chromium.screens())
def test_it_fits_the_screen_and_can_be_read(browser, page, width, scheme):
    with chromium.tab_of(browser, page.as_uri(), color_scheme=scheme) as tab:
        chromium.resize(tab, width)
        assert tab.evaluate("document.scrollingElement.scrollWidth") <= width
        assert tab.is_visible("#members table")
        texts = "#members p, #members td, #members th, figcaption"
        assert min(tab.eval_on_selector_all(texts, chromium.CONTRAST)) >= 4.5


def test_the_leaderboard_is_a_table_of_the_page(html, ensemble):
    (section,) = re.findall('<section id="members">.*?</section>', html, re.S)
    cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", section)
    heads, rows = board(ensemble)
    assert cells == [cell for row in (heads, *rows) for cell in row]


def test_what_was_left_out_is_said_and_is_no_markup(html):
    assert "Plus was left out: there was no &lt;time&gt; for it." in html


def test_the_curves_are_those_of_the_networks_that_have_a_weight(html, ensemble):
    weights = ensemble.network_weights(ensemble.blends[0])
    for network, weight in weights.items():
        assert (f'aria-label="{network.name}: Loss by epoch"' in html) == bool(weight)


def test_it_says_how_to_train_the_same(html):
    assert "gcnii.fit(graph, 'auto', effort='quick', epochs=12)" in unescape(html)


def test_the_card_lists_members_folds_and_who_was_left_out(ensemble, tmp_path):
    left = replace(ensemble, left_out=("plus was left out: there was no time for it",))
    card = (left.save(tmp_path / "bundle") / "card.md").read_text()
    _, rows = board(ensemble)
    for row in rows:
        assert f"|{'|'.join(row)}|" in card
    assert "- plus was left out: there was no time for it." in card
    assert f"divided into {ensemble.folds} folds" in card
    nodes = int(ensemble.held_out(ensemble.trained_on).sum())
    assert f"Weights and temperature were found on {nodes} validation nodes." in card


def test_the_ensemble_is_compared_with_its_best_member_without_the_graph(ensemble, own):
    found = graph_helps(ensemble)
    blind = [one for one in ensemble.leaderboard() if one["sees"] == "features"]
    alone = ensemble.member(min(blind, key=lambda one: one["val_loss"])["member"])
    assert found.difference.mean == pytest.approx(ensemble.test[0] - alone.test[0])
    assert f"({alone.title} on the features)" in found.sentence
    assert found.sentence.startswith("The graph ")


def test_without_edges_there_is_no_word_about_the_graph(ensemble, own):
    bare = replace(own, edges=own.edges[:, :0])
    assert graph_helps(replace(ensemble, trained_on=bare)) is None

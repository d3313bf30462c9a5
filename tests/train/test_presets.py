"""Published settings are those of the papers and of their authors' scripts."""

import pytest

from gcnii.train.presets import preset, published_by

STOP = {"lr": 0.01, "epochs": 1500, "patience": 100, "monitor": "val_loss"}


def test_cora_is_trained_as_table_6_says():
    settings = {"layers": 64, "width": 64, "alpha": 0.1, "lam": 0.5, "dropout": 0.6}
    assert preset("cora", "gcnii") == {**settings, "decay_conv": 0.01, "decay_dense": 5e-4, **STOP}
    assert (
        preset("cora", "gcnii-star")
        == preset("cora", "gcnii-star-printed")
        == preset("cora", "gcnii")
    )


def test_texas_is_trained_as_the_appendix_says():
    settings = {"layers": 32, "width": 64, "alpha": 0.5, "lam": 1.5, "dropout": 0.5}
    assert preset("texas", "gcnii") == {**settings, "decay_conv": 1e-4, "decay_dense": 1e-4, **STOP}


def test_a_deep_gcn_is_trained_like_gcnii_without_its_two_residuals():
    both = preset("citeseer-full", "gcnii"), preset("citeseer-full", "deep-gcn")
    assert both[0].items() - both[1].items() == {("alpha", 0.5), ("lam", 0.5)}
    assert preset("texas", "deep-gcn") == {}


def test_the_networks_of_dropedge_are_trained_as_their_authors_scripts_say():
    plain = {"self_weight": False, "batch_norm": False}
    stop = {"epochs": 400, "patience": 400, "monitor": "noisy_loss"}
    assert preset("cora", "jknet") == {
        **{"layers": 4, "width": 128, "dropout": 0.8},
        **{"lr": 0.001, "decay_conv": 5e-4, "decay_dense": 5e-4},
        **{"norm": "walk", "drop_edge": 0.6, **plain, **stop},
    }
    assert preset("cora", "incep")["layers"] == 64
    both = preset("pubmed-full", "jknet")
    assert (both["layers"], both["self_weight"], both["batch_norm"]) == (64, True, True)


def test_jknet_on_web_pages_is_trained_as_the_appendix_says():
    settings = preset("texas", "jknet")
    assert (
        settings.items()
        >= {"layers": 32, "width": 64, "drop_edge": 0.8, "decay_conv": 5e-5, **STOP}.items()
    )
    assert preset("cornell", "incep") == preset("cornell-2022", "incep")
    assert preset("texas", "dropedge-gcn") == {}


def test_geom_gcn_is_trained_as_its_authors_say():
    settings = {"layers": 2, "width": 48, "dropout": 0.5, "decay_conv": 5e-6, "decay_dense": 5e-6}
    assert preset("chameleon", "geom-gcn-i") == preset("chameleon", "geom-gcn-s") == settings
    wider = {"width": 32, "decay_conv": 5e-5, "decay_dense": 5e-5}
    assert preset("texas", "geom-gcn-p") == settings | wider
    assert preset("cornell-2022", "geom-gcn-i") == preset("cora", "geom-gcn-i") == {}


def test_ppi_stops_by_its_score():
    settings = preset("ppi", "gcnii-ppi")
    assert settings == preset("ppi", "gcnii-star-ppi")
    assert (settings["layers"], settings["width"], settings["monitor"]) == (9, 2048, "val_score")
    assert (settings["epochs"], settings["patience"]) == (8000, 2000)
    assert (settings["lr"], settings["decay_conv"]) == (0.001, 0)


def test_a_preset_is_a_copy_and_empty_where_there_is_none():
    preset("cora", "gcnii")["layers"] = 1
    assert preset("cora", "gcnii")["layers"] == 64
    assert preset("cora", "no-model") == preset("my/folder", "gcnii") == {}


@pytest.mark.parametrize(
    ("name", "model", "words"),
    [
        ("cora", "gcnii", "Chen et al. 2020 (GCNII)"),
        ("cora", "ppnp", "Fey & Lenssen 2019, for APPNP"),
        ("cora", "gcn-identity", "Chen et al. 2020 (GCNII), for GCNII"),
        ("cora", "jknet", "Rong et al. 2020 (DropEdge), its scripts"),
        ("texas", "appnp", "Chen et al. 2020 (GCNII), for Table 5; layers are ours"),
        ("texas", "gat", "Pei et al. 2020 (Geom-GCN)"),
        ("ppi-like", "geniepath", "GeniePath-pytorch, which re-implements Liu et al. 2019"),
        ("pubmed-full", "cluster-gcn", ""),
    ],
)
def test_the_source_of_settings_is_who_published_them_for_this_model(name, model, words):
    assert preset(name, model)
    assert published_by(name, model) == words

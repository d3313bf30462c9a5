"""Models and curves in MLflow; `make mlflow` runs this with MLflow installed beside the rest."""

import sys

import pandas as pd
import pytest
from support.command_line import SMALL, call, write_pets

import gcnii
import gcnii.mlflow
from gcnii.errors import InputError


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    """MLflow with a store in a file of its own."""
    found = pytest.importorskip("mlflow", reason="`make mlflow` installs it")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    found.set_tracking_uri((tmp_path / "store").as_uri())
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "store").as_uri())
    return found


@pytest.fixture
def pets(tmp_path):
    return gcnii.load(write_pets(tmp_path / "pets"))


@pytest.mark.filterwarnings("ignore")
def test_a_logged_model_opens_and_predicts_on_tables(mlflow, pets, tmp_path):
    result = gcnii.fit(pets, "gcnii", layers=2, epochs=3)
    with mlflow.start_run():
        address = gcnii.mlflow.log_model(result)
        run = mlflow.active_run().info.run_id
    expected = result.predict_proba(pets)
    assert (gcnii.mlflow.load_model(address).predict_proba(pets) == expected).all()
    tables = {name: pd.read_csv(tmp_path / "pets" / f"{name}.csv") for name in ("nodes", "edges")}
    found = mlflow.pyfunc.load_model(address).predict(tables)
    assert found["p(cat)"].to_list() == expected[:, 0].round(6).tolist()
    logged = mlflow.get_run(run).data
    assert logged.params["layers"] == "2"
    assert logged.metrics["test"] == pytest.approx(float(result.test.mean()))


@pytest.mark.filterwarnings("ignore")
def test_a_model_goes_into_the_run_that_logged_its_training(mlflow, pets):
    with mlflow.start_run() as run:
        result = gcnii.fit(pets, "gcnii", layers=2, epochs=3, callbacks=[gcnii.mlflow.MlflowLog()])
        gcnii.mlflow.log_model(result)
    logged = mlflow.get_run(run.info.run_id).data
    assert {"test", "seed-0/val_loss"} <= logged.metrics.keys()
    assert logged.params["layers"] == "2"


@pytest.mark.filterwarnings("ignore")
def test_each_of_several_settings_has_curves_of_its_own(mlflow, pets):
    log = gcnii.mlflow.MlflowLog()
    gcnii.fit(pets, "gcnii", layers=2, epochs=3, alpha=[0.1, 0.9], callbacks=[log])
    (run,) = mlflow.search_runs(output_format="list")
    history = mlflow.MlflowClient().get_metric_history
    for name in ("seed-0/val", "setting-1/seed-0/val"):
        assert [point.step for point in history(run.info.run_id, name)] == [0, 1, 2]
    own = {name: value for name, value in run.data.params.items() if "/" in name}
    assert own == {"setting-1/alpha": "0.9"}


@pytest.mark.filterwarnings("ignore")
def test_train_logs_its_curves(mlflow, pets, tmp_path):
    answer = call("train", "pets", *SMALL, "--runs", 2, "--log", "mlflow", cwd=tmp_path)
    assert answer.code == 0, answer.err
    (run,) = mlflow.search_runs(output_format="list")
    assert run.info.status == "FINISHED"
    curve = mlflow.MlflowClient().get_metric_history(run.info.run_id, "seed-1/val_loss")
    assert [point.step for point in curve] == [0, 1, 2]


def test_what_is_to_be_predicted_and_when_nodes_came_need_not_be_known():
    nodes = pd.DataFrame({"id": range(40), "x": range(40), "views": range(40), "since": range(40)})
    edges = pd.DataFrame({"source": range(39), "target": range(1, 40)})
    graph = gcnii.from_frames(nodes, edges, target="views", time="since")
    result = gcnii.fit(graph, "gcnii", layers=2, epochs=3)
    tables = {"nodes": nodes[["id", "x"]], "edges": edges}
    found = gcnii.mlflow.Predictor(result).predict(tables)
    assert found["value(views)"].to_list() == result.predict(gcnii.from_frames(**tables)).tolist()


def test_tables_of_other_names_are_refused():
    with pytest.raises(InputError, match="predict takes two data frames"):
        gcnii.mlflow.Predictor(None).predict({"rows": 1})


def test_without_mlflow_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(InputError, match=r"this needs MLflow: pip install 'gcnii\[mlflow\]'"):
        gcnii.mlflow.MlflowLog()

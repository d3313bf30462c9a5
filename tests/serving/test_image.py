"""The steps of the Dockerfile, run as a script where there is no Docker."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import urllib.request

import pytest
from support.manual import ROOT
from support.run_pages import a_graph, trained

import gcnii

pytestmark = pytest.mark.slow

TOKEN = "0123456789abcdef"
STEPS = [
    line.partition(" ")[::2]
    for line in (ROOT / "Dockerfile").read_text().splitlines()
    if line and not line.startswith("#")
]


def words(step):
    """Those of the last such step, a list in JSON."""
    (found,) = [text for name, text in STEPS if name == step]
    return json.loads(found.removeprefix("CMD "))


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """An environment as after the last RUN; what this one has need not be downloaded again."""
    folder = tmp_path_factory.mktemp("image")
    own, build = folder / "env", folder / "build"
    build.mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", own], check=True)
    (packages,) = own.glob("lib/python*/site-packages")
    (packages / "beside.pth").write_text(sysconfig.get_path("purelib") + "\n")
    environment = os.environ | {
        "PATH": f"{own / 'bin'}:{os.environ['PATH']}",
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # which means that there is none
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    for name in ("PYTHONPATH", "TORCH_INDEX"):
        environment.pop(name, None)
    kept = (ROOT / ".dockerignore").read_text().split()
    for name, text in STEPS:
        if name == "COPY":
            *sources, place = text.split()
            for source in sources:
                assert f"!{source}" in kept
                copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
                copy(ROOT / source, build / place / ("" if place == source else source))
        elif name == "RUN" and not text.startswith("apt-get "):  # this system stays as it is
            subprocess.run(["sh", "-c", text], cwd=build, env=environment, check=True)
    return environment


def test_what_the_image_starts_serves_a_bundle_to_who_has_the_token(image, tmp_path):
    gcnii.save(a_graph(names=("a",)), tmp_path / "graph.safetensors")
    trained(gcnii.load(tmp_path / "graph.safetensors")).save(tmp_path / "bundle")
    (tmp_path / "token").write_text(TOKEN)
    start = [word.replace("/run/secrets/", f"{tmp_path}/") for word in words("ENTRYPOINT")]
    start += ["bundle", "--graph", "graph.safetensors", "--port", "0"]
    with subprocess.Popen(
        start, cwd=tmp_path, env=image, stderr=subprocess.PIPE, text=True
    ) as process:
        line = process.stderr.readline()
        port = re.search(r"serving at http://0.0.0.0:(\d+)", line)
        assert port, line
        health = [word.replace("8000", port[1]) for word in words("HEALTHCHECK")]
        subprocess.run(health, env=image, check=True, timeout=60)
        asked = urllib.request.Request(
            f"http://127.0.0.1:{port[1]}/model", headers={"Authorization": f"Bearer {TOKEN}"}
        )
        with urllib.request.urlopen(asked, timeout=60) as answer:
            assert json.load(answer)["nodes"] == 160
        process.terminate()
    assert process.returncode == 0

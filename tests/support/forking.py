"""Commands of gcnii as forks of a process that has imported everything; they start at once.

The process reads a JSON document per line: {words, cwd, out, err} starts a command, and is answered
with its number; {wait: number} is answered with the exit code, or minus the signal that ended it.
Trials of a killed worker are given back after seconds here, winners are trained with two seeds, and
no line of progress comes between the lines of an answer.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

from support.command_line import Answer, call, write_pets
from support.waiting import PATIENCE

HEARTBEAT, GRACE = 1, 6


class Forks:
    """The process, from outside."""

    def __init__(self, folder):
        self.folder, self.count, self.running = folder, 0, {}
        self.process = subprocess.Popen(
            [sys.executable, __file__],
            cwd=tempfile.gettempdir(),
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._hear()

    def _hear(self):
        line = self.process.stdout.readline()
        assert line, "the process that forks has died"
        return int(line)

    def _ask(self, **document):
        self.process.stdin.write(json.dumps(document) + "\n")
        self.process.stdin.flush()
        return self._hear()

    def start(self, *words, cwd):
        """Start a command; return the number of its process."""
        self.count += 1
        out, err = (self.folder / f"{self.count}.{name}" for name in ("out", "err"))
        words = [str(word) for word in words]
        number = self._ask(words=words, cwd=str(cwd), out=str(out), err=str(err))
        self.running[number] = out, err
        return number

    def finish(self, number):
        """Wait for a command, and return its answer."""
        code = self._ask(wait=number)
        return Answer(code, *(path.read_text("utf-8") for path in self.running.pop(number)))

    def stop(self, number, signal_number):
        """Send a signal, and return the answer."""
        os.kill(number, signal_number)
        return self.finish(number)

    def close(self):
        """End all commands, and the process."""
        for number in list(self.running):
            self.stop(number, signal.SIGKILL)
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def prepare():
    """Import all that a study needs, by doing a small one."""
    import torch

    from gcnii.train import callbacks
    from gcnii.tuning import closing, question, storage

    torch.set_num_threads(1)
    storage.HEARTBEAT, storage.GRACE = HEARTBEAT, GRACE
    question.FINAL = closing.FINAL = 2
    callbacks.EVERY = PATIENCE
    with tempfile.TemporaryDirectory() as folder:
        write_pets(Path(folder) / "pets")
        words = ("--trials", 2, "--epochs", 1, "--seeds", 1, "--device", "cpu", "--threads", 1)
        answer = call("tune", "pets", *words, cwd=folder)
    assert answer.code == 0, answer.err


def become(words, cwd, out, err):
    """The command line in this process, which ends with it."""
    import gcnii.cli

    code = 1
    try:
        os.chdir(cwd)
        for path, number in ((out, 1), (err, 2)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.argv = ["gcnii", *words]
        signal.signal(signal.SIGINT, signal.default_int_handler)
        gcnii.cli.main()
        code = 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def serve():
    """Obey until stdin ends."""
    prepare()
    print(0, flush=True)
    for line in sys.stdin:
        document = json.loads(line)
        if "wait" in document:
            _, status = os.waitpid(document["wait"], 0)
            print(os.waitstatus_to_exitcode(status), flush=True)
            continue
        child = os.fork()
        if child == 0:
            become(**document)
        print(child, flush=True)


if __name__ == "__main__":
    serve()

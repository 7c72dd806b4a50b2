"""Ten judges at once on `skpref judge`, whose server is killed: every vote counts once.

    python benchmarks/robustness/judging.py [--votes 2000] [--judges 10] [--kills 50] [--seed 0]

Judges are clients by HTTP with a link each. The server is killed (SIGKILL) at random moments and
begun again. A judge whose answer was not acknowledged sends it again, as the page does. After a
kill each judge must be asked the question that was open. In the end the export must hold every
acknowledged vote exactly once, and no other. Latency is that of acknowledged answers between kills.
"""

import argparse
import csv
import http.client
import io
import json
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, few, report

N_ITEMS = 40
WAIT = 0.05  # seconds until a judge tries again


def free_port():
    """A port of this machine that is free now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Server:
    """A server on a folder of texts that is killed and begun again."""

    def __init__(self, folder, n_judges):
        self.port, self.log = free_port(), folder / "log"
        things, names = folder / "things", folder / "judges.csv"
        things.mkdir()
        for k in range(N_ITEMS):
            (things / f"text {k}.txt").write_text(f"text {k}", "utf-8")
        names.write_text("\n".join(f"judge {k}" for k in range(n_judges)), "utf-8")
        self.command = [sys.executable, "-m", "skpref", "judge", str(things), "--no-browser"]
        self.command += ["--judges", str(names), "--port", str(self.port)]

    def begin(self):
        """Start it, and wait until it answers."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log)
        while True:
            try:
                return self.get("/")
            except OSError:
                if self.process.poll() is not None:
                    raise RuntimeError(self.log.read_text("utf-8")) from None
                time.sleep(WAIT)

    def kill(self):
        """End it at once."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def keys(self):
        """The keys of the judges' links."""
        links = re.findall(r"link of .+: http://[^/]+/([^/]+)/", self.log.read_text("utf-8"))
        return list(dict.fromkeys(links))

    @property
    def owner(self):
        """Path of the pages that are not for judges."""
        return re.findall(r"board at http://[^/]+(/.*)board", self.log.read_text("utf-8"))[-1]

    def get(self, path, message=None):
        """The body of an answer; OSError where there is none."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            body = None if message is None else json.dumps(message)
            headers = {} if message is None else {"Content-Type": "application/json"}
            connection.request("GET" if message is None else "POST", path, body, headers)
            response = connection.getresponse()
            content = response.read().decode()
            if response.status == 429:
                raise OSError("too many")
            return content
        except http.client.HTTPException as error:
            raise OSError(str(error)) from error
        finally:
            connection.close()


class Judge(threading.Thread):
    """A client that answers until it has given enough votes."""

    def __init__(self, server, key, n_votes, seed):
        super().__init__(daemon=True)
        self.server, self.path, self.n_votes = server, f"/{key}/message", n_votes
        self.rng, self.seconds, self.told, self.moved = random.Random(seed), [], 0, 0

    def send(self, message):
        """Send a message until it is acknowledged; return the page, and whether it was repeated."""
        begin, again = time.perf_counter(), False
        while True:
            try:
                page = json.loads(self.server.get(self.path, message))
                break
            except (OSError, ValueError):
                again = True
                time.sleep(WAIT)
        if not again:
            self.seconds.append(time.perf_counter() - begin)
        return page, again

    def run(self):
        """Answer question after question."""
        page, _ = self.send({"type": "show"})
        while self.told < self.n_votes:
            question = page["question"]
            outcome = self.rng.choice([0, 1, "tie"])
            number = question["number"]
            page, again = self.send({"type": "answer", "number": number, "outcome": outcome})
            self.told += 1
            if again:  # the same question as that which was open
                shown, _ = self.send({"type": "show"})
                self.moved += shown["question"]["number"] != page["question"]["number"]
                page = shown


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--votes", type=int, default=2000)
    parser.add_argument("--judges", type=int, default=10)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder), options.judges)
        server.begin()
        keys = server.keys()
        share = options.votes // options.judges
        judges = [Judge(server, key, share, k) for k, key in enumerate(keys)]
        for judge in judges:
            judge.start()
        for _ in range(options.kills):
            time.sleep(rng.uniform(0.0, few(2.0, 0.2)))
            server.kill()
            server.begin()
        for judge in judges:
            judge.join()
        export = json.loads(server.get(f"{server.owner}export/votes.json"))
        rows = list(csv.DictReader(io.StringIO(server.get(f"{server.owner}export/votes.csv"))))
        server.kill()
    kept = Counter(row["judge"] for row in rows)
    lost = sum(max(0, share - kept[f"judge {k}"]) for k in range(len(judges)))
    seconds = np.concatenate([judge.seconds for judge in judges])
    told = sum(judge.told for judge in judges)
    row = {
        "votes": told,
        "judges": len(judges),
        "kills": options.kills,
        "lost": lost,
        "doubled": len(rows) - told + lost,
        "in both exports": len(export) == len(rows),
        "asked another question after a kill": sum(judge.moved for judge in judges),
        "ms median": 1e3 * float(np.median(seconds)),
        "ms 99 %": 1e3 * float(np.quantile(seconds, 0.99)),
    }
    report([row], RESULTS / "judging.csv")
    assert row["lost"] == row["doubled"] == 0


if __name__ == "__main__":
    main()

"""Ten people judge at once by HTTP, the server is killed again and again, one client floods.

    python benchmarks/robustness/judging.py [--judges 10] [--answers 2000] [--kills 50]

`skpref judge` serves pictures as a process of its own. Each judge has a link and answers as the
page does: the next answer goes out when the last one is confirmed, and a message that is not
confirmed is sent again. At random moments the server gets SIGKILL and is started anew. In the end
every answer must be in the export exactly once, as its judge gave it. After each kill every judge
looks at the page again, which must show the question that she had, or the next one where the answer
that was on its way is on disk.

Then one client floods the server, by a link of its own and by links that were never given out,
while the others go on: the longest wait for the next question must be below a second.
"""

import argparse
import http.client
import json
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, report

from skpref.widgets._files import encode_png

# Seconds before a message is sent again, and at most until a kill that is due: of some ten answers.
AGAIN, LONGEST_LIFE = 0.2, 0.4
# Clients that flood, at once, and what a judge bears to wait.
N_FLOODS, BEARABLE = 4, 1.0


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Server:
    """The command as a process, which can be killed and started again."""

    def __init__(self, folder, names):
        self._folder, self.port, self.lives = Path(folder), free_port(), 0
        self._log = self._folder / "log.txt"
        invited = self._folder / "invited.csv"
        invited.write_text("\n".join(["judge", *names]) + "\n")
        self._command = [sys.executable, "-m", "skpref", "judge", str(self._folder / "pictures")]
        self._command += ["--no-browser", "--port", str(self.port), "--judges", str(invited)]

    def start(self):
        """Start it, and return once it has printed where it is."""
        self._log.write_text("")
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        while "Ctrl-C ends" not in self._log.read_text():
            if self._process.poll() is not None:
                raise RuntimeError(self._log.read_text())
            time.sleep(0.02)
        self.lives += 1

    def kill(self):
        self._process.kill()
        self._process.wait()

    def links(self):
        """Paths of the links of the judges by name, and of whoever runs the vote under ''."""
        text = self._log.read_text()
        pairs = re.findall(r"link of (.+?): (http\S+)", text)
        pairs += [("", url) for url in re.findall(r"vote at (http\S+)", text)]
        return {name: urlsplit(url).path for name, url in pairs}


def request(port, path, message=None):
    """Status and content of an answer, by one connection as a browser without keep-alive has it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        if message is None:
            connection.request("GET", path)
        else:
            content = json.dumps(message)
            connection.request("POST", path, content, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def shown(items):
    return [item["url"] for item in items]


class Person:
    """A judge: what was answered, how long the next question took, and what was wrong."""

    def __init__(self, server, name, seed):
        self._server, self._path = server, f"{server.links()[name]}message"
        self._rng = random.Random(seed)
        self.answers, self.waits, self.strange = {}, [], []

    def _send(self, **message):
        """Send until it is confirmed; the page, and whether the server was another meanwhile."""
        life = self._server.lives
        while True:
            with suppress(OSError, http.client.HTTPException):
                status, content = request(self._server.port, self._path, message)
                if status == 200:
                    return json.loads(content), self._server.lives != life
                if status != 429:
                    raise RuntimeError(f"{status}: {content}")
            time.sleep(AGAIN)

    def judge(self, n_answers):
        """Answer until so many answers are given."""
        page, _ = self._send(type="show")
        while len(self.answers) < n_answers:
            question, life = page["question"], self._server.lives
            outcome = self._rng.choice([0, 1, "tie"])
            began = time.perf_counter()
            number = question["number"]
            page, is_new = self._send(type="answer", number=number, outcome=outcome, seconds=1.0)
            self.waits.append(time.perf_counter() - began)
            if number in self.answers:
                self.strange.append(f"question {number} came again after its answer")
            self.answers[number] = outcome
            ahead = shown(question["ahead"])
            if shown(page["question"]["items"]) != ahead and len(ahead) == 2:
                self.strange.append(f"after {number} came another question than was announced")
            if is_new or self._server.lives != life:
                again, _ = self._send(type="show")
                if again["question"]["items"] != page["question"]["items"]:
                    self.strange.append(f"after {number} and a kill another question came")
                page = again


def judge_at_once(people, n_answers):
    """Threads in which people judge."""
    threads = [threading.Thread(target=person.judge, args=(n_answers,)) for person in people]
    for thread in threads:
        thread.start()
    return threads


def flood(port, paths, ends, counts):
    """Send messages as fast as they are answered, until it ends."""
    rng = random.Random(0)
    while not ends.is_set():
        path = rng.choice(paths)
        if not path:
            path = f"/{rng.getrandbits(64):x}/message"
        with suppress(OSError, http.client.HTTPException):
            counts[request(port, path, {"type": "show"})[0]] += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--judges", type=int, default=10)
    parser.add_argument("--answers", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--items", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS / "judging.csv")
    options = parser.parse_args()
    os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parents[2])
    rng = random.Random(options.seed)
    names = [f"judge {k}" for k in range(options.judges)]
    with tempfile.TemporaryDirectory() as folder:
        pictures = Path(folder) / "pictures"
        pictures.mkdir()
        for k in range(options.items):
            shade = np.full((20, 30), k / options.items)
            (pictures / f"{k:03d}.png").write_bytes(encode_png(shade))
        server = Server(folder, [*names, "flood"])
        server.start()
        try:
            rows = [
                kill_while_they_judge(server, names, options, rng),
                *flood_while_they_judge(server, names, options),
            ]
        finally:
            server.kill()
    report(rows, options.out, items=options.items, seed=options.seed)
    bad = ("lost", "doubled", "differing", "other questions")
    return int(any(row.get(name) for row in rows for name in bad))


def kill_while_they_judge(server, names, options, rng):
    """A row of the answers, the kills, and what was lost, doubled or different."""
    people = [Person(server, name, k) for k, name in enumerate(names)]
    threads = judge_at_once(people, options.answers // options.judges)
    kills = 0
    while any(thread.is_alive() for thread in threads):
        n_given = sum(len(person.answers) for person in people)
        # The kills are spread over the answers, each at a random moment.
        if kills < options.kills and n_given >= kills * options.answers / (options.kills + 1):
            time.sleep(rng.uniform(0.0, LONGEST_LIFE) if kills else 0.0)
            server.kill()
            server.start()
            kills += 1
        time.sleep(0.02)
    held = Counter()
    _, content = request(server.port, f"{server.links()['']}export/votes.json")
    for record in json.loads(content):
        held[record["question"], record["judge"], json.dumps(record["outcome"])] += 1
    given = Counter(
        (number, name, json.dumps(outcome))
        for name, person in zip(names, people, strict=True)
        for number, outcome in person.answers.items()
    )
    questions = Counter(number for number, *_ in held.elements())
    strange = [text for person in people for text in person.strange]
    print(*strange, sep="\n")
    return {
        "part": "kills",
        "judges": len(people),
        "answers": given.total(),
        "kills": kills,
        "lost": (given - held).total(),
        "differing": (held - given).total(),
        "doubled": questions.total() - len(questions),
        "other questions": len(strange),
    }


def flood_while_they_judge(server, names, options):
    """Rows of the waits for the next question, without a flood and with one."""
    n_answers = max(2, options.answers // options.judges // 5)
    for part in ("quiet", "flood"):
        people = [Person(server, name, k) for k, name in enumerate(names)]
        ends, counts = threading.Event(), Counter()
        paths = [f"{server.links()['flood']}message", ""]
        n_floods = N_FLOODS if part == "flood" else 0
        floods = [
            threading.Thread(target=flood, args=(server.port, paths, ends, counts))
            for _ in range(n_floods)
        ]
        began = time.perf_counter()
        for thread in floods:
            thread.start()
        for thread in judge_at_once(people, n_answers):
            thread.join()
        seconds = time.perf_counter() - began
        ends.set()
        for thread in floods:
            thread.join()
        waits = np.concatenate([person.waits for person in people])
        yield {
            "part": part,
            "judges": len(people),
            "answers": len(waits),
            "messages a second of the flood": round(counts.total() / seconds),
            "refused": counts[429] + counts[404],
            "median wait in ms": round(1e3 * float(np.median(waits)), 1),
            "longest wait in ms": round(1e3 * float(waits.max()), 1),
            "waits above a second": int((waits > BEARABLE).sum()),
        }


if __name__ == "__main__":
    sys.exit(main())

"""The server of `skpref judge`: what is asked is told once, and what is hostile is refused."""

import csv
import io
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import anyio
import numpy as np
import pytest
from starlette.testclient import TestClient

from skpref._judging._board import board_page
from skpref._judging._desk import VoteDesk
from skpref._judging._items import read_items
from skpref._judging._planning import (
    Planner,
    VoteForm,
    VoteGoals,
    fit_votes,
    make_board,
    make_plan,
)
from skpref._judging._server import Access, make_app
from skpref._judging._settings import SettingsDesk, read_space
from skpref._judging._store import VoteStore
from skpref.duels import from_votes

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 20
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "photos"
    path.mkdir()
    for k in range(8):
        (path / f"p{k}.png").write_bytes(PNG)
    return path


def open_desk(folder, form=VoteForm(), **options):  # noqa: B008 - a tuple
    store = VoteStore(folder.with_name("votes.db"))
    source = read_items(folder, None, None, None)
    return VoteDesk(store, source, form, plans=False, **options)


def client_of(desk, token="", judges=None):
    access = Access(token, judges or {}, ["127.0.0.1", "testserver"])
    return TestClient(make_app(desk, access))


def post(client, path="/message", **message):
    return client.post(path, json=message)


@pytest.fixture
def desk(folder):
    desk = open_desk(folder)
    yield desk
    desk.close()


def number_of(desk, name):
    return next(number for number, item in desk._items.items() if item.name == name)


def answer(client, page, outcome=1, **more):
    return post(client, type="answer", number=page["question"]["number"], outcome=outcome, **more)


def test_answers_reach_the_export_that_from_votes_reads(desk):
    client = client_of(desk)
    page = post(client, type="show", judge="ann").json()
    for outcome in (1, 0, "tie", 1, 0):
        page = answer(client, page, outcome, judge="ann", comment="=1+1", seconds=0.5).json()
    rows = list(csv.DictReader(io.StringIO(client.get("/export/votes.csv").text)))
    assert [row["winner"] for row in rows] == ["a", "b", "tie", "a", "b"]
    assert {row["judge"] for row in rows} == {"ann"}
    assert {row["comment"] for row in rows} == {"'=1+1"}  # a spreadsheet would run it
    table = {name: [row[name] for row in rows] for name in rows[0]}
    assert sorted(from_votes(table).y.tolist()) == [-1, -1, 0, 1, 1]
    votes = json.loads(client.get("/export/votes.json").text)
    assert [vote["comment"] for vote in votes] == ["=1+1"] * 5


def test_undo_takes_back_as_often_as_it_is_asked(desk):
    client = client_of(desk)
    pages = [post(client, type="show").json()]
    for _ in range(3):
        pages.append(answer(client, pages[-1]).json())
    for k in (2, 1, 0):
        page = post(client, type="undo").json()
        assert page["question"]["items"] == pages[k]["question"]["items"]
        assert page["status"]["told"] == k


def test_a_question_is_answered_once(desk):
    client = client_of(desk)
    page = post(client, type="show").json()
    assert answer(client, page).json()["status"]["told"] == 1
    again = answer(client, page, 0).json()
    assert again["status"]["told"] == 1 and "before" in again["status"]["notice"]


def test_the_same_question_comes_after_the_process_is_gone(folder):
    desk = open_desk(folder)
    client = client_of(desk)
    page = answer(client, post(client, type="show").json()).json()
    desk.store._connection.close()  # as a kill does: nothing is written at the end
    desk = open_desk(folder)
    again = post(client_of(desk), type="show").json()
    assert again["question"] == page["question"] and again["status"]["told"] == 1
    desk.close()


def test_a_second_server_is_refused_and_a_later_one_is_not(folder):
    desk = open_desk(folder)
    with pytest.raises(ValueError, match="another skpref judge has open"):
        VoteStore(desk.path)
    desk.close()
    VoteStore(desk.path).close()


def test_a_second_server_of_settings_is_refused(tmp_path):
    desks = [{"x": (0.0, 1.0)}, None]
    first = SettingsDesk(tmp_path / "run.db", *desks, title="space")
    with pytest.raises(ValueError, match="another skpref judge has open"):
        SettingsDesk(tmp_path / "run.db", *desks, title="space")
    first.close()


def test_judges_at_once_lose_and_double_nothing(folder):
    desk = open_desk(folder)
    judges = {f"key-{k}": f"judge {k}" for k in range(4)}
    pairs: dict[str, list] = {name: [] for name in judges.values()}

    def vote(key):
        client = client_of(desk, "token", judges)
        page = post(client, f"/{key}/message", type="show").json()
        for _ in range(12):
            shown = sorted(item["url"] for item in page["question"]["items"])
            pairs[judges[key]].append(tuple(shown))
            number = page["question"]["number"]
            message = {"type": "answer", "number": number, "outcome": 1}
            page = post(client, f"/{key}/message", **message).json()

    threads = [threading.Thread(target=vote, args=(key,)) for key in judges]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    votes = desk.store.votes()
    assert len(votes) == 48 == len({vote.question.number for vote in votes})
    assert all(len(set(own)) == 12 for own in pairs.values())
    desk.close()


def test_no_two_judges_have_the_same_pair(desk):
    client, shown = client_of(desk), set()
    for k in range(10):
        question = post(client, type="show", judge=f"j{k}").json()["question"]
        shown.add(frozenset(item["url"] for item in question["items"]))
    assert len(shown) == 10


def test_checks_repeat_with_the_sides_exchanged_and_are_no_votes(folder):
    desk = open_desk(folder, goals=VoteGoals(checks=0.5))
    client = client_of(desk)
    page = post(client, type="show").json()
    for _ in range(24):
        page = answer(client, page).json()
    votes = desk.store.votes()
    before = {vote.question.number: vote.question.items for vote in votes}
    repeats = [vote.question for vote in votes if vote.question.repeats is not None]
    assert repeats and all(q.items == before[q.repeats][::-1] for q in repeats)
    assert desk.store.count_votes() == 24 - len(repeats)
    assert desk.agreement()["judge"][:2] == (0, len(repeats))  # the first won each
    desk.close()


@pytest.mark.parametrize(
    "path",
    [
        "/../votes.db",
        "/items/..%2fvotes.db",
        "/items/99",
        "/items/-1",
        "/x/board",
        "/blobs/..%2f..%2fvotes.db",
        "/export/..%2fvotes.db",
        "/export/%2e%2e/votes.db",
        "/page.css/..%2f__init__.py",
        "//etc/passwd",
    ],
)
def test_no_path_leads_out_of_the_folder(desk, path):
    assert client_of(desk).get(path).status_code == 404


def test_raw_paths_reach_the_application_as_they_are(desk):
    """Clients shorten paths; this one does not."""
    app = make_app(desk, Access("", {}, ["testserver"]))
    for path in ("/../votes.db", "/items/../../votes.db", "/export/../../../etc/passwd"):
        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "scheme": "http",
            "query_string": b"",
            "headers": [(b"host", b"testserver")],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 1),
        }
        statuses = []

        async def receive():
            return {"type": "http.request", "body": b""}

        async def send(message, statuses=statuses):
            statuses.append(message.get("status"))

        anyio.run(app, scope, receive, send)
        assert statuses[0] == 404, path


def test_links_out_of_the_folder_are_left_out_also_later(folder, tmp_path):
    (tmp_path / "secret.png").write_bytes(PNG + b"secret")
    (folder / "out.png").symlink_to(tmp_path / "secret.png")
    desk = open_desk(folder)
    assert "out.png" not in [item.name for item in desk.source.items]
    assert "lead out" in " ".join(desk.source.notes)
    number = number_of(desk, "p0.png")
    (folder / "p0.png").unlink()
    (folder / "p0.png").symlink_to(tmp_path / "secret.png")
    assert client_of(desk).get(f"/items/{number}").status_code == 404
    desk.close()


def test_linked_folders_and_texts_stay_shut(folder, tmp_path):
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "text.txt").write_text("secret")
    (secret / "picture.png").write_bytes(PNG)
    (folder / "linked").symlink_to(secret)
    (folder / "note.txt").write_text("a note")
    desk = open_desk(folder)
    assert not [item.name for item in desk.source.items if "linked" in item.name]
    (folder / "note.txt").unlink()
    (folder / "note.txt").symlink_to(secret / "text.txt")
    text = desk._stimulus(number_of(desk, "note.txt"))["text"]
    assert "secret" not in text and "not in the folder" in text
    desk.close()


def test_a_picture_of_two_gigabytes_is_left_out(folder):
    with (folder / "huge.png").open("wb") as file:
        os.truncate(file.fileno(), 2**31)
    source = read_items(folder, None, None, None)
    assert "huge.png" in " ".join(source.notes) and len(source.items) == 8


def test_names_and_files_run_nothing(folder):
    (folder / "<img src=x onerror=alert(1)>.svg").write_text(f"<svg>{SCRIPT}</svg>")
    (folder / "note.md").write_text(f"**bold** {SCRIPT} [x](javascript:alert(1))")
    desk = open_desk(folder)
    client = client_of(desk)
    svg = client.get(f"/items/{number_of(desk, '<img src=x onerror=alert(1)>.svg')}")
    assert "sandbox" in svg.headers["content-security-policy"]
    assert "script-src 'self';" in client.get("/").headers["content-security-policy"]
    text = desk._stimulus(number_of(desk, "note.md"))["text"]
    assert "<strong>bold" in text and "<script" not in text and 'href="javascript' not in text
    assert client.get(f"/items/{number_of(desk, 'note.md')}").status_code == 404
    page = post(client, type="show", judge=SCRIPT).json()
    answer(client, page, judge=SCRIPT, comment=SCRIPT)
    board = board_page(desk)
    assert "<img" not in board and "<script>" not in board and "&lt;script&gt;" in board
    desk.close()


def test_no_text_of_a_stranger_is_a_formula_of_the_export(folder):
    (folder / "=cmd.png").write_bytes(PNG)
    desk = open_desk(folder)
    desk.store.add_question("@ann", [number_of(desk, "=cmd.png"), number_of(desk, "p0.png")])
    client = client_of(desk)
    page = post(client, type="show", judge="@ann").json()
    answer(client, page, judge="@ann", comment="+1+cmd|' /C calc'!A0")
    (row,) = csv.DictReader(io.StringIO(client.get("/export/votes.csv").text))
    assert (row["a"], row["judge"]) == ("'=cmd.png", "'@ann")
    assert row["comment"].startswith("'+1")
    desk.close()


def test_pages_of_this_server_alone_frame_a_pdf(folder):
    (folder / "sheet.pdf").write_bytes(b"%PDF-1.4")
    desk = open_desk(folder)
    sheet = client_of(desk).get(f"/items/{number_of(desk, 'sheet.pdf')}")
    policy = sheet.headers["content-security-policy"]
    assert policy == "frame-ancestors 'self'"
    desk.close()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 400),
        ({"host": "127.0.0.1.evil.example"}, 400),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://testserver.evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"content-type": "text/plain"}, 415),
    ],
)
def test_other_sites_are_refused(desk, headers, status):
    content = json.dumps({"type": "show"})
    headers = {"content-type": "application/json", **headers}
    assert client_of(desk).post("/message", content=content, headers=headers).status_code == status


def test_other_sites_show_none_of_the_pictures(desk):
    policy = client_of(desk).get("/items/1").headers["cross-origin-resource-policy"]
    assert policy == "same-origin"


def test_without_the_token_there_is_nothing(desk):
    client = client_of(desk, "token", {"ann-key": "ann"})
    for path in ("/", "/board", "/export/votes.csv", "/items/1", "/wrong/"):
        assert client.get(path).status_code == 404
    assert client.get("/token/board").status_code == 200
    assert client.get("/ann-key/").status_code == 200
    assert client.get("/ann-key/board").status_code == 403
    assert post(client, "/ann-key/message", type="show", judge="bob").json()["judge"] == "ann"


def test_large_and_odd_messages_are_refused(desk):
    client = client_of(desk)
    assert post(client, type="show", judge="x" * 20_000).status_code == 413
    assert (
        client.post(
            "/message", content=b"[" * 9000, headers={"content-type": "application/json"}
        ).status_code
        == 400
    )
    page = post(client, type="show").json()
    for outcome in (2, True, None, "win", {"chosen": 0}, 1.0):
        assert answer(client, page, outcome).status_code == 400, outcome
    assert desk.store.count_votes() == 0


def test_a_flood_is_refused_to_whoever_floods_alone(desk):
    client = client_of(desk, "token", {"ann-key": "ann", "bob-key": "bob"})
    flood = [post(client, "/ann-key/message", type="show").status_code for _ in range(200)]
    assert 429 in flood
    assert post(client, "/bob-key/message", type="show").status_code == 200
    assert client.get("/ann-key/").status_code == 200
    guesses = [post(client, f"/{k:020x}/message", type="show").status_code for k in range(200)]
    assert set(guesses) == {404, 429}
    assert post(client, "/bob-key/message", type="show").status_code == 200


def test_a_set_is_answered_by_its_best_and_worst(folder):
    desk = open_desk(folder, VoteForm(4, "best_worst"))
    client = client_of(desk)
    page = post(client, type="show").json()
    assert len(page["question"]["items"]) == 4
    for _ in range(4):
        page = answer(client, page, {"chosen": 1, "worst": 0}).json()
    assert len(client.get("/export/votes.csv").text.splitlines()) == 1 + 4 * 5
    task = desk.make_task()
    assert len(make_plan(task, fit_votes(task)).pairs) == 100
    desk.close()


def test_the_board_finds_the_order_and_the_judge_who_clicks_at_random(folder):
    desk = open_desk(folder)
    rng = np.random.default_rng(0)
    store = desk.store
    for judge in ("ann", "bob", "cid"):
        for a in range(1, 9):
            for b in range(a + 1, 9):
                store.add_question(judge, [a, b])
                (question,) = store.open_questions(judge)
                store.record_answer(
                    question.number, int(a < b) if judge != "cid" else int(rng.integers(2)), "", 1.0
                )
    task = desk.make_task()
    view = make_board(task, fit_votes(task))
    assert view.board.names.tolist()[:3] == ["p0.png", "p1.png", "p2.png"]
    random = dict(zip(view.judges.names, view.judges.probability_random, strict=True))
    assert random["cid"] > 0.5 > random["ann"]
    desk.close()


def test_the_process_plans_and_makes_the_board(folder):
    desk = open_desk(folder)
    client = client_of(desk)
    page = post(client, type="show").json()
    for _ in range(6):
        page = answer(client, page).json()
    planner = Planner(desk.make_task)
    done = threading.Event()
    for _ in range(600):
        if planner.board is not None:
            break
        done.wait(0.1)
    planner.close()
    assert planner.plan.pairs and planner.board.n_votes == 6
    desk.planner = planner
    assert "P(best)" in board_page(desk) and "taken as independent" in board_page(desk)
    planner.board = planner.board._replace(votes_needed=(17, 283))
    assert "It takes some 17 to 280 more votes until the first place is settled" in board_page(desk)
    desk.store.close()


@pytest.mark.usefixtures("brief")
def test_settings_are_tuned_by_the_journal(tmp_path):
    path = tmp_path / "space.toml"
    path.write_text("[space]\nstrength = {low = 0.01, high = 10.0, log = true}\nn = [1, 9]\n")
    make = lambda: SettingsDesk(  # noqa: E731
        tmp_path / "run.db", read_space(path), None, title="space", goal=3
    )
    desk = make()
    client = client_of(desk)
    page = post(client, type="show", judge="ann").json()
    page = answer(client, page, 1, judge="ann").json()
    desk.close()
    desk = make()
    again = post(client_of(desk), type="show", judge="ann").json()
    assert again["question"]["items"] == page["question"]["items"]
    client = client_of(desk)
    for _ in range(2):
        again = answer(client, again, 0, judge="ann").json()
    facts = again["question"]["facts"].splitlines()
    assert again["question"]["kind"] == "end" and facts[0].startswith("strength: ")
    board = board_page(desk)  # which has the same numbers, of four digits
    assert all(f">{fact.partition(': ')[2]}<" in board for fact in facts)
    assert len(client.get("/export/answers.csv").text.splitlines()) > 3
    desk.close()


def test_rows_of_a_table_meet_within_their_prompt(tmp_path):
    path = tmp_path / "answers.csv"
    lines = ["prompt,model,response"]
    lines += [f"q{q},{m},{SCRIPT} {q} {m}" for q in range(3) for m in "abc"]
    path.write_text("\n".join(lines))
    source = read_items(path, "response", "model", "prompt")
    assert source.competitors == ["a", "b", "c"]
    desk = VoteDesk(VoteStore(tmp_path / "v.db"), source, VoteForm(), plans=False)
    client = client_of(desk)
    page = post(client, type="show").json()
    for _ in range(9):
        first, second = page["question"]["items"]
        assert first["mime"] == "text/plain"
        assert first["text"].split()[-2] == second["text"].split()[-2]
        page = answer(client, page).json()
    assert page["question"]["kind"] == "end"
    desk.close()


def test_an_answer_and_the_next_question_reach_the_disk_together(desk):
    client = client_of(desk)
    page = post(client, type="show").json()
    statements = []
    desk.store._connection.set_trace_callback(statements.append)
    answer(client, page)
    groups = " ".join(statements).split("COMMIT")
    (writing,) = [each for each in groups if "INSERT INTO" in each]
    assert "INTO answers" in writing and "INTO questions" in writing


def test_who_looks_again_writes_nothing_until_the_lease_is_worth_it(desk):
    client = client_of(desk)
    before = post(client, type="show").json()
    n_changes = desk.store._connection.total_changes
    assert post(client, type="show").json() == before
    assert desk.store._connection.total_changes == n_changes
    desk.store._fetch_rows("UPDATE questions SET since = since - 600")
    post(client, type="show")
    (since, _) = (row[0] for row in desk.store._fetch_rows("SELECT since FROM questions"))
    assert time.time() - since < 60


def test_a_lease_that_is_over_frees_a_pair_for_others_alone(desk):
    desk.store.add_question("ann", [1, 2])
    assert not desk.store.is_free([2, 1], "bob")
    desk.store._fetch_rows("UPDATE questions SET since = 0")
    assert desk.store.is_free([2, 1], "bob")
    assert not desk.store.is_free([1, 2], "ann")


@pytest.mark.parametrize("form", [VoteForm(), VoteForm(grades=True)])
@pytest.mark.parametrize("outcomes", [[1], [1, 1, "tie"], [0, "tie", "tie"], [1, 0, "tie"]])
def test_a_board_is_made_of_the_first_votes_whoever_won(folder, form, outcomes):
    desk = open_desk(folder, form)
    client = client_of(desk)
    page = post(client, type="show").json()
    for outcome in outcomes:
        page = answer(client, page, outcome).json()
    task = desk.make_task()
    board = make_board(task, fit_votes(task)).board
    winner = task.shown[0][0 if outcomes[0] == 1 else 1]
    loser = task.shown[0][1 if outcomes[0] == 1 else 0]
    utility = dict(zip(board.names.tolist(), board.utility.tolist(), strict=True))
    assert utility[task.competitors[winner]] > utility[task.competitors[loser]]
    desk.close()


def test_votes_that_are_all_ties_are_said_to_be(desk):
    client = client_of(desk)
    page = post(client, type="show").json()
    for _ in range(2):
        page = answer(client, page, "tie").json()
    with pytest.raises(ValueError, match="All 2 votes are ties"):
        fit_votes(desk.make_task())


BUSY_PLANNER = """
import time
from multiprocessing import get_context
from skpref._judging import _planning
_planning.fit_votes = lambda task: time.sleep(600)
ours, theirs = get_context("fork").Pipe()
process = get_context("fork").Process(target=_planning._serve_plans, args=(theirs,))
process.start()
ours.send("a task")
print(process.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at /proc")
def test_the_planner_ends_with_a_server_that_is_killed():
    with subprocess.Popen([sys.executable, "-c", BUSY_PLANNER], stdout=subprocess.PIPE) as server:
        planner = int(server.stdout.readline())
        assert is_alive(planner)
        server.kill()
    end = time.monotonic() + 60
    while is_alive(planner):
        assert time.monotonic() < end
        time.sleep(0.05)


def is_alive(child):
    """Whether a process runs, and is not merely not yet waited for."""
    try:
        return Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_space_with_constraints_is_refused(tmp_path):
    path = tmp_path / "space.toml"
    path.write_text('constraints = ["radius < 3"]\n[space]\nradius = [1, 9]')
    with pytest.raises(ValueError, match="with constraints; the table"):
        read_space(path)

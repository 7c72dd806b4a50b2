"""The options of `skpref judge`: each does what it says, and what is wrong is refused at once."""

import csv
import io
import json

import numpy as np
import pytest
from judging_support import write_pictures
from starlette.testclient import TestClient

from skpref._command._arguments import _make_parser, main
from skpref._judging._planning import fit_votes, make_board, make_plan
from skpref._judging._serve import _reachable_hosts, make_access, make_desk, read_judges
from skpref._judging._server import make_app


@pytest.fixture
def photos(tmp_path):
    return write_pictures(tmp_path / "photos", 6)


@pytest.fixture
def open_desk(photos, monkeypatch):
    """A function that makes a desk as the command does, without the process that plans."""
    monkeypatch.setattr("skpref._judging._desk.Planner", lambda make_task: None)
    desks = []

    def make(*options):
        arguments = _make_parser().parse_args(["judge", str(photos), *map(str, options)])
        desks.append(make_desk(arguments))
        return desks[-1]

    yield make
    for desk in desks:
        desk.close()


def client_of(desk, names=(), host=None, hosts=()):
    access = make_access(desk, list(names), host, [*hosts, "testserver"])
    return TestClient(make_app(desk, access)), access


def vote(client, n, outcome=1, judge="ann", path=""):
    page = client.post(f"{path}/message", json={"type": "show", "judge": judge}).json()
    for _ in range(n):
        message = {"type": "answer", "outcome": outcome, "judge": judge}
        message["number"] = page["question"]["number"]
        page = client.post(f"{path}/message", json=message).json()
    return page


def record(desk, winner, loser, judge, n=1, outcome=1):
    """Store answers that say who won."""
    for _ in range(n):
        desk.store.add_judge(judge)
        desk.store.add_question(judge, [winner, loser])
        question = desk.store.open_questions(judge)[-1]
        desk.store.record_answer(question.number, outcome, "", 1.0)


def test_votes_end_it_for_all_and_whoever_wants_goes_on(open_desk):
    client, _ = client_of(open_desk("--votes", 3))
    assert vote(client, 2)["question"]["kind"] == "duel"
    page = vote(client, 1, judge="bob")
    assert page["question"]["kind"] == "end" and "All 3 votes are in" in page["status"]["end"]
    assert vote(client, 0)["question"]["kind"] == "end"
    page = client.post("/message", json={"type": "go_on", "judge": "ann"}).json()
    assert page["question"]["kind"] == "duel" and page["status"]["goal_of_all"] is None
    assert vote(client, 0, judge="bob")["question"]["kind"] == "end"


def test_until_names_the_best_once_it_is_known(open_desk):
    desk = open_desk("--until", 0.95)
    for other in range(2, 7):
        for judge in range(2):
            record(desk, 1, other, f"j{judge}")
    task = desk.make_task()
    assert task.level == pytest.approx(0.05)
    assert make_plan(task, fit_votes(task)).best is None  # two wins over each are not enough
    for other in range(2, 7):
        for judge in range(2, 40):
            record(desk, 1, other, f"j{judge}")
    task = desk.make_task()
    plan = make_plan(task, fit_votes(task))
    assert plan.best == "p00.png"

    class Planner:
        board = None

        def take_pair(self, is_allowed):
            return None

        def close(self):
            pass

    desk.planner = Planner()
    desk.planner.plan = plan
    page = desk.page_of_judge("ann")
    assert page["question"]["kind"] == "end"
    assert "at least 0.95: p00.png" in page["status"]["end"]


def test_until_asks_about_those_who_may_be_the_best(open_desk):
    desk = open_desk("--until", 0.95)
    for judge in range(12):
        for other in (3, 4, 5, 6):
            record(desk, 1, other, f"j{judge}")
            record(desk, 2, other, f"j{judge}")
        record(desk, 1, 2, f"j{judge}", outcome=judge % 2)
    desk.store.add_judge("new")  # who may have every pair
    task = desk.make_task()
    share = {}
    for level in (0.05, None):
        pairs = make_plan(task._replace(level=level), fit_votes(task)).pairs
        share[level] = np.mean([set(pair) == {0, 1} for pair in pairs])
    assert share[0.05] > 0.9 > share[None]


def test_top_asks_who_the_first_are(open_desk):
    """Three even pairs, each better than the next: the second one is at the border of three."""
    desk = open_desk("--top", 3)
    for judge in range(12):
        for better, worse in ((1, 3), (2, 3), (1, 4), (2, 4), (3, 5), (4, 5), (3, 6), (4, 6)):
            record(desk, better, worse, f"j{judge}")
        for even in ((1, 2), (3, 4), (5, 6)):
            record(desk, *even, f"j{judge}", outcome=judge % 2)
    desk.store.add_judge("new")  # who may have every pair
    task = desk.make_task()
    model, pairs = fit_votes(task), {}
    for top in (3, None):
        plan = make_plan(task._replace(top=top), model)
        pairs[top] = {tuple(sorted(pair)) for pair in plan.pairs}
    assert pairs == {3: {(2, 3)}, None: {(0, 1), (2, 3), (4, 5)}}


@pytest.mark.parametrize(
    ("n", "options", "notes"),
    [(12, [], 1), (6, [], 0), (12, ["--top", "3"], 0), (12, ["--votes", "90"], 0)],
)
def test_many_items_without_a_goal_are_told_of_top(tmp_path, capsys, n, options, notes):
    folder = write_pictures(tmp_path / "many", n)
    make_desk(_make_parser().parse_args(["judge", str(folder), *options])).close()
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if "--top 5 asks who the first five are" in line]) == notes


@pytest.mark.parametrize("share", ["50%", "0.5"])
def test_checks_are_a_share_of_the_questions(open_desk, share):
    client, _ = client_of(open_desk("--checks", share))
    vote(client, 24)
    answers = json.loads(client.get("/export/votes.json").text)
    is_repeat = [each["repeats"] is not None for each in answers]
    assert not any(is_repeat[:8]) and 4 <= sum(is_repeat) <= 12


def test_grades_tell_clear_wins_from_slight_ones(open_desk):
    desk = open_desk("--grades")
    client, _ = client_of(desk)
    page = vote(client, 0)
    assert [each["outcome"] for each in page["question"]["choices"]] == [2, 1, "tie", 0, -2]
    for outcome in (2, 1, "tie", 0, -2):
        vote(client, 1, outcome)
    rows = list(csv.DictReader(io.StringIO(client.get("/export/votes.csv").text)))
    assert [(row["winner"], row["grade"]) for row in rows] == [
        ("a", "2"),
        ("a", "1"),
        ("tie", "0"),
        ("b", "1"),
        ("b", "2"),
    ]
    model = fit_votes(desk.make_task())
    assert {-2, -1, 0, 1, 2} == set(model.classes_.tolist())


def test_clear_wins_move_a_board_further_than_slight_ones(open_desk):
    desk = open_desk("--grades")
    for k in range(8):
        record(desk, 1, 2, f"j{k}", outcome=2)
        record(desk, 3, 4, f"j{k}", outcome=1)
        record(desk, 2, 3, f"j{k}", outcome="tie")
    board = make_board(desk.make_task(), fit_votes(desk.make_task())).board
    utility = dict(zip(board.names, board.utility, strict=True))
    clear, slight = (utility[f"p0{k}.png"] - utility[f"p0{k + 1}.png"] for k in (0, 2))
    assert clear > slight > 0.0


def test_features_rank_what_was_never_shown(open_desk, tmp_path):
    np.save(tmp_path / "features.npy", np.arange(6.0)[:, np.newaxis])
    desk = open_desk("--features", tmp_path / "features.npy")
    for judge in range(2):
        for low, high in ((1, 3), (3, 5), (1, 5)):  # items 2, 4 and 6 are never shown
            record(desk, high, low, f"j{judge}")
    board = make_board(desk.make_task(), fit_votes(desk.make_task())).board
    utility = dict(zip(board.names, board.utility, strict=True))
    assert utility["p00.png"] < utility["p01.png"] < utility["p02.png"] < utility["p03.png"]
    assert board.n_components == 1


@pytest.mark.parametrize(
    ("features", "words"),
    [
        (np.zeros((5, 2)), "one row an item"),
        (np.zeros(6), "one row an item"),
        (np.full((6, 1), np.nan), "not finite"),
        (np.array([["a"]] * 6), "array of numbers"),
        (np.array([None] * 6, dtype=object), "allow_pickle=False"),
    ],
)
def test_features_that_are_none_are_refused(open_desk, tmp_path, features, words):
    np.save(tmp_path / "features.npy", features)
    with pytest.raises(ValueError, match=words):
        open_desk("--features", tmp_path / "features.npy")


def test_a_host_takes_a_token_and_answers_under_its_names_alone(open_desk):
    desk = open_desk()
    client, access = client_of(desk, host="0.0.0.0", hosts=["desk.example"])
    assert len(access.token) > 20
    for host in ("desk.example", "127.0.0.1", "localhost"):
        headers = {"host": f"{host}:8765"}
        assert client.get(f"/{access.token}/", headers=headers).status_code == 200
        assert client.get("/", headers=headers).status_code == 404
    headers = {"host": "elsewhere.example"}
    assert client.get(f"/{access.token}/", headers=headers).status_code == 400
    again = make_access(desk, [], "0.0.0.0", [])
    assert again.token == access.token  # links hold after a restart
    assert make_access(desk, [], None, []).token == ""


def test_addresses_under_which_a_host_is_reached():
    assert _reachable_hosts(None) == []
    assert _reachable_hosts("192.0.2.7") == ["192.0.2.7"]
    assert _reachable_hosts("fd00::1") == ["[fd00::1]"]
    everywhere = _reachable_hosts("0.0.0.0")
    assert everywhere and not {"0.0.0.0", "127.0.0.1", "localhost"} & set(everywhere)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("ann\nbob\n", ["ann", "bob"]),
        ("\ufeffname,email\nann,a@x\n\nbob,b@x\n", ["ann", "bob"]),
        ("judge\n Ann B. \n", ["Ann B."]),
    ],
)
def test_judges_are_read_from_a_file(tmp_path, text, names):
    (tmp_path / "invited.csv").write_text(text, "utf-8")
    assert read_judges(tmp_path / "invited.csv") == names


@pytest.mark.parametrize("text", ["", "judge\n", "ann\nann\n"])
def test_judges_that_are_none_or_twice_are_refused(tmp_path, text):
    (tmp_path / "invited.csv").write_text(text)
    with pytest.raises(ValueError, match="each judge once"):
        read_judges(tmp_path / "invited.csv")


def test_links_of_judges_are_theirs_alone_and_stay(open_desk):
    desk = open_desk()
    client, access = client_of(desk, ["ann", "bob"])
    keys = {name: key for key, name in access.judges.items()}
    assert len({*keys.values(), access.token}) == 3
    vote(client, 2, judge="bob", path=f"/{keys['ann']}")  # the link says who it is
    votes = json.loads(client.get(f"/{access.token}/export/votes.json").text)
    assert [each["judge"] for each in votes] == ["ann", "ann"]
    _, again = client_of(desk, ["ann", "bob", "cid"])
    assert {again.judges[key] for key in keys.values()} == {"ann", "bob"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--size", 4, "--grades"], "grades are of pairs alone"),
        (["--answer", "best_worst"], "add --size 4"),
        (["--until", 1.5], "--until"),
        (["--checks", "60%"], "--checks"),
        (["--size", 1], "--size"),
        (["--top", 0], "--top"),
        (["--top", 6], "fewer than all"),
        (["--text", "response"], "columns of a table"),
    ],
)
def test_options_that_do_not_go_together_are_refused(open_desk, photos, options, words):
    with pytest.raises(ValueError, match=words):
        open_desk(*options)
    assert not photos.with_name("photos.votes.db").exists()


def test_a_second_command_on_one_file_ends_with_one_line(open_desk, photos, capsys):
    open_desk()
    assert main(["judge", str(photos), "--no-browser"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "another skpref judge has open" in line and "--file" in line


def test_the_form_of_the_votes_stays_that_of_the_file(open_desk):
    open_desk("--grades").close()
    with pytest.raises(ValueError, match="one file holds one form"):
        open_desk()

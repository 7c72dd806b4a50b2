"""Datasets in the package: facts stated by their sources, licences, the original files."""

import csv
import re
import time
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from datasets_support import REAL, go_offline, needs_real
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneGroupOut, cross_val_score

from skpref.datasets import (
    load_candy,
    load_convincing_arguments,
    load_football,
    load_llm_duels,
)

SHIPPED = Path(str(resources.files("skpref.datasets"))) / "data"


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    go_offline(monkeypatch)


def test_every_shipped_file_has_a_notice_with_its_licence():
    files = {path.name for path in SHIPPED.iterdir() if path.is_file()}
    notices = {name for name in files if name.endswith("-NOTICE.txt")}
    own = {name for name in files if name.startswith("about-")} | {"tennis-checksums.txt"}
    sets = {re.split(r"[-.]", name)[0] for name in files - notices - own}
    assert sets == {"candy", "football", "ukpconvarg1", "llmfao"}  # nothing whose terms forbid it
    assert notices == {f"{name.upper()}-NOTICE.txt" for name in sets}
    for notice in notices:
        text = (SHIPPED / notice).read_text(encoding="utf-8")
        free = "publicdomain/zero/1.0/" if notice.startswith("FOOTBALL") else "licenses/by/4.0/"
        assert f"https://creativecommons.org/{free} " in text
        for part in ("Origin:", "Attribution:", "Licence:", "Citation:", "Changes:"):
            assert part in text, (notice, part)
        stem = notice.removesuffix("-NOTICE.txt").lower()
        for name in files - notices - own:
            if name.startswith(stem):
                assert name in text


def test_shipped_files_are_small():
    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) < 400_000


@pytest.mark.parametrize(
    "load", [load_candy, load_convincing_arguments, load_football, load_llm_duels]
)
def test_loading_is_quick_and_repeatable(load):
    spent, loaded = [], []
    for _ in range(3):
        start = time.perf_counter()
        loaded.append(load())
        spent.append(time.perf_counter() - start)
    assert min(spent) < 0.3
    for key, value in loaded[0].items():
        np.testing.assert_array_equal(value, loaded[1][key])
    assert Path(loaded[0].filename).is_file()
    assert re.search(r"Licence: .*\((CC BY 4\.0|CC0 1\.0)\)", loaded[0].DESCR)


def test_bundles_can_be_changed_without_changing_the_next():
    load_llm_duels().X[:] = -1
    load_convincing_arguments().y[:] = -1
    assert load_llm_duels().X.min() == 0
    assert load_convincing_arguments().y.min() == 0


def test_candy_facts():
    candy = load_candy()
    assert candy.X.shape == (85 * 84 // 2, 2, 11)
    assert np.isfinite(candy.X).all()
    assert candy.item_names[candy.winpercent.argmax()] == "Reese's Peanut Butter cup"
    assert candy.winpercent.min().round(1) == 22.4
    assert candy.winpercent.max().round(1) == 84.2
    assert set(np.unique(candy.item_table[:, :9])) == {0, 1}
    # FiveThirtyEight counts 37 sweets with chocolate and 38 with fruit.
    columns = dict(zip(candy.feature_names, candy.item_table.T, strict=True))
    assert (columns["chocolate"].sum(), columns["fruity"].sum()) == (37, 38)
    assert len({frozenset(pair) for pair in candy.pairs.tolist()}) == 3570
    np.testing.assert_array_equal(candy.X[17, 1], candy.item_table[candy.pairs[17, 1]])


def test_candy_duels_rank_as_winpercent():
    candy = load_candy()
    winners = np.where(candy.y == 1, candy.pairs[:, 0], candy.pairs[:, 1])
    wins = np.bincount(winners, minlength=85)
    np.testing.assert_array_equal(wins, rankdata(candy.winpercent) - 1)
    assert candy.y.mean() == 0.5


def test_candy_says_what_its_story_says():
    # The story: chocolate, then peanuts, make a winner.
    candy = load_candy(n_duels=1500)
    model = LogisticRegression(C=0.1, fit_intercept=False)
    differences = candy.X[:, 0] - candy.X[:, 1]
    assert cross_val_score(model, differences, candy.y).mean() > 0.7
    weight = dict(zip(candy.feature_names, model.fit(differences, candy.y).coef_[0], strict=True))
    assert max(weight, key=weight.get) == "chocolate"


def test_candy_draws_pairs_without_replacement():
    few = load_candy(n_duels=400, random_state=3)
    assert len({frozenset(pair) for pair in few.pairs.tolist()}) == 400
    first_won = few.winpercent[few.pairs[:, 0]] > few.winpercent[few.pairs[:, 1]]
    np.testing.assert_array_equal(first_won, few.y)
    np.testing.assert_array_equal(few.X, load_candy(n_duels=400, random_state=3).X)
    assert (few.pairs != load_candy(n_duels=400, random_state=4).pairs).any()
    every = load_candy(n_duels=3570)
    assert len({frozenset(pair) for pair in every.pairs.tolist()}) == 3570


def test_candy_as_frame():
    pytest.importorskip("pandas")
    frame, plain = load_candy(as_frame=True), load_candy()
    assert frame.item_table.loc["Twix", "caramel"] == 1
    assert frame.winpercent.idxmax() == "Reese's Peanut Butter cup"
    assert list(frame.item_table.columns) == plain.feature_names
    np.testing.assert_array_equal(frame.X, plain.X)


@pytest.mark.parametrize("n_duels", [0, 3571, 2.5, True, "all"])
def test_candy_refuses_bad_n_duels(n_duels):
    with pytest.raises(
        (TypeError, ValueError), match=r"n_duels must (lie in \[1, 3570\]|be an int)"
    ):
        load_candy(n_duels=n_duels)


@needs_real("candy")
def test_candy_is_the_original():
    original = (REAL / "candy" / "candy-data.csv").read_bytes()
    assert (SHIPPED / "candy.csv").read_bytes() == original


def test_argument_facts():
    data = load_convincing_arguments()
    assert data.X.shape == data.pairs.shape == (11650, 2)
    assert data.texts.shape == (1052,)
    assert len(data.topic_names) == len(set(data.text_topic)) == 32
    assert len({name.split("_")[0] for name in data.topic_names}) == 16
    assert np.bincount(data.y).tolist() == [5778, 5872]
    assert len(set(data.ids)) == 1052
    assert len(set(data.texts)) == 1038
    assert all(isinstance(text, str) and text.strip() for text in data.texts)
    assert not any("<br" in text for text in data.texts)
    assert sum("\n" in text for text in data.texts) == 229
    assert (data.X[:, 0] != data.X[:, 1]).all()


def test_lower_rank_convinces():
    data = load_convincing_arguments()
    first, second = data.rank[data.pairs].T
    right = np.where(data.y == 1, first < second, second < first)
    assert right.sum() == 10806


def test_arguments_never_cross_topics():
    data = load_convincing_arguments()
    np.testing.assert_array_equal(data.text_topic[data.pairs], np.c_[data.topic, data.topic])
    for train, test in LeaveOneGroupOut().split(data.X, data.y, groups=data.topic):
        assert not set(data.pairs[train].ravel()) & set(data.pairs[test].ravel())
        assert not set(data.texts[data.pairs[train]].ravel()) & set(data.X[test].ravel())
        assert set(data.y[test]) == {0, 1}


def test_arguments_by_topic_are_the_same_duels():
    data = load_convincing_arguments()
    names = [data.topic_names[20], data.topic_names[4]]
    some = load_convincing_arguments(topics=names)
    kept = np.isin(data.topic, [4, 20])
    np.testing.assert_array_equal(some.X, data.X[kept])
    np.testing.assert_array_equal(some.y, data.y[kept])
    assert some.topic_names == names[::-1]
    np.testing.assert_array_equal(some.topic, np.where(data.topic[kept] == 4, 0, 1))
    assert set(some.pairs.ravel()) == set(range(len(some.texts)))
    np.testing.assert_array_equal(some.rank, data.rank[np.isin(data.text_topic, [4, 20])])
    np.testing.assert_array_equal(some.X, load_convincing_arguments(topics=[20, 4]).X)


@pytest.mark.parametrize(
    ("topics", "message"),
    [
        (["spam"], "one of .*'tv-is-better-than-books_tv'.*got 'spam'"),
        ([32], r"lie in \[0, 31\], got 32"),
        ([-1], r"lie in \[0, 31\], got -1"),
        ([True], "an integer, got True"),
        ("tv-is-better-than-books_tv", "give a list"),
        ([], "give a list"),
    ],
)
def test_arguments_refuse_unknown_topics(topics, message):
    with pytest.raises((TypeError, ValueError), match=message):
        load_convincing_arguments(topics=topics)


@needs_real("ukpconvarg1")
def test_arguments_are_the_original():
    data = load_convincing_arguments()
    duels = []
    for path in sorted((REAL / "ukpconvarg1" / "UKPConvArg1Strict-CSV").glob("*.csv")):
        with open(path, encoding="utf-8", newline="") as stream:
            rows = csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
            duels += [row for row in rows if not row[0].startswith("#")]
    assert len(duels) == 11650
    ids = ["_".join(pair) for pair in data.ids[data.pairs]]
    assert ids == [row[0] for row in duels]
    assert data.y.tolist() == [int(row[1] == "a1") for row in duels]
    for row, pair in zip(duels, data.X, strict=True):
        for text, loaded in zip(row[2:], pair, strict=True):
            assert text.replace("<br/>", " ").split() == loaded.split()


@pytest.mark.parametrize(
    ("judge", "left", "right", "tie", "n_judges"),
    [("crowd", 2911, 2549, 3471, 124), ("gpt-3", 1352, 593, 194, 1), ("gpt-4", 943, 1130, 66, 1)],
)
def test_llm_facts(judge, left, right, tie, n_judges):
    data = load_llm_duels(judge=judge)
    assert np.bincount(data.y).tolist() == [right, left]
    assert data.X.shape == (left + right, 2)
    assert len(data.ties) == len(data.tie_judge) == len(data.tie_prompt) == tie
    assert set(data.judge) | set(data.tie_judge) == set(range(n_judges))
    assert len(data.judge) == len(data.prompt) == len(data.y)
    shown = np.concatenate([data.X, data.ties])
    assert set(shown.ravel()) == set(range(59))
    assert (shown[:, 0] != shown[:, 1]).all()
    assert set(data.prompt) | set(data.tie_prompt) == set(range(13))
    assert len(data.model_names) == len(set(data.model_names)) == len(data.organisations) == 59
    assert len(data.prompts) == len(data.prompt_names) == 13


def test_llm_prompts_and_makers_stand_in_their_place():
    data = load_llm_duels()
    text = dict(zip(data.prompt_names, data.prompts, strict=True))
    assert sorted(text) == [
        "bagel",
        "basic-sentiment",
        "blue",
        "cot-apple",
        "holidays",
        "k8s",
        "munchhausen",
        "planets-json",
        "product-description",
        "qft",
        "sally",
        "taiwan",
        "vendor-extract",
    ]
    assert text["taiwan"] == "Is Taiwan an independent country?"
    assert "kubernetes" in text["k8s"]
    makers = dict(zip(data.model_names, data.organisations, strict=True))
    assert makers["Claude v2"] == "Anthropic"


def test_llm_judges_agree_better_than_chance():
    # A wrong join of models, pairs or prompts would leave no agreement.
    human, machine = load_llm_duels(), load_llm_duels(judge="gpt-4")
    verdict = {
        (prompt, *pair): won
        for prompt, pair, won in zip(machine.prompt, machine.X.tolist(), machine.y, strict=True)
    }
    keys = [(prompt, *pair) for prompt, pair in zip(human.prompt, human.X.tolist(), strict=True)]
    same = [verdict[key] == won for key, won in zip(keys, human.y, strict=True) if key in verdict]
    assert len(same) > 5000
    assert np.mean(same) > 0.6


@pytest.mark.parametrize(
    ("judge", "left", "right", "tie"),
    [("crowd", 2911, 2549, 3471), ("gpt-3", 1352, 593, 194), ("gpt-4", 943, 1130, 66)],
)
def test_llm_verdicts_with_ties(judge, left, right, tie):
    every, apart = load_llm_duels(judge=judge, ties=True), load_llm_duels(judge=judge)
    assert np.unique(every.y, return_counts=True)[1].tolist() == [right, tie, left]
    assert set(every.y.tolist()) == {-1, 0, 1}
    assert not {"ties", "tie_judge", "tie_prompt"} & set(every)
    decided = every.y != 0
    for kept, pairs, judges, prompts in (
        (decided, apart.X, apart.judge, apart.prompt),
        (~decided, apart.ties, apart.tie_judge, apart.tie_prompt),
    ):
        np.testing.assert_array_equal(every.X[kept], pairs)
        np.testing.assert_array_equal(every.judge[kept], judges)
        np.testing.assert_array_equal(every.prompt[kept], prompts)
    np.testing.assert_array_equal(every.y[decided] == 1, apart.y == 1)


@needs_real("llmfao")
def test_llm_verdicts_with_ties_are_the_original():
    data = load_llm_duels(ties=True)
    with open(REAL / "llmfao" / "crowd-comparisons.csv", encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    names = np.array(data.model_names)
    assert names[data.X].tolist() == [[row["left"], row["right"]] for row in rows]
    sign = {"left": 1, "tie": 0, "right": -1}
    assert data.y.tolist() == [sign[row["winner"]] for row in rows]
    _, workers = np.unique([row["worker"] for row in rows], return_inverse=True)
    assert len(set(zip(data.judge.tolist(), workers.tolist(), strict=True))) == 124


@pytest.mark.parametrize("ties", [1, None, "yes"])
def test_llm_refuses_ties_that_are_no_truth_value(ties):
    with pytest.raises(TypeError, match="ties must be True or False, got"):
        load_llm_duels(ties=ties)


def test_llm_refuses_unknown_judge():
    for judge in ("gpt-5", ["crowd"]):
        with pytest.raises(ValueError, match="judge must be one of 'crowd', 'gpt-3', 'gpt-4'"):
            load_llm_duels(judge=judge)


@needs_real("llmfao")
def test_llm_duels_are_the_original():
    data = load_llm_duels()
    with open(REAL / "llmfao" / "crowd-comparisons.csv", encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 8931
    decided = [row for row in rows if row["winner"] != "tie"]
    names = np.array(data.model_names)
    assert names[data.X].tolist() == [[row["left"], row["right"]] for row in decided]
    assert data.y.tolist() == [int(row["winner"] == "left") for row in decided]
    # Renumbered, the workers and the prompts still part the duels in the same way.
    for ours, column in ((data.judge, "worker"), (data.prompt, "prompt")):
        theirs = [row[column] for row in decided]
        n = len(set(theirs))
        assert len(set(ours)) == len(set(zip(ours, theirs, strict=True))) == n

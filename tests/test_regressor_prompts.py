"""Answers of prompts: probabilities are those of importance sampling, with every engine."""

import pickle
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from matrix_oracle import AnswerArguments, Noise, exact
from numpy.testing import assert_allclose
from scipy.special import entr
from scipy.stats import norm
from sklearn import config_context
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import KFold, cross_val_score

from skpref import JudgePrior, PairwisePreferenceRegressor
from skpref.active import bald
from skpref.fitting import fix_hyperparameters as make_held
from skpref.gp import GroupedPosterior
from skpref.inference import Gibbs
from skpref.inspection import leaderboard, variance_shares
from skpref.kernels import Identity, Linear, OnColumns
from skpref.metrics import accuracy_scorer

NAMES = np.array(["a", "b", "c", "d"])
N_PROMPTS, NOISE, EFFECT = 3, 0.5, 0.25
ENGINES = {"ep": 0.02, "laplace": 0.06, "hmc": 0.02, "gibbs": 0.02}
KINDS = "duels", "ties", "choices"


def problem(kind, seed, n=9):
    """Items shown, outcomes and prompts; the last prompt has one answer."""
    rng = np.random.default_rng(seed)
    size = 3 if kind == "choices" else 2
    shown = np.array([rng.permutation(4)[:size] for _ in range(n)])
    prompt = np.append(rng.integers(0, N_PROMPTS - 1, n - 1), N_PROMPTS - 1)
    if kind == "choices":
        return shown, rng.integers(0, size, n), prompt
    low = -1 if kind == "ties" else 0
    return shown, rng.integers(low, 2, n), prompt


def truth(kind, shown, y, prompt, asked, asked_prompt, weight=None):
    """Probabilities by importance sampling, of utilities of items in each prompt.

    Rows are items, then items in each prompt, the last of these new; pairs judged twice within a
    prompt have effects of their own if a prompt has several.
    """
    weight = np.ones(len(y)) if weight is None else weight
    pairs = [(p, *sorted(row)) for p, row in zip(prompt.tolist(), shown.tolist(), strict=True)]
    counts = {
        pair: sum(w for q, w in zip(pairs, weight, strict=True) if q == pair) for pair in pairs
    }
    paired = kind != "choices" and max(counts.values()) > 1
    rows, index = [], {}

    def place(item, p, pair):
        key = item, p, pair if paired else None
        if key not in index:
            index[key] = len(rows)
            rows.append(key)
        return index[key]

    def placed(row, p, pair):
        return tuple(place(item, p, pair) for item in row)

    answers = []
    for row, outcome, p, pair, w in zip(shown.tolist(), y, prompt, pairs, weight, strict=True):
        if kind == "choices":
            rank = tuple(1 if k == outcome else 2 for k in range(len(row)))
        else:
            rank = (1, 1) if kind == "ties" and outcome == 0 else (1, 2) if outcome == 1 else (2, 1)
        answers.append(AnswerArguments(placed(row, int(p), pair), rank, 0, weight=w))
    of_asked = []
    for row, p in zip(asked.tolist(), asked_prompt.tolist(), strict=True):
        pair = (p, *sorted(row))
        of_asked.append(AnswerArguments(placed(row, p, pair), tuple(range(1, len(row) + 1)), 0))
    K = np.zeros((len(rows), len(rows)))
    for i, (item, p, pair) in enumerate(rows):
        for j, (other, q, other_pair) in enumerate(rows):
            alike = float(item == other)
            K[i, j] = alike * (1.0 + EFFECT * (p == q))
            K[i, j] += alike * EFFECT * (paired and pair == other_pair)
    threshold = 0.3 if kind == "ties" else None
    found = exact(K, Noise(NOISE, threshold), answers, of_asked)
    assert found.error < 0.01
    return np.array(found.proba)


def model(kind, engine="ep", **parameters):
    ties = {"tie_threshold": 0.3} if kind == "ties" else {}
    return PairwisePreferenceRegressor(
        inference=engine, noise_variance=NOISE, optimizer=None, random_state=0, **ties, **parameters
    )


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("engine", ENGINES)
def test_probabilities_of_known_and_of_new_prompts(engine, kind, seed):
    if (engine, kind) == ("laplace", "choices"):
        pytest.skip("Laplace takes no choices")
    shown, y, prompt = problem(kind, seed)
    fitted = model(kind, engine).fit(NAMES[shown], y, prompts=prompt)
    asked = np.concatenate([shown[:4], shown[:4]])
    of_asked = np.concatenate([prompt[:4], np.full(4, N_PROMPTS)])
    expected = truth(kind, shown, y, prompt, asked, of_asked)
    found = fitted.predict_proba(NAMES[asked], prompts=of_asked)
    assert_allclose(found, expected, atol=ENGINES[engine])
    without = fitted.predict_proba(NAMES[asked[4:]])  # as of a new prompt
    assert_allclose(without, found[4:], atol=1e-12)


@pytest.mark.parametrize("engine", ["ep", "gibbs"])
@pytest.mark.parametrize("kind", ["best", "worst", "rankings"])
def test_choices_and_rankings_of_people_whose_tastes_go_by_features(kind, engine):
    rng = np.random.default_rng(len(kind))
    items, person = rng.normal(size=(4, 1)), np.arange(6) % 2
    shown = np.array([rng.permutation(4)[:3] for _ in person])
    place = np.array([rng.permutation(3) for _ in person])
    y = {"best": np.where(place == 0, 1, 2), "worst": np.where(place == 2, 2, 1)}.get(
        kind, place + 1
    )
    taste = OnColumns(RBF(1.5), [0])
    fitted = model("choices", engine, kernel=taste + 0.5 * taste * OnColumns(Identity(), [1]))
    fitted.fit(items[shown], y, prompts=person)
    # Utilities of the items for the two people and for somebody else.
    K = np.kron(np.ones((3, 3)) + 0.5 * np.eye(3), np.exp(-0.5 * (items - items.T) ** 2 / 1.5**2))
    said = [
        AnswerArguments(tuple((4 * p + row).tolist()), tuple(rank.tolist()))
        for p, row, rank in zip(person, shown, y, strict=True)
    ]
    asked = [AnswerArguments((4 * p, 4 * p + 1, 4 * p + 2), (1, 2, 2)) for p in range(3)]
    expected = exact(K, Noise(NOISE), said, asked)
    assert expected.error < 0.01
    found = fitted.predict_proba(items[[[0, 1, 2]] * 3], prompts=[0, 1, "new"])
    assert_allclose(found, np.array(expected.proba), atol=ENGINES[engine])


def test_sets_of_known_prompts_beyond_a_block():
    shown, y, prompt = problem("choices", 0, n=30)
    # So many draws that 30 sets do not fit one block.
    fitted = model("choices", Gibbs(draws=1000)).fit(NAMES[shown], y, prompts=prompt)
    found = fitted.predict_proba(NAMES[shown], prompts=prompt)
    for rows in (slice(10), slice(10, 20), slice(20, 30)):
        alone = fitted.predict_proba(NAMES[shown[rows]], prompts=prompt[rows])
        assert_allclose(found[rows], alone, atol=1e-12)


def test_memory_of_many_answers_asked_of_one_prompt():
    shown, y, prompt = problem("duels", 0)
    fitted = model("duels").fit(NAMES[shown], y, prompts=prompt)
    few = fitted.predict_proba(NAMES[shown], prompts=np.zeros(9))
    tracemalloc.start()
    many = fitted.predict_proba(np.tile(NAMES[shown], (200, 1)), prompts=np.zeros(1800))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert_allclose(many, np.tile(few, (200, 1)), atol=1e-12)
    assert peak < 2e7  # a matrix of all sides has 10**8 bytes


def test_weights_count_as_answers_of_one_prompt():
    shown, y, prompt = problem("duels", 5)
    weight = np.array([1, 3, 1, 2, 1, 1, 1, 2, 1])
    weighted = model("duels").fit(NAMES[shown], y, prompts=prompt, sample_weight=weight)
    repeated = model("duels").fit(
        NAMES[np.repeat(shown, weight, axis=0)],
        np.repeat(y, weight),
        prompts=np.repeat(prompt, weight),
    )
    arguments = NAMES[shown], {"prompts": prompt}
    both = (each.predict_proba(arguments[0], **arguments[1]) for each in (weighted, repeated))
    assert_allclose(*both, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_one_answer_a_prompt_is_noise(kind):
    shown, y, _ = problem(kind, 1)
    fitted = model(kind).fit(NAMES[shown], y, prompts=np.arange(len(y)))
    plain = model(kind).fit(NAMES[shown], y)
    assert not isinstance(fitted.posterior_, GroupedPosterior)
    assert_allclose(fitted.predict_proba(NAMES[shown]), plain.predict_proba(NAMES[shown]))
    assert_allclose(fitted.predict_proba(NAMES[shown], prompts=range(len(y))),
                    plain.predict_proba(NAMES[shown]))  # fmt: skip
    board = leaderboard(fitted, average=False)
    assert "counts as noise" in board.about_prompts[0] and "counts as noise" in repr(board)
    assert "independent" in leaderboard(plain, average=False).about_prompts[0]


def simulated(seed, ratio, n_prompts=60, n_votes=3):
    rng = np.random.default_rng(seed)
    utility, effects = rng.normal(size=6), np.sqrt(ratio) * rng.normal(size=(n_prompts, 6))
    pairs = np.array([rng.permutation(6)[:2] for _ in range(4 * n_prompts)]).repeat(n_votes, axis=0)
    prompt = np.repeat(np.arange(n_prompts), 4 * n_votes)
    seen = utility + effects[prompt]
    margin = seen[np.arange(len(prompt)), pairs[:, 0]] - seen[np.arange(len(prompt)), pairs[:, 1]]
    names = np.array([f"c{k}" for k in range(6)])
    y = (margin + np.sqrt(2.0) * rng.normal(size=len(prompt)) > 0.0).astype(int)
    return names[pairs], y, prompt


def test_variance_of_prompts_is_learned_and_widens_boards():
    X, y, prompt = simulated(0, 1.0)
    fitted = PairwisePreferenceRegressor().fit(X, y, prompts=prompt)
    shares = variance_shares(fitted)
    assert shares.names.tolist() == ["noise", "prompt", "pair"]
    assert shares.share.sum() == pytest.approx(1.0)
    assert shares.lower[1] < 0.5 < shares.upper[1]  # as simulated
    assert (shares.n_prompts, shares.n_repeats) == (60, 660)
    plain = PairwisePreferenceRegressor().fit(X, y)
    width, narrow = (
        np.mean(board.upper - board.lower) for board in (leaderboard(fitted), leaderboard(plain))
    )
    assert width > 1.2 * narrow
    assert fitted.log_marginal_likelihood_value_ > plain.log_marginal_likelihood_value_ + 20.0


def test_without_effects_of_prompts_boards_are_as_wide():
    X, y, prompt = simulated(1, 0.0)
    boards = [
        leaderboard(PairwisePreferenceRegressor().fit(X, y, **keywords))
        for keywords in ({"prompts": prompt}, {})
    ]
    width, narrow = (np.mean(board.upper - board.lower) for board in boards)
    assert width == pytest.approx(narrow, rel=0.05)


def test_boards_of_these_prompts_are_means_of_items_within_them():
    shown, y, prompt = problem("duels", 0)
    fitted = model("duels").fit(NAMES[shown], y, prompts=prompt)
    new, these = (leaderboard(fitted, groups=each, average=False) for each in ("new", "these"))
    # The same prior on items within prompts and within pairs in these, written by hand.
    _, pair = np.unique(np.c_[prompt, np.sort(shown, axis=1)], axis=0, return_inverse=True)
    beside = np.c_[prompt, pair.reshape(-1)]
    rows = np.stack([np.c_[shown[:, side], beside] for side in (0, 1)], axis=1).astype(float)
    kernel = OnColumns(Identity(), [0]) + EFFECT * OnColumns(Identity(), [0, 1])
    if fitted.comparisons_.items.shape[1] == 3:
        kernel = kernel + EFFECT * OnColumns(Identity(), [0, 1, 2])
    plain = model("duels", kernel=kernel).fit(rows, y).posterior_
    here, items = np.unique(prompt), np.unique(shown)
    asked = np.array([[[item, p, -1.0] for p in here] for item in items])
    mean, _ = plain.component_averages(asked, np.full(len(here), 1.0 / len(here)))
    centred = (mean - mean.mean())[:, 0] / these.unit_length
    expected = dict(zip(NAMES[items], centred, strict=True))
    assert_allclose(these.utility, [expected[name] for name in these.names], atol=1e-6)
    assert np.mean(these.upper - these.lower) < np.mean(new.upper - new.lower)
    assert "the prompts at hand" in these.about_prompts[0]
    assert these.probability_best.sum() == pytest.approx(1.0)
    best = np.sort(new.probability_best), np.sort(these.probability_best)
    assert np.max(np.abs(best[0] - best[1])) > 0.01


def test_boards_of_these_prompts_need_prompts():
    shown, y, _ = problem("duels", 0)
    fitted = model("duels").fit(NAMES[shown], y)
    with pytest.raises(ValueError, match="got groups='these' with a model that was fitted without"):
        leaderboard(fitted, groups="these")
    with pytest.raises(ValueError, match="groups must be"):
        leaderboard(fitted, groups="old")


def test_boards_of_these_prompts_with_judges_and_controls():
    rng = np.random.default_rng(1)
    n = 60
    ids = np.array([rng.permutation(6)[:2] for _ in range(n)])
    X = np.stack([ids, rng.normal(size=(n, 2)).round(1)], axis=2)
    y, judge, prompt = rng.integers(0, 2, n), rng.integers(0, 3, n), rng.integers(0, 8, n)
    same = JudgePrior(1e-12, random=0.0, adversarial=0.0, control_variance=0.0, order_variance=0.0)
    judged = model("duels", judge_prior=same, id_column=0).fit(X, y, judges=judge, prompts=prompt)
    lengths = judged.comparisons_.items[:, 1]
    linear = Linear(lengths.std(), centre=lengths.mean())
    kernel = OnColumns(Identity(), [0]) + 0.1 * OnColumns(linear, [1])
    effects = EFFECT * OnColumns(Identity(), [0, 2])
    if judged.comparisons_.items.shape[1] == 4:
        effects = effects + EFFECT * OnColumns(Identity(), [0, 2, 3])
    plain = model("duels", kernel=kernel + effects, id_column=0).fit(X, y, prompts=prompt)
    boards = [leaderboard(each, groups="these", average=False) for each in (judged, plain)]
    assert boards[0].names.tolist() == boards[1].names.tolist()
    for name in ("utility", "lower", "upper"):
        assert_allclose(*[getattr(board, name) for board in boards], atol=1e-5)


@pytest.mark.parametrize("kind", ["duels", "ties"])
def test_units_of_boards_are_those_of_a_vote_on_a_new_prompt(kind):
    shown, y, prompt = problem(kind, 0)
    fitted = model(kind).fit(NAMES[shown], y, prompts=prompt)
    effects = EFFECT * (fitted.comparisons_.items.shape[1] - 1)
    lengths = {
        unit: leaderboard(fitted, unit=unit, average=False).unit_length
        for unit in ("noise", "logit", "elo")
    }
    assert lengths["noise"] == pytest.approx(np.sqrt(NOISE + effects))
    # The score of a margin is the probability to win, and half of that of a tie.
    deviation, threshold = np.sqrt(2.0 * (NOISE + effects)), 0.3 if kind == "ties" else 0.0
    step = 1e-4
    score = [
        0.5 * sum(norm.cdf((side * step + bar) / deviation) for bar in (-threshold, threshold))
        for side in (-1.0, 1.0)
    ]
    logit = 0.25 / ((score[1] - score[0]) / (2.0 * step))
    assert lengths["logit"] == pytest.approx(logit, rel=1e-5)
    assert lengths["elo"] == pytest.approx(logit * np.log(10.0) / 400.0, rel=1e-5)


def test_readings_of_judges_meet_prompts():
    # Judges who agree throughout, and one who answers the other way round.
    rng = np.random.default_rng(0)
    X, _, prompt = simulated(2, 0.5, n_prompts=20)
    right = X[:, 0] < X[:, 1]
    judge = rng.integers(0, 4, len(X))
    y = np.where(rng.random(len(X)) < 0.1, ~right, right) ^ (judge == 3)
    fitted = PairwisePreferenceRegressor(judge_prior=JudgePrior(0.1, variance_bounds="fixed")).fit(
        X, y, judges=judge, prompts=prompt
    )
    judges = fitted.judges_
    contrary = dict(zip(judges.ids.tolist(), judges.probability_adversarial, strict=True))
    assert contrary[3] > 0.9 and max(contrary[k] for k in range(3)) < 0.1
    same = fitted.predict_proba(X[:9], judges=[0] * 9, prompts=prompt[:9])[:, 1]
    turned = fitted.predict_proba(X[:9], judges=[3] * 9, prompts=prompt[:9])[:, 1]
    assert np.all((same > 0.5) == right[:9]) and np.all((turned < 0.5) == right[:9])


def test_judges_of_reliability_one_with_controls_are_a_kernel_written_by_hand():
    rng = np.random.default_rng(3)
    n = 40
    ids = np.array([rng.permutation(6)[:2] for _ in range(n)])
    length = rng.normal(size=(n, 2)).round(1)
    X, y = np.stack([ids, length], axis=2), rng.integers(0, 2, n)
    judge, prompt = rng.integers(0, 3, n), rng.integers(0, 8, n)
    same = JudgePrior(1e-12, random=0.0, adversarial=0.0, control_variance=0.0, order_variance=0.0)
    judged = model("duels", judge_prior=same, id_column=0).fit(X, y, judges=judge, prompts=prompt)
    lengths = judged.comparisons_.items[:, 1]  # of items in prompts
    linear = Linear(lengths.std(), centre=lengths.mean())
    kernel = OnColumns(Identity(), [0]) + 0.1 * OnColumns(linear, [1])
    effects = EFFECT * OnColumns(Identity(), [0, 2])
    if judged.comparisons_.items.shape[1] == 4:  # some pair was judged twice
        effects = effects + EFFECT * OnColumns(Identity(), [0, 2, 3])
    plain = model("duels", kernel=kernel + effects, id_column=0).fit(X, y, prompts=prompt)
    for asked in (prompt, None):
        keywords = {} if asked is None else {"prompts": asked}
        expected = plain.predict_proba(X, **keywords)
        assert_allclose(judged.predict_proba(X, **keywords), expected, atol=1e-5)
        assert judged.posterior_.effect_variance == pytest.approx(plain.posterior_.effect_variance)
        own = judged.predict_proba(X, judges=judge, **keywords)
        assert_allclose(own, expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["duels", "choices"])
def test_decisions_and_scores_are_of_the_prompts_too(kind):
    # What wins on one prompt loses on the other.
    size = 2 if kind == "duels" else 3
    X = np.tile(NAMES[:size], (40, 1))
    prompt = np.repeat([0, 1], 20)
    y = (prompt == 0).astype(int) if kind == "duels" else np.where(prompt == 0, 0, 2)
    fitted = PairwisePreferenceRegressor(optimizer=None).fit(X, y, prompts=prompt)
    proba = fitted.predict_proba(X, prompts=prompt)
    decision = fitted.decision_function(X, prompts=prompt)
    if kind == "duels":
        assert np.all((decision > 0.0) == (proba[:, 1] > 0.5))
    else:
        assert np.array_equal(decision.argmax(axis=1), proba.argmax(axis=1))
    assert fitted.score(X, y, prompts=prompt) == 1.0
    assert fitted.score(X, y) == pytest.approx(0.5, abs=0.01)
    with config_context(enable_metadata_routing=True):
        scores = cross_val_score(
            fitted, X, y, params={"prompts": prompt}, scoring=accuracy_scorer, error_score="raise",
            cv=KFold(2, shuffle=True, random_state=0),
        )  # fmt: skip
    assert np.all(scores == 1.0)


def test_a_kernel_given_back_has_the_effects_once():
    rng = np.random.default_rng(0)
    n = 40
    X = np.stack([np.array([rng.permutation(5)[:2] for _ in range(n)]), rng.normal(size=(n, 2))], 2)
    keywords = {"judges": rng.integers(0, 3, n), "prompts": rng.integers(0, 9, n)}
    y = ((X[:, 0, 0] < X[:, 1, 0]) ^ (rng.random(n) < 0.2)).astype(int)
    fitted = PairwisePreferenceRegressor(
        id_column=0, judge_prior=JudgePrior(variance_bounds="fixed", random=0.0, adversarial=0.0)
    ).fit(X, y, **keywords)
    again = make_held(fitted).fit(X, y, **keywords)
    assert str(again.kernel_) == str(fitted.kernel_)


def test_all_votes_on_one_prompt_tell_no_effects():
    shown, y, _ = problem("duels", 0)
    fitted = model("duels").fit(NAMES[shown], y, prompts=np.zeros(len(y)))
    assert not isinstance(fitted.posterior_, GroupedPosterior)


def test_the_scale_of_a_users_kernel_does_not_shrink():
    X, y, prompt = simulated(4, 0.5, n_prompts=15, n_votes=2)
    kernel = ConstantKernel(1.0, (1e-5, 1e5)) * OnColumns(Identity(), [0])
    items = np.unique(X)
    rows = np.searchsorted(items, X)[:, :, None].astype(float)
    shares = [
        variance_shares(
            PairwisePreferenceRegressor(kernel=start * kernel).fit(rows, y, prompts=prompt),
            average=False,
        ).share
        for start in (ConstantKernel(1.0, "fixed"), ConstantKernel(100.0, "fixed"))
    ]
    assert_allclose(*shares, atol=0.02)


def test_kernels_that_leave_no_utility_are_refused():
    shown, y, prompt = problem("duels", 0)
    with pytest.raises(ValueError, match="all of the terms see column 1"):
        model("duels", kernel=OnColumns(Identity(), [0, 1])).fit(NAMES[shown], y, prompts=prompt)


def test_white_noise_in_a_kernel_is_refused_with_prompts():
    shown, y, prompt = problem("duels", 0)
    kernel = OnColumns(Identity(), [0]) + 0.5 * WhiteKernel(0.3)
    with pytest.raises(ValueError, match="with prompts=; a WhiteKernel"):
        model("duels", kernel=kernel).fit(NAMES[shown], y, prompts=prompt)
    model("duels", kernel=kernel).fit(NAMES[shown], y)  # as before


@pytest.mark.parametrize("again", [None, np.arange(9)])
def test_a_kernel_given_back_without_its_prompts_is_refused(again):
    items, shown = np.eye(4), problem("duels", 0)[0] % 4
    shown[:, 1] = (shown[:, 0] + 1) % 4
    y, prompt = np.arange(9) % 2, np.arange(9) // 3
    fitted = model("duels", kernel=RBF()).fit(items[shown], y, prompts=prompt)
    keywords = {} if again is None else {"prompts": again}
    with pytest.raises(ValueError, match=r"items have 4 columns.*with the same prompts="):
        model("duels", kernel=fitted.kernel_).fit(items[shown], y, **keywords)


def test_saved_and_pickled():
    shown, y, prompt = problem("ties", 0)
    fitted = model("ties").fit(NAMES[shown], y, prompts=prompt)
    expected = fitted.predict_proba(NAMES[shown], prompts=prompt)
    for copied in (
        PairwisePreferenceRegressor.from_arrays(fitted.to_arrays()),
        pickle.loads(pickle.dumps(fitted)),
    ):
        assert_allclose(copied.predict_proba(NAMES[shown], prompts=prompt), expected, atol=1e-12)


def test_items_with_features():
    rng = np.random.default_rng(0)
    items, prompt = rng.normal(size=(6, 2)), np.repeat([0, 1, 2], 6)
    shown = np.array([rng.permutation(6)[:2] for _ in prompt])
    y = rng.integers(0, 2, 18)
    # A kernel of the items alone, and the same with the effects written out, the prompt's column 2.
    smooth = ConstantKernel(2.0) * RBF(1.5)
    fitted = model("duels", kernel=smooth).fit(items[shown], y, prompts=prompt)
    assert fitted.posterior_.effect_variance > 0.5
    again = model("duels", kernel=fitted.kernel_).fit(items[shown], y, prompts=prompt)
    both = (each.predict_proba(items[shown], prompts=prompt) for each in (fitted, again))
    assert_allclose(*both, atol=1e-9)


REFUSED = [
    ({"inference": "svi"}, {}, "prompts= with SVI"),
    ({}, {"time": np.arange(9)}, "prompts= with time="),
    ({}, {"prompts": [0, 1]}, "2 ids in prompts for 9 rows"),
    ({}, {"prompts": [None] * 9}, "id of a prompt is missing"),
]


@pytest.mark.parametrize(("parameters", "keywords", "message"), REFUSED)
def test_refused_before_any_work(parameters, keywords, message):
    shown, y, prompt = problem("duels", 0)
    regressor = PairwisePreferenceRegressor(**parameters)
    with pytest.raises(ValueError, match=message):
        regressor.fit(NAMES[shown], y, **{"prompts": prompt, **keywords})


def test_prompts_that_do_nothing_are_told():
    shown, y, prompt = problem("duels", 0)
    with pytest.raises(ValueError, match="prompts= with items that have ratings"):
        PairwisePreferenceRegressor().fit(np.eye(3), [1, 2, 3], prompts=[0, 1, 2])
    fitted = model("duels").fit(NAMES[shown], y)
    with pytest.warns(UserWarning, match="fitted without prompts"):
        fitted.predict_proba(NAMES[shown], prompts=prompt)


def test_groups_of_the_wrong_number_are_refused():
    shown, y, prompt = problem("duels", 0)
    posterior = model("duels").fit(NAMES[shown], y, prompts=prompt).posterior_
    with pytest.raises(ValueError, match="groups of 2 answers for 9"):
        posterior.in_groups(np.zeros(2, dtype=int)).win_probability(*NAMES[shown].T)
    known = replace(posterior, asked_groups=None)
    assert known.win_probability(["a"], ["b"]).shape == (1,)


@pytest.mark.parametrize("kind", ["duels", "ties"])
@pytest.mark.parametrize("noise", [0.05, 2.0])
def test_what_a_vote_on_a_new_prompt_tells_is_of_the_mean_over_prompts(kind, noise):
    shown, y, prompt = problem(kind, 0)
    fitted = model(kind).set_params(noise_variance=noise).fit(NAMES[shown], y, prompts=prompt)
    posterior, pairs = fitted.posterior_, NAMES[np.array([[0, 1], [1, 2], [0, 3]])]
    mean, variance = posterior.margin(*pairs.T)
    terms = fitted.comparisons_.items.shape[1] - 1
    grid = np.linspace(-9.0, 9.0, 3001)
    margin = mean[:, None] + np.sqrt(variance)[:, None] * grid
    scale = np.sqrt(2.0 * noise + 2.0 * terms * EFFECT)  # noise and effects of both items
    threshold = 0.3 if kind == "ties" else 0.0
    first, second = (norm.cdf((side * margin - threshold) / scale) for side in (1.0, -1.0))
    chances = np.stack([first, second, np.maximum(1.0 - first - second, 0.0)])
    weights = norm.pdf(grid) / norm.pdf(grid).sum()
    expected = entr(chances @ weights).sum(axis=0) - entr(chances).sum(axis=0) @ weights
    assert_allclose(bald(posterior, pairs), expected, atol=1e-6)
    if kind == "duels":
        assert_allclose(bald(posterior, pairs, method="closed_form"), expected, rtol=0.05)

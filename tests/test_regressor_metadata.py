"""What answers carry, all of it together: it works with every engine, or is refused by name."""

from itertools import chain, combinations
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import entr
from scipy.stats import multivariate_normal, norm
from sklearn.gaussian_process.kernels import RBF

from skpref import ItemTable, JudgePrior, PairwisePreferenceRegressor
from skpref.active import (
    STRATEGIES,
    bald,
    best_item_information,
    committee_disagreement,
    entropy,
    next_pairs,
    query,
)
from skpref.active._batch import Worlds
from skpref.gp import Posterior
from skpref.inference import HMC, Gibbs
from skpref.inspection import leaderboard, permutation_importance
from skpref.likelihoods import Probit

NAMES = np.array(["a", "b", "c", "d"])
N = 24
_RNG = np.random.default_rng(0)
SHOWN = np.tile([_RNG.permutation(4)[:2] for _ in range(N // 2)], (2, 1))
# The earlier name wins, but in four answers: nobody takes a judge for an adversary.
Y = ((SHOWN[:, 0] < SHOWN[:, 1]) ^ (np.arange(N) % 7 == 3)).astype(int)
CARRIED = {
    "order": _RNG.choice([-1, 1], N),
    "judges": np.array(["j", "k", "l"])[np.arange(N) % 3],
    "prompts": np.array(["p", "q", "r"])[np.arange(N) % 12 // 4],
    "time": 0.1 * np.arange(N),
}
SUBSETS = [*chain.from_iterable(combinations(CARRIED, k) for k in range(5))]
ENGINES = {
    "ep": "ep",
    "laplace": "laplace",
    "svi": "svi",
    "hmc": HMC(draws=60, chains=4, burn_in=20),
    "gibbs": Gibbs(draws=60, chains=4, burn_in=20),
}


def model(engine, carried):
    """A model of which nothing is learned but judges, with an order effect where orders are."""
    order = {"order_effect": 0.4} if "order" in carried else {}
    return PairwisePreferenceRegressor(
        items=ItemTable.from_names(NAMES),
        inference=ENGINES[engine],
        noise_variance=0.5,
        optimizer=None,
        random_state=0,
        # One reading of the judges: several take their time.
        judge_prior=JudgePrior(random=0.0, adversarial=0.0),
        **order,
    )


def fitted(engine, carried):
    return model(engine, carried).fit(NAMES[SHOWN], Y, **{name: CARRIED[name] for name in carried})


def _is_slow(engine, carried):
    judged = "judges" in carried and carried != ("judges",)
    return engine in ("hmc", "gibbs") or judged or (engine != "ep" and "judges" in carried)


CASES = [
    pytest.param(
        engine,
        carried,
        marks=pytest.mark.slow if _is_slow(engine, carried) else (),
        id="-".join((engine, *carried)),
    )
    for engine in ENGINES
    for carried in SUBSETS
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("engine", "carried"), CASES)
def test_all_that_answers_carry_together(engine, carried):
    if "prompts" in carried and (engine == "svi" or "time" in carried):
        with pytest.raises(ValueError, match=r"got prompts= with (SVI|time=)"):
            fitted(engine, carried)
        return
    found = fitted(engine, carried)
    asked = {name: CARRIED[name][:6] for name in carried}
    shown = NAMES[SHOWN[:6]]
    proba = found.predict_proba(shown, **asked)
    assert_allclose(proba.sum(axis=1), 1.0)
    # The same duels, turned.
    turned = asked | ({"order": -asked["order"]} if "order" in asked else {})
    assert_allclose(found.predict_proba(shown[:, ::-1], **turned), proba[:, ::-1], atol=1e-10)
    assert_allclose(found.predict_log_proba(shown, **asked), np.log(proba), atol=1e-10)
    # One answer by itself.
    third = {name: values[2:3] for name, values in asked.items()}
    assert_allclose(found.predict_proba(shown[2:3], **third), proba[2:3], atol=1e-10)
    decision = found.decision_function(shown, **asked)
    assert_allclose(found.decision_function(shown[:, ::-1], **turned), -decision, atol=1e-10)
    called = np.where(decision == 0.0, 0.5, (decision > 0.0) == Y[:6])
    assert found.score(shown, Y[:6], **asked) == pytest.approx(called.mean())
    assert leaderboard(found, average=False).names.shape == (4,)
    assert next_pairs(found, n=3).votes.sum() == 3
    for strategy in STRATEGIES:
        assert len(set(query(found, shown, strategy, n=2, random_state=0).tolist())) == 2
    if "prompts" in carried:
        plan = next_pairs(found, n=3, allowed=shown, prompts=asked["prompts"])
        assert set(plan.prompts) <= {"p", "q", "r"} and plan.votes.sum() == 3


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("name", "remedy"),
    [("prompts", "next_pairs"), ("judges", "reference judge"), ("time", "at_time"), ("x", "Leave")],
)
def test_strategies_refuse_what_they_do_not_take(strategy, name, remedy):
    # An estimator that is not fitted: before any work.
    with pytest.raises(TypeError, match=rf"got {name}= with a strategy whose options.*{remedy}"):
        query(model("ep", ()), NAMES[SHOWN], strategy, **{name: [0] * N})


class Noisier(NamedTuple):
    """A posterior of which answers have another likelihood."""

    posterior: Posterior
    likelihood: Probit

    def margin(self, A, B):
        return self.posterior.margin(A, B)

    def margin_cov(self, A, B):
        return self.posterior.margin_cov(A, B)


def test_effects_of_a_new_prompt_are_noise_to_scores():
    posterior = fitted("ep", ("prompts",)).posterior_
    duels = NAMES[np.array([*combinations(range(4), 2)])]
    noisier = Noisier(posterior, Probit(0.5 + posterior.effect_variance))
    assert posterior.effect_variance > 0.2
    for score in (bald, entropy):
        assert_allclose(score(posterior, duels), score(noisier, duels), atol=1e-9)
    drawn = {"members": 40_000, "random_state": 0}
    assert_allclose(
        committee_disagreement(posterior, duels, **drawn), bald(noisier, duels), atol=0.01
    )
    # Of two items the better one is a sign: probabilities of two normal variables.
    mean, variance = (part[0] for part in noisier.margin(duels[:1, 0], duels[:1, 1]))
    answer = variance + noisier.likelihood.margin_variance
    both = multivariate_normal([0.0, 0.0], [[variance, variance], [variance, answer]])
    joint = np.array([[both.cdf([s * mean, t * mean]) for t in (1, -1)] for s in (1, -1)])
    joint[0, 1] = norm.cdf(mean / np.sqrt(variance)) - joint[0, 0]
    joint[1, 0] = norm.cdf(-mean / np.sqrt(variance)) - joint[1, 1]
    expected = entr(joint.sum(axis=0)).sum() + entr(joint.sum(axis=1)).sum() - entr(joint).sum()
    best = best_item_information(posterior, duels[:1], n_draws=200_000, random_state=0)
    assert_allclose(best, expected, atol=0.001)


def test_effects_of_a_new_prompt_are_noise_to_batches():
    rng = np.random.default_rng(1)
    items, prompt = rng.normal(size=(9, 2)), np.repeat(np.arange(6), 6)
    shown = np.array([rng.permutation(9)[:2] for _ in prompt])
    regressor = PairwisePreferenceRegressor(RBF(1.5), noise_variance=0.02, optimizer=None)
    posterior = regressor.fit(items[shown], rng.integers(0, 2, 36), prompts=prompt).posterior_
    duels = items[np.array([*combinations(range(9), 2)])]
    margins = posterior.margin(duels[:, 0], duels[:, 1])
    alone = posterior.new_variance(duels[:, 0], duels[:, 1])
    worlds = Worlds.without_answers(
        margins[0], margins[1], posterior.margin_cov(duels[:, 0], duels[:, 1])
    )
    for k in (0, 5):
        found = worlds.with_answer(k, Probit(0.02), 1, alone[k])
        expected = worlds.with_answer(k, Probit(0.02 + alone[k] / 2.0), 1)
        for name in ("weight", "mean", "variance"):
            assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-12)
    # The second duel is the one that tells most beside the first, by draws of all margins.
    draws = rng.multivariate_normal(margins[0], worlds.prior, size=20_000)
    wins = norm.cdf(draws / np.sqrt(0.04 + alone))

    def information_with_first(k):
        both = np.stack([[wins[:, i], 1.0 - wins[:, i]] for i in (chosen[0], k)])
        joint = np.einsum("in,jn->ijn", *both)
        return entr(joint.mean(axis=2)).sum() - entr(joint).sum(axis=(0, 1)).mean()

    chosen = query(posterior, duels, n=2)
    assert chosen[1] == max(set(range(len(duels))) - {chosen[0]}, key=information_with_first)


def test_importance_is_told_of_prompts():
    rng = np.random.default_rng(0)
    X, prompt = rng.uniform(size=(60, 2, 2)), np.arange(60) // 4
    y = X[:, 0, 0] > X[:, 1, 0]
    found = PairwisePreferenceRegressor(optimizer=None).fit(X, y, prompts=prompt)
    importance = permutation_importance(found, X, y, scoring="neg_log_loss", prompts=prompt)
    assert importance.importances_mean[0] > 5.0 * abs(importance.importances_mean[1])
    without = permutation_importance(found, X, y, scoring="neg_log_loss")
    assert np.abs(importance.importances - without.importances).max() > 0.01

"""What learners of several users refuse, before anything is kept."""

import pytest
from collaborative_support import make_study
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF

from skpref import PairwisePreferenceRegressor
from skpref.active import all_pairs
from skpref.collaborative import CollaborativePreferenceRegressor
from skpref.optimize import ActiveLearner

ITEMS = make_study(n_users=1, n_each=1).items


def learner(**options):
    options = {"users": ["ann", "bob", 7], "n_initial": 3, "random_state": 0} | options
    estimator = CollaborativePreferenceRegressor(RBF(1.0), optimizer=None)
    return ActiveLearner(estimator, ITEMS, **options)


def test_whom_features_are_wanting_of_is_refused_at_once():
    """What is told is kept, and could not be fitted any more."""
    z = {"ann": [0.0], "bob": [1.0]}
    estimator = CollaborativePreferenceRegressor(RBF(1.0), user_features=z, optimizer=None)
    with pytest.raises(ValueError, match="no row for 1 of 2 users, such as 'eve'"):
        ActiveLearner(estimator, ITEMS, users=["ann", "eve"])
    made = ActiveLearner(estimator, ITEMS, users=["ann"], n_initial=1, random_state=0)
    made.tell(("ann", ITEMS[:2]), 1).tell(("bob", ITEMS[:2]), 0)
    for refused in (
        lambda: made.tell(("eve", ITEMS[:2]), 1),
        lambda: made.skip(("eve", ITEMS[:2])),
        lambda: made.ask(user="eve"),
    ):
        with pytest.raises(ValueError, match="no row for 1 of 1 users, such as 'eve'"):
            refused()
    assert made.ask().user in z
    assert made.recommend("eve").shape == (2,)  # somebody of the population
    free = clone(estimator).set_params(method="pooled")
    assert ActiveLearner(free, ITEMS, users=["eve"], random_state=0).ask().user == "eve"


def test_what_learners_refuse():
    with pytest.raises(TypeError, match="knows several users"):
        ActiveLearner(PairwisePreferenceRegressor(), ITEMS, users=["ann"])
    with pytest.raises(ValueError, match="texts or integers"):
        learner(users=[("ann", 1)])
    with pytest.raises(ValueError, match="twice"):
        learner(users=["ann", "ann"])
    with pytest.raises(ValueError, match=r"ask\(user"):
        learner(users=[]).ask()
    assert learner(users=[]).ask(user="ann").user == "ann"
    assert learner(users=[]).skip(("dora", ITEMS[:2])).ask().user == "dora"  # she is known now
    with pytest.raises(ValueError, match=r"a pair \(user, duel\)"):
        learner().tell(ITEMS[:2], 1)
    with pytest.raises(ValueError, match="users="):
        learner(users=None).ask(user="ann")
    with pytest.raises(ValueError, match="is of one utility"):
        learner(strategy="best_item")
    done = learner(users=["ann", "bob"])
    for duel in all_pairs(ITEMS):
        done.tell(("ann", duel), 1)
    with pytest.raises(ValueError, match="No duel is left to ask 'ann'"):
        done.ask(user="ann")
    assert done.ask().user == "bob"


def test_a_journal_is_of_one_rhythm_of_refits(tmp_path):
    path = tmp_path / "run.db"
    learner(journal=path, refit_every=2).tell(("ann", ITEMS[:2]), 1)
    with pytest.raises(ValueError, match="refit_every: 2, now 3"):
        learner(journal=path, refit_every=3)
    assert learner(journal=path, refit_every=2).n_told_ == 1

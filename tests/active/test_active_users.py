"""What many users are asked: scores of a user's duels, pools of several users, learners."""

import pickle
from math import sqrt

import numpy as np
import pytest
from active_support import below, entropy_of
from collaborative_support import make_study
from journal_support import copied
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.active import all_pairs, bald, entropy, query
from skpref.collaborative import CollaborativePreferenceRegressor
from skpref.fitting import fix_hyperparameters
from skpref.optimize import ActiveLearner, AlreadyAnswered, Question, read_journal
from skpref.preprocessing import Itemwise

STUDY = make_study(n_users=5, n_each=8)
ITEMS, PAIRS = STUDY.items, all_pairs(6)
POOL = np.tile(ITEMS[PAIRS], (5, 1, 1))
ASKED = np.repeat(np.arange(5), len(PAIRS))


def model(**options):
    options = {"noise_variance": 0.1, "optimizer": None} | options
    return CollaborativePreferenceRegressor(RBF(1.5), **options)


@pytest.fixture(scope="module")
def fitted():
    return model().fit(STUDY.X, STUDY.y, users=STUDY.users)


# -- scores ----------------------------------------------------------------------------------


@pytest.mark.parametrize("user", [3, "never met"])
def test_bald_of_a_user_is_mutual_information_over_draws_of_their_utility(fitted, user):
    draws = fitted.posterior_for([user] * 6).sample(ITEMS, 20_000, 0)
    scores = bald(fitted.posterior_for([user] * len(PAIRS)), ITEMS[PAIRS])
    for score, (a, b) in zip(scores[::4], PAIRS[::4], strict=True):
        won = [below(gap / sqrt(0.2)) for gap in draws[a] - draws[b]]
        known = np.mean([entropy_of((p, 1.0 - p)) for p in won])
        assert score == pytest.approx(entropy_of((np.mean(won), 1.0 - np.mean(won))) - known, 0.03)


@pytest.mark.parametrize("method", ["cp", "cpu"])
def test_a_user_is_one_person_fitted_or_not(method):
    """The covariance of the margins of one is that of utilities, their variances its diagonal."""
    features = {k: [0.3 * k] for k in range(6)} if method == "cpu" else None
    own = model(method=method, user_features=features).fit(STUDY.X, STUDY.y, users=STUDY.users)
    gaps = np.eye(6)[PAIRS[:, 0]] - np.eye(6)[PAIRS[:, 1]]
    first, second = ITEMS[PAIRS[:, 0]], ITEMS[PAIRS[:, 1]]
    for user in (2, 5, "no features"):  # fitted; with features and without
        cov = own.posterior_for([user] * 6).cov(ITEMS)
        about = own.posterior_for([user] * 15)
        assert_allclose(about.margin_cov(first, second), gaps @ cov @ gaps.T, atol=1e-10)
        variance = about.margin(first, second)[1]
        assert_allclose(variance, np.diagonal(gaps @ cov @ gaps.T), atol=1e-10)
    assert_allclose(own.posterior_.cov(ITEMS), cov, atol=1e-10)
    apart = own.posterior_for([None, "a", "b", "a", None, 5]).cov(ITEMS[[0] * 6])
    share = apart / apart[1, 3]
    assert_allclose(share[[1, 3, 0], [1, 3, 0]], 1.0)
    assert np.all(share[[0, 1, 0], [4, 2, 1]] < 0.9)  # nobody, two strangers, nobody and a stranger


def test_an_answer_is_worth_less_once_given_and_to_those_alike_than_to_those_unlike():
    features = {"ann": [0.0], "like ann": [0.1], "unlike ann": [4.0], "unlike too": [4.1]}
    people = list(features)
    X, users = np.tile(ITEMS[PAIRS[:6]], (4, 1, 1)), np.repeat(people, 6)
    y = np.tile([0, 1, 0, 1, 1, 0], 4)
    own = model(user_features=features, user_kernel=RBF(0.3))
    before = own.fit(X, y, users=users).posterior_for(people)
    again = ITEMS[PAIRS[[7]]]
    told = np.concatenate([X, again]), np.r_[y, 1], np.r_[users, ["ann"]]
    after = own.fit(told[0], told[1], users=told[2]).posterior_for(people)
    less = 1.0 - bald(after, again[[0] * 4]) / bald(before, again[[0] * 4])
    assert less[0] > less[1] + 0.05
    assert less[1] > less[2] + 0.02
    assert_allclose(less[2], less[3], atol=0.02)


def test_who_is_who_does_not_count(fitted):
    named = np.empty(5, dtype=object)
    named[:] = [("person", k) for k in (3, 0, 4, 1, 2)]
    turn = np.random.default_rng(0).permutation(len(STUDY.y))
    other = model().fit(STUDY.X[turn], STUDY.y[turn], users=named[STUDY.users[turn]])
    chosen, scores = query(fitted, POOL, users=ASKED, n=3, return_scores=True)
    found = query(other, POOL, users=named[ASKED], n=3, return_scores=True)
    assert_allclose(found[1], scores, atol=2e-3)
    assert_array_equal(found[0], chosen)


# -- queries ---------------------------------------------------------------------------------


def test_several_duels_of_several_users(fitted):
    chosen, scores = query(fitted, POOL, users=ASKED, n=4, return_scores=True)
    assert chosen[0] == scores.argmax()
    alone = bald(fitted.posterior_for(ASKED[chosen]), POOL[chosen])
    assert_allclose(scores[chosen], alone)
    # what was asked first, the other way round, is as good as known to be asked: of nobody else
    first = chosen[:1]
    both = np.r_[first, np.flatnonzero(ASKED[first] != ASKED)]
    pool = np.concatenate([POOL[both], POOL[first][:, ::-1]])
    users = np.r_[ASKED[both], ASKED[first]]
    assert query(fitted, pool, users=users, n=2, diversity=False)[1] == len(pool) - 1
    assert query(fitted, pool, users=users, n=2)[1] < len(pool) - 1
    assert query(fitted, pool, users=users, pending=[0]) < len(pool) - 1
    score = query(fitted, pool, users=users, return_scores=True)[1]
    assert score[-1] == pytest.approx(score[0], rel=1e-6)


def test_pools_of_every_form():
    table = ItemTable(ITEMS)
    by_place = model(items=table).fit(STUDY.pairs, STUDY.y, users=STUDY.users)
    expected = query(by_place, POOL, users=ASKED, n=3, answered=STUDY.X)
    places = np.tile(PAIRS, (5, 1))
    assert_array_equal(query(by_place, places, users=ASKED, n=3, answered=STUDY.pairs), expected)
    pipeline = make_pipeline(Itemwise(StandardScaler()), model())
    pipeline.fit(STUDY.X, STUDY.y, collaborativepreferenceregressor__users=STUDY.users)
    inner = pipeline[0].transform(POOL)
    one = query(pipeline[-1], inner, users=ASKED, n=3)
    assert_array_equal(query(pipeline, POOL, users=ASKED, n=3), one)
    single = PairwisePreferenceRegressor(optimizer=None).fit(STUDY.X, STUDY.y)
    with pytest.raises(TypeError, match="posterior_for"):
        query(single, POOL, users=ASKED)


def test_what_one_user_answered_others_may_be_asked(fitted):
    free = query(
        fitted, POOL, users=ASKED, answered=STUDY.X, answered_users=STUDY.users, return_scores=True
    )[1]
    keys = {(user, *sorted(pair)) for user, pair in zip(STUDY.users, STUDY.pairs, strict=True)}
    expected = [(u, *sorted(p)) in keys for u, p in zip(ASKED, np.tile(PAIRS, (5, 1)), strict=True)]
    assert_array_equal(np.isneginf(free), expected)
    none = query(fitted, POOL, users=ASKED, answered=[], answered_users=[], return_scores=True)[1]
    assert np.all(np.isfinite(none))
    with pytest.raises(ValueError, match="who answered duels"):
        query(fitted, POOL, users=ASKED, answered_users=STUDY.users)
    with pytest.raises(ValueError, match="duels answered"):
        query(fitted, POOL, users=ASKED, answered=STUDY.X, answered_users=STUDY.users[:2])


def test_who_is_shown_first_and_answers_of_one_user():
    shown = model(order_effect=0.5)
    shown.fit(STUDY.X, STUDY.y, users=STUDY.users)
    alone = model().fit(STUDY.X, STUDY.y, users=["one"] * len(STUDY.y))
    lead = np.where(np.arange(len(POOL)) % 2, 1, -1)
    first, second = (
        query(shown, POOL, users=ASKED, order=k, return_scores=True)[1] for k in (1, -1)
    )
    mixed = query(shown, POOL, users=ASKED, order=lead, return_scores=True)[1]
    assert_array_equal(mixed, np.where(lead == 1, first, second))
    scores = query(alone, POOL, users=ASKED, return_scores=True)[1].reshape(5, -1)
    assert_array_equal(scores, np.tile(bald(alone.posterior_, ITEMS[PAIRS]), (5, 1)))


@pytest.mark.parametrize("method", ["cp", "cpu", "su", "bonilla"])
def test_hyperparameters_are_held(method):
    features = {user: [float(user % 3), user / 5] for user in range(5)}
    learned = model(
        method=method, optimizer="fmin_l_bfgs_b", user_features=features, n_learning_answers=20
    )
    learned.fit(STUDY.X, STUDY.y, users=STUDY.users)
    again = fix_hyperparameters(learned).fit(STUDY.X, STUDY.y, users=STUDY.users)
    assert_allclose(
        again.predict_proba(POOL, users=ASKED), learned.predict_proba(POOL, users=ASKED), atol=1e-6
    )


# -- learners --------------------------------------------------------------------------------


def learner(path=None, **options):
    options = {"users": ["ann", "bob", 7], "n_initial": 3, "random_state": 0} | options
    return ActiveLearner(model(), ITEMS, journal=path, **options)


def judged(user, duel):
    sign = -1.0 if user == "bob" else 1.0
    return int(sign * duel[0][0] > sign * duel[1][0])


def answer(made, n, user=None):
    for _ in range(n):
        question = made.ask(user=user)
        made.tell(question, judged(*question))
    return made


def key(question):
    return question.user, tuple(sorted(map(tuple, question.duel.tolist())))


def test_questions_are_those_of_a_query():
    pool = ITEMS[PAIRS]
    made = ActiveLearner(model(), pool, users=["ann", "bob"], n_initial=4, random_state=1)
    answer(answer(made, 2, "ann"), 2, "bob")
    told = made.history_
    X, y = np.array([each.items.duel for each in told]), [each.outcome for each in told]
    users = [each.items.user for each in told]
    both, whom = np.tile(pool, (2, 1, 1)), np.repeat(["ann", "bob"], len(pool))
    own = model().fit(X, y, users=users)
    chosen = query(own, both, users=whom, n=3, answered=X, answered_users=users)
    for question, row in zip(made.ask(3), chosen, strict=True):
        assert question.user == whom[row]
        assert_array_equal(question.duel, both[row])
    # of one who sits at the screen, in view of what others are being asked
    beside = np.concatenate([pool, [each.duel for each in made.pending_ if each.user != "ann"]])
    whom = ["ann"] * len(pool) + ["bob"] * (len(beside) - len(pool))
    waiting = [each for each in made.pending_ if each.user == "ann"]
    more = made.ask(len(waiting) + 1, user="ann")
    places = [np.flatnonzero(np.all(pool == each.duel, axis=(1, 2)))[0] for each in waiting]
    rest = np.r_[places, np.arange(len(pool), len(beside))].astype(int)
    known = {"answered": X, "answered_users": users, "pending": rest}
    expected = query(own, beside, users=whom, **known)
    assert_array_equal(more[-1].duel, beside[expected[0]])


def test_users_are_told_apart():
    made = learner(strategy="random")
    question = made.ask(user="ann")
    duel = question.duel
    made.tell(("bob", duel), 1)
    assert key(made.pending_[0]) == key(question)
    made.tell(("ann", duel[::-1]), 1)
    assert made.pending_ == []
    asked = {key(each) for each in made.ask(13, user="bob")}
    assert len(asked) == 13
    assert key(Question("bob", duel)) not in asked
    one = made.skip(made.ask(user=7)).ask(user=7)
    assert made.undo().ask(user=7).user == 7
    assert key(made.ask(user=7)) != key(one)
    new = made.ask(user="somebody new")
    made.tell(new, 1)
    assert {each.user for each in made.ask(3 * 15)} >= {"somebody new", "ann", 7}


def test_what_others_are_being_asked_counts():
    """Where all are alike, an answer that is on its way from one tells as much of another."""
    alike = model(taste_variance=1e-3)

    def made():
        found = ActiveLearner(alike, ITEMS[PAIRS], users=["ann", "bob"], random_state=0)
        return answer(answer(found, 3, "ann"), 3, "bob")

    alone, together = made(), made()
    best = alone.ask(user="ann").duel
    assert_array_equal(together.ask(user="bob").duel, best)
    assert np.any(together.ask(user="ann").duel != best)


def test_who_was_quicker(tmp_path):
    path = tmp_path / "run.db"
    one = learner(path)
    duel = one.ask(user="ann").duel
    one.tell(("bob", ITEMS[:2]), 1)
    two = learner(path, random_state=None)
    two.skip(("ann", duel)).tell(("bob", duel), 1)
    with pytest.raises(AlreadyAnswered, match="skipped"):
        one.tell(("ann", duel), 1)
    assert one.tell(("ann", duel), 1).n_told_ == 3


@pytest.mark.slow
def test_a_journal_goes_on_with_the_same_questions(tmp_path):
    path = tmp_path / "run.db"
    made = answer(learner(path), 6)
    made.ask(user="bob")
    made.skip(made.ask(user=7))
    again = learner(copied(path, tmp_path), random_state=None)
    assert [key(each) for each in again.pending_] == [key(each) for each in made.pending_]
    for user in (None, "ann", "bob", None):
        questions = [each.ask(user=user) for each in (made, again)]
        assert key(questions[0]) == key(questions[1])
        for each in (made, again):
            each.tell(questions[0], judged(*questions[0]))
    from_pickle = answer(pickle.loads(pickle.dumps(answer(learner(), 3))), 3)
    assert [key(each.items) for each in from_pickle.history_] == [
        key(each.items) for each in made.history_[:6]
    ]
    table = read_journal(path)
    kinds = [(kind, user) for kind, user in zip(table["kind"], table["user"], strict=True)]
    assert ("ask", "bob") in kinds
    assert ("skip", 7) in kinds
    assert [user for kind, user in kinds if kind == "tell"] == [
        each.items.user for each in made.history_
    ]
    with pytest.raises(ValueError, match="another configuration"):
        learner(path, users=["ann"])


@pytest.mark.slow
def test_each_learns_what_they_like_and_a_run_asks_everybody():
    made = learner(users=["ann", "bob"], refit_every=4)
    made.run(judged, 14)
    assert {told.items.user for told in made.history_} == {"ann", "bob"}
    order = ITEMS[:, 0].argsort()
    assert made.recommend("ann") in ITEMS[order[-2:]]
    assert made.recommend("bob") in ITEMS[order[:2]]
    assert entropy(made.posterior_, ITEMS[PAIRS]).shape == (15,)


@pytest.mark.slow
def test_hyperparameters_are_learned_with_every_few_answers():
    estimator = model(optimizer="fmin_l_bfgs_b", noise_variance_bounds="fixed")
    made = ActiveLearner(estimator, ITEMS, users=["ann", "bob"], refit_every=4, random_state=0)
    kernels = []
    for step in range(10):
        answer(made, 1, ["ann", "bob"][step % 2])
        kernels.append(made.estimator_.kernel_.length_scale)
    assert kernels[3] == kernels[4] == kernels[6] != kernels[7]
    told = made.history_
    X, y, users = (
        np.array([each.items.duel for each in told]),
        [each.outcome for each in told],
        [each.items.user for each in told],
    )
    expected = fix_hyperparameters(estimator.fit(X[:8], y[:8], users=users[:8])).fit(
        X, y, users=users
    )
    assert_allclose(made.estimator_.predict(ITEMS), expected.predict(ITEMS), atol=1e-9)


@pytest.mark.parametrize("routed", [False, True])
def test_pipelines_learn_of_several_users(routed):
    with config_context(enable_metadata_routing=routed):
        last = model().set_fit_request(users=True) if routed else model()
        pipeline = make_pipeline(Itemwise(StandardScaler()), last)
        made = ActiveLearner(pipeline, ITEMS, users=["ann", "bob"], n_initial=2, random_state=0)
        answer(answer(made, 4, "ann"), 4, "bob")
        inner = made.estimator_[:-1].transform(ITEMS)
        one, other = (made.estimator_[-1].predict(inner, users=[u] * 6) for u in ("ann", "bob"))
    assert np.corrcoef(one, ITEMS[:, 0])[0, 1] > 0.7
    assert np.corrcoef(other, -ITEMS[:, 0])[0, 1] > 0.7


def test_ties_alone_are_no_start():
    estimator = PairwisePreferenceRegressor(RBF(1.0), tie_threshold=0.2, optimizer=None)
    made = ActiveLearner(estimator, ITEMS, n_initial=1, refit_every=2, random_state=0)
    made.tell(ITEMS[:2], "tie").tell(ITEMS[1:3], "tie").tell(ITEMS[3:5], 1)
    assert made.ask().shape == (2, 2)

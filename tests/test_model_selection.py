"""Splitters that keep items apart."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score

from skpref.metrics import accuracy_scorer, log_loss_scorer
from skpref.model_selection import ItemKFold, ItemShuffleSplit, item_components

pd = pytest.importorskip("pandas")

N_ITEMS = 12
PAIRS = np.array([[i, j] for i in range(N_ITEMS) for j in range(N_ITEMS) if i != j])
ITEMS = np.random.default_rng(0).normal(size=(N_ITEMS, 3))
NAMES = np.array([f"item {i:02d}" for i in range(N_ITEMS)], dtype=object)
SPLITTERS = [
    ItemKFold(3, integers="positions"),
    ItemKFold(4, shuffle=True, random_state=0, integers="positions"),
    ItemShuffleSplit(5, test_size=0.4, random_state=0, integers="positions"),
    ItemShuffleSplit(5, test_size=4, random_state=0, integers="positions"),
]


class DifferenceModel(RegressorMixin, BaseEstimator):
    """Logistic regression on differences of features, as a stand-in for an estimator."""

    def __init__(self, C=1.0):
        self.C = C

    def fit(self, X, y):
        self.model_ = LogisticRegression(C=self.C, fit_intercept=False)
        self.model_.fit(X[:, 0] - X[:, 1], y)
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X[:, 0] - X[:, 1])


class Memory(RegressorMixin, BaseEstimator):
    """Remembers how often each item won, and knows nothing of the others."""

    def fit(self, X, y):
        self.wins_ = {}
        for (a, b), won in zip(X.tolist(), y, strict=True):
            for item, gain in ((a, 2 * won - 1), (b, 1 - 2 * won)):
                self.wins_[tuple(item)] = self.wins_.get(tuple(item), 0) + gain
        return self

    def predict_proba(self, X):
        wins = np.array([[self.wins_.get(tuple(x), 0) for x in pair] for pair in X.tolist()])
        p = 0.5 + 0.4 * np.sign(wins[:, 0] - wins[:, 1])
        return np.column_stack([1 - p, p])


# --- what is kept apart


@pytest.mark.parametrize("cv", SPLITTERS, ids=repr)
def test_no_item_is_on_both_sides(cv):
    n = 0
    for train, test in cv.split(PAIRS):
        n += 1
        assert not set(PAIRS[train].ravel()) & set(PAIRS[test].ravel())
        held_out = set(PAIRS[test].ravel())
        inside = [set(pair) <= held_out for pair in PAIRS.tolist()]
        assert np.array_equal(test, np.flatnonzero(inside))
    assert n == cv.get_n_splits(PAIRS)


@pytest.mark.parametrize("cv", SPLITTERS, ids=repr)
def test_mixed_duels_can_be_tested(cv):
    for (train, test), (same, inside) in zip(
        clone_with(cv, mixed="test").split(PAIRS), cv.split(PAIRS), strict=True
    ):
        assert np.array_equal(np.sort(np.r_[train, test]), np.arange(len(PAIRS)))
        assert np.array_equal(train, same)
        assert set(inside) < set(test)
        seen = set(PAIRS[train].ravel())
        assert not any(set(pair) <= seen for pair in PAIRS[test].tolist())


def clone_with(cv, **changes):
    return type(cv)(**{**vars(cv), **changes})


@pytest.mark.parametrize("shuffle", [False, True])
def test_folds_share_the_items_out(shuffle):
    cv = ItemKFold(5, shuffle=shuffle, random_state=1 if shuffle else None, integers="positions")
    held_out = [set(PAIRS[test].ravel()) for _, test in cv.split(PAIRS)]
    assert sorted(map(len, held_out)) == [2, 2, 2, 3, 3]
    assert set.union(*held_out) == set(range(N_ITEMS))


def test_leave_one_item_out():
    tested = [
        test for _, test in ItemKFold(N_ITEMS, mixed="test", integers="positions").split(PAIRS)
    ]
    for item, test in enumerate(tested):
        assert np.array_equal(test, np.flatnonzero((item == PAIRS).any(axis=1)))


# --- the forms of X


@pytest.mark.parametrize(
    "X",
    [ITEMS[PAIRS], NAMES[PAIRS], NAMES[PAIRS].astype(str), PAIRS.tolist(), ITEMS[PAIRS].tolist()],
    ids=["arrays", "texts", "str", "list of positions", "nested list"],
)
@pytest.mark.parametrize("cv", SPLITTERS, ids=repr)
def test_every_form_of_duels_is_split_by_items(X, cv):
    for train, test in cv.split(X):
        assert not set(PAIRS[train].ravel()) & set(PAIRS[test].ravel())


def test_texts_in_the_order_of_positions_are_split_alike():
    cv = ItemKFold(3, integers="positions")
    for one, other in zip(cv.split(PAIRS), cv.split(NAMES[PAIRS]), strict=True):
        assert np.array_equal(one[0], other[0])
        assert np.array_equal(one[1], other[1])


@pytest.mark.parametrize("frame", [False, True])
def test_rated_items_keep_equal_rows_together(frame):
    rows = np.random.default_rng(1).integers(0, 10, 60)
    X = pd.DataFrame(ITEMS[rows]) if frame else ITEMS[rows]
    tested = []
    for train, test in ItemKFold(3).split(X):
        assert not set(rows[train]) & set(rows[test])
        tested.append(test)
    assert np.array_equal(np.sort(np.concatenate(tested)), np.arange(60))


def test_folds_ignore_the_order_of_rows():
    order = np.random.default_rng(2).permutation(len(PAIRS))
    X = ITEMS[PAIRS]
    for cv in SPLITTERS:
        for (_, test), (_, moved) in zip(cv.split(X), cv.split(X[order]), strict=True):
            assert np.array_equal(np.sort(order[moved]), test)


def test_seeds_repeat_and_differ():
    def tests(cv):
        return [test.tolist() for _, test in cv.split(PAIRS)]

    for make in (
        lambda seed: ItemKFold(3, shuffle=True, random_state=seed, integers="positions"),
        lambda seed: ItemShuffleSplit(3, random_state=seed, integers="positions"),
    ):
        cv = make(0)
        assert tests(cv) == tests(cv) == tests(make(0)) != tests(make(1))


# --- in use


@pytest.mark.parametrize("cv", SPLITTERS, ids=repr)
def test_cross_val_score_and_grid_search_take_them(cv):
    utility = ITEMS @ [2.0, -1.0, 0.5]
    X, y = ITEMS[PAIRS], (utility[PAIRS[:, 0]] > utility[PAIRS[:, 1]]).astype(int)
    scores = cross_val_score(DifferenceModel(), X, y, cv=cv, scoring=log_loss_scorer)
    assert len(scores) == cv.get_n_splits()
    assert scores.mean() > -0.5  # better than guessing, whose score is -0.69
    search = GridSearchCV(
        DifferenceModel(), {"C": [1e-6, 10.0]}, cv=cv, scoring=log_loss_scorer
    ).fit(X, y)
    assert search.best_params_ == {"C": 10.0}


def test_memory_of_items_leaks_across_random_folds_alone():
    utility = np.random.default_rng(3).normal(size=N_ITEMS)
    X, y = ITEMS[PAIRS], (utility[PAIRS[:, 0]] > utility[PAIRS[:, 1]]).astype(int)
    kfold = KFold(4, shuffle=True, random_state=0)
    leaky = cross_val_score(Memory(), X, y, cv=kfold, scoring=accuracy_scorer)
    honest = cross_val_score(Memory(), X, y, cv=ItemKFold(4), scoring=accuracy_scorer)
    assert leaky.mean() > 0.9
    assert np.all(honest == 0.5)


# --- components


def test_components_share_no_item():
    pairs = np.array([[5, 6], [0, 1], [2, 3], [1, 4], [6, 7], [3, 3]])
    assert item_components(pairs, integers="positions").tolist() == [0, 1, 2, 1, 0, 2]
    items = np.random.default_rng(0).normal(size=(8, 2))
    names = np.array(list("abcdefgh"))
    for X in (items[pairs], names[pairs], pairs.tolist()):
        assert item_components(X, integers="positions").tolist() == [0, 1, 2, 1, 0, 2]
    assert item_components(items[[0, 1, 0]]).tolist() == [0, 1, 0]


def test_components_serve_as_groups():
    respondent = np.repeat(np.arange(10), 6)
    pairs = 4 * respondent[:, None] + np.random.default_rng(0).integers(0, 4, (60, 2))
    groups = item_components(pairs, integers="positions")
    for train, test in GroupKFold(3).split(pairs, groups=groups):
        assert len(train) + len(test) == 60
        assert not set(pairs[train].ravel()) & set(pairs[test].ravel())


# --- manners and bad input


def test_splitters_print_and_clone_their_settings():
    assert "mixed='test'" in repr(ItemKFold(3, mixed="test"))
    assert "test_size=0.3" in repr(ItemShuffleSplit())
    assert vars(clone(ItemKFold(7), safe=False)) == vars(ItemKFold(7))


@pytest.mark.parametrize(
    "cv, X, match",
    [
        (
            ItemKFold(13, integers="positions"),
            PAIRS,
            "13 folds need as many distinct items; there are 12",
        ),
        (
            ItemKFold(12, integers="positions"),
            PAIRS,
            'mixed="test", or use GroupKFold with item_components',
        ),
        (
            ItemKFold(2, mixed="test", integers="positions"),
            np.array([[0, 1], [1, 0]]),
            "0 rows to train on and 2 to",
        ),
        (ItemKFold(1, integers="positions"), PAIRS, "at least 2"),
        (ItemKFold(2.0, integers="positions"), PAIRS, "at least 2"),
        (ItemKFold(3, random_state=0, integers="positions"), PAIRS, "no effect without shuffle"),
        (ItemKFold(3, mixed="keep", integers="positions"), PAIRS, '"drop" or "test"'),
        (ItemShuffleSplit(0, integers="positions"), PAIRS, "positive integer"),
        (ItemShuffleSplit(test_size=0.0, integers="positions"), PAIRS, "give a share"),
        (ItemShuffleSplit(test_size=1.0, integers="positions"), PAIRS, "give a share"),
        (ItemShuffleSplit(test_size=-0.5, integers="positions"), PAIRS, "give a share"),
        (ItemShuffleSplit(test_size=12, integers="positions"), PAIRS, "holds out 12 of 12 items"),
        (ItemShuffleSplit(test_size=1, integers="positions"), PAIRS, "0 to test on"),
        (ItemShuffleSplit(mixed=None, integers="positions"), PAIRS, '"drop" or "test"'),
        (ItemKFold(3), np.zeros((4, 1, 2)), "n_duels, 2, n_features"),
        (ItemKFold(3), csr_array(np.eye(4)), "as a dense array"),
        (ItemKFold(3), np.arange(4.0), "holds neither duels"),
        (ItemKFold(3), np.zeros((0, 2, 3)), "holds no duel and no item"),
    ],
)
def test_splitters_refuse(cv, X, match):
    with pytest.raises(ValueError, match=match):
        list(cv.split(X))

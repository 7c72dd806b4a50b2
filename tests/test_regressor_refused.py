"""A fit that is refused changes nothing: the model goes on as fitted before."""

import joblib
import numpy as np
import pytest
from inputs_support import ITEMS, NAMED, PAIRS, QID, RATINGS, TABLE, WON, X, Y, cases, model, put
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF

from skpref.inference import EP

# Validation sets these two before it is through with the rest.
NOT_KEPT: set = set()


def state(estimator):
    kept = vars(estimator).keys() - NOT_KEPT
    return {name: joblib.hash(getattr(estimator, name)) for name in kept}


def check_refused(fitted, data, error=(ValueError, TypeError), match=None, **changed):
    before = state(fitted)
    kept = {name: getattr(fitted, name) for name in changed}
    with pytest.raises(error, match=match):
        fitted.set_params(**changed).fit(*data[:2], **data[2] if len(data) > 2 else {})
    fitted.set_params(**kept)
    after = state(fitted)
    assert {name for name in before | after if before.get(name) != after.get(name)} == set()


DUELS, RATED, BY_POSITION = (X, Y), (ITEMS, RATINGS, {"qid": QID}), (PAIRS, WON)
EARLIER = {
    "duels": (DUELS, {}),
    "rated items": (RATED, {}),
    "pairs": (BY_POSITION, {"items": TABLE}),
    "nothing": (None, {}),
}
WIDE = np.concatenate([X, X], axis=2)


@pytest.fixture(params=EARLIER, ids=EARLIER)
def fitted(request):
    data, params = EARLIER[request.param]
    made = model(**params)
    return made if data is None else made.fit(*data[:2], **data[2] if len(data) > 2 else {})


@cases(
    "data",
    ("nan", (put(X, (3, 0, 1), np.nan), Y)),
    ("infinity", (put(X, (3, 0, 1), np.inf), Y)),
    ("text", (put(X, (3, 0, 1), "many"), Y)),
    ("three items a duel", (np.zeros((5, 3, 2)), None)),
    ("no duels", (np.zeros((0, 2, 2)), None)),
    ("no features", (np.zeros((4, 2, 0)), None)),
    ("four dimensions", (X[None], Y)),
    ("one dimension", (X.ravel(), Y)),
    ("one number", (3.0, None)),
    ("nan of another width", (put(WIDE, (3, 0, 1), np.nan), Y)),
    ("unknown labels", (X, Y + 3)),
    ("labels of text", (X, np.where(Y, "a", "b"))),
    ("too few labels", (X, Y[:-1])),
    ("another width, too few labels", (WIDE, Y[:-1])),
    ("another width, unknown labels", (WIDE, Y + 3)),
    ("groups of duels", (X, Y, {"qid": np.zeros(20)})),
    ("no ratings", (ITEMS, None)),
    ("one rating", (ITEMS, np.ones(8))),
    ("one rating, another width", (np.hstack([ITEMS, ITEMS]), np.ones(8))),
    ("ratings of NaN", (ITEMS, put(RATINGS, 2, np.nan))),
    ("too few groups", (ITEMS, RATINGS, {"qid": QID[:-1]})),
    ("one item a group", (ITEMS, RATINGS, {"qid": np.arange(8)})),
)
def test_refused_data_change_nothing(fitted, data):
    check_refused(fitted, data)


@cases(
    "changed",
    ("noise", {"noise_variance": -1.0}),
    ("bounds", {"noise_variance_bounds": (2.0, 1.0), "optimizer": "fmin_l_bfgs_b"}),
    ("engine", {"inference": "vi"}),
    ("option of the engine", {"inference": EP(damping=2.0)}),
    ("kernel", {"kernel": "rbf"}),
    ("kernel of another width", {"kernel": RBF([1.0, 1.0, 1.0])}),
    ("optimizer", {"optimizer": "adam"}),
    ("optimizer's answer", {"optimizer": lambda obj_func, initial_theta, bounds: None}),
    ("restarts", {"n_restarts_optimizer": -1, "optimizer": "fmin_l_bfgs_b"}),
    ("prior", {"lengthscale_prior": "gamma", "optimizer": "fmin_l_bfgs_b"}),
    ("items", {"items": [[np.nan, 1.0]]}),
    ("random_state", {"random_state": "seed"}),
)
@pytest.mark.parametrize("data", [DUELS, (WIDE, Y)], ids=["same", "another width"])
def test_refused_parameters_change_nothing(fitted, data, changed):
    check_refused(fitted, data, **changed)


@cases(
    "pairs",
    ("out of range", [[0, 6]]),
    ("negative", [[0, -1]]),
    ("three columns", [[0, 1, 2]]),
    ("floats", [[0.5, 1.0]]),
    ("empty", np.zeros((0, 2), dtype=int)),
)
@pytest.mark.parametrize("table", [TABLE, NAMED], ids=["features", "names"])
def test_refused_pairs_change_nothing(pairs, table):
    fitted = model(items=table).fit(PAIRS, WON)
    check_refused(fitted, (pairs, None))


def test_a_kernel_that_breaks_while_fitting_changes_nothing(fitted):
    class Broken(RBF):
        def __call__(self, X, Y=None, eval_gradient=False):
            raise RuntimeError("broken")

    check_refused(fitted, DUELS, RuntimeError, "broken", kernel=Broken())
    if fitted.items is None:
        check_refused(fitted, (WIDE, Y), RuntimeError, "broken", kernel=Broken())


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
def test_a_warning_turned_into_an_error_changes_nothing(fitted):
    check_refused(fitted, DUELS, ConvergenceWarning, inference=EP(max_iter=1))
    if fitted.items is None:
        check_refused(fitted, (WIDE, Y), ConvergenceWarning, inference=EP(max_iter=1))


@cases(
    "change",
    ("one column missing", lambda frame: frame[["price"]]),
    ("a column of text", lambda frame: frame.assign(price="much")),
    ("a missing value", lambda frame: frame.assign(price=[None, *frame["price"][1:]])),
    ("other names, one rating", lambda frame: frame.set_axis(["a", "b"], axis=1)),
)
def test_refused_frames_change_nothing(change):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ITEMS, columns=["price", "weight"])
    fitted = model().fit(frame, RATINGS)
    data = change(frame)
    check_refused(fitted, (data, np.ones(8)))
    fitted = model().fit(X, Y)
    check_refused(fitted, (data, np.ones(8)))

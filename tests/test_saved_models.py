"""Fitted models in files: of plain arrays, read by another process; of skops; of older versions."""

import inspect
import io
import json
import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import saved_support
from matrix import FACTORS, Case, refusals
from matrix_support import fitted, predictions
from numpy.testing import assert_array_equal
from saved_support import GAMES, MODELS, NAMES, TABLE, WHO, X, Y, answers, largest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import kernels as shipped
from sklearn.gaussian_process.kernels import RBF, Kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tiers_support import thinned

import skpref
from skpref import (
    CollaborativePreferenceRegressor,
    PairwisePreferenceRegressor,
    Posterior,
    PosteriorMixture,
    PreferenceOptimizer,
)
from skpref._utils import serializable_types
from skpref.inference import EP
from skpref.io import SKOPS_TRUSTED
from skpref.likelihoods import JudgeReliability, Likelihood, Probit
from skpref.preprocessing import Itemwise

HERE = Path(__file__).resolve().parent
OLDER = sorted((HERE / "saved").glob("*/*.pickle"))


def is_many(name):
    return "user" in name


@pytest.fixture(scope="module")
def models():
    return {name: fit() for name, fit in MODELS.items()}


def again(model):
    return type(model).from_arrays(model.to_arrays())


# -- arrays ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_another_process_says_the_same(models, tmp_path):
    for name, model in models.items():
        np.savez(tmp_path / f"{name}.npz", **model.to_arrays())
        with open(tmp_path / f"{name}.said", "wb") as file:
            np.savez(file, *answers(name, model))
    command = [sys.executable, str(HERE / "saved_support.py"), str(tmp_path)]
    roots = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    ran = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": roots}
    )
    assert ran.returncode == 0, ran.stderr
    off = json.loads(ran.stdout)
    assert off.keys() == models.keys()
    assert max(off.values()) < 1e-12, off


@pytest.mark.filterwarnings("ignore")  # of chains and minibatches that are short
@pytest.mark.parametrize(
    "engine",
    [
        pytest.param(name, marks=pytest.mark.slow if name == "gibbs" else ())
        for name in FACTORS["engine"]
    ],
)
def test_every_engine_with_every_kind_of_answer(engine):
    for kind in FACTORS["answers"]:
        learned = engine == "auto" and kind == FACTORS["answers"][0]
        case = Case(engine, kind, learning="learned" if learned else "fixed")
        if refusals(case):
            continue
        model = fitted(case)
        for said, truth in zip(
            predictions(case, again(model)), predictions(case, model), strict=True
        ):
            assert_array_equal(said, truth)


@pytest.mark.parametrize("name", thinned(MODELS))
def test_posteriors_go_alone(models, name):
    posterior = models[name].posterior_
    kind = skpref.collaborative.CollaborativePosterior if is_many(name) else Posterior
    if name == "one user":
        kind = Posterior
    if name == "judges":  # few of them, who leave several readings open
        kind = PosteriorMixture
    copy = kind.from_arrays(posterior.to_arrays())
    assert type(copy) is type(posterior)
    anchors = posterior.anchors[:5, : posterior.reader.n_columns]  # judges have further columns
    assert_array_equal(copy.mean(anchors), posterior.mean(anchors))
    assert_array_equal(copy.cov(anchors), posterior.cov(anchors))


@pytest.mark.parametrize("inference", ["auto", "hmc"])
def test_posteriors_of_optimizers_go_alone(inference):
    optimizer = PreferenceOptimizer(candidates=TABLE, inference=inference, random_state=0)
    optimizer.run(lambda a, b: a < b, 5)
    posterior = optimizer.posterior_
    copy = Posterior.from_arrays(posterior.to_arrays())
    assert_array_equal(copy.mean(NAMES), posterior.mean(NAMES))
    assert_array_equal(copy.sample(NAMES, 3, 0), posterior.sample(NAMES, 3, 0))


@pytest.mark.parametrize("name", MODELS)
def test_arrays_need_no_pickle_and_hold_all(models, name):
    model = models[name]
    arrays = model.to_arrays()
    assert all(type(each) is np.ndarray and each.dtype.kind in "biufMU" for each in arrays.values())
    copy = type(model).from_arrays(arrays)
    assert vars(copy).keys() == vars(model).keys()
    for key, value in copy.to_arrays().items():  # the copy of the copy
        assert_array_equal(value, arrays[key])
        assert value.size == 0 or key == "document" or not np.shares_memory(value, arrays[key])
    clone(copy)


class Named(pickle.Unpickler):
    """Reads a pickle and keeps the classes and functions of the package that it names."""

    def __init__(self, written):
        super().__init__(io.BytesIO(written))
        self.names = set()

    def find_class(self, module, name):
        each = super().find_class(module, name)
        if module.partition(".")[0] == "skpref" or (
            isinstance(each, type) and issubclass(each, Kernel)
        ):
            self.names.add(each)
        return each


def named_in(model):
    reader = Named(pickle.dumps(model))
    reader.load()
    return reader.names


@pytest.mark.parametrize("name", MODELS)
def test_files_may_name_all_that_a_model_holds(models, name):
    """As pickle finds what it holds."""
    assert named_in(models[name]) <= {*serializable_types().values()}


ROOMS = (skpref.kernels, shipped), (skpref.inference,), (skpref.likelihoods,)
BASES = {"kernel": Kernel, "inference": skpref.inference.Engine, "likelihood": Likelihood}
PARTS = [
    (parameter, part)
    for (parameter, base), rooms in zip(BASES.items(), ROOMS, strict=True)
    for part in {id(part): part for room in rooms for part in vars(room).values()}.values()
    if isinstance(part, type) and issubclass(part, base) and not inspect.isabstract(part)
]
# What those need that have no defaults.
NEEDED = {
    **dict.fromkeys(("kernel", "k1", "k2"), RBF(0.7)),
    "kernels": [RBF(0.7), RBF(2.0)],
    "exponent": 2.0,
    "columns": [1],
    "n_columns": 2,
    "fill": [],
    "members": [[0], [1]],
    "starts": [0.5],
    "anchors": np.array([[0.2, 0.7], [0.9, 0.1]]),
    "root": np.array([[1.0], [-0.5]]),
    "base": Probit(0.3),
    "reliability": np.array([0.5, -1.0]),
}
# Of these no model of one utility can be made: a kernel of several outputs, one of margins, one of
# what is no utility.
ALONE = (
    shipped.CompoundKernel,
    skpref.kernels.PreferenceKernel,
    skpref.kernels.Intransitive,
    JudgeReliability,
)

OF_ONE_COLUMN = (skpref.kernels.Seasons, skpref.kernels.Wiener, shipped.ExpSineSquared)


@pytest.mark.filterwarnings("ignore")  # of chains that are short
@pytest.mark.parametrize(
    ("parameter", "part"), PARTS, ids=lambda each: getattr(each, "__name__", each)
)
def test_every_part_that_may_be_given_comes_back(parameter, part):
    """Every kernel, engine and likelihood that the rooms have, in a fitted model."""
    required = [
        name
        for name, each in inspect.signature(part).parameters.items()
        if each.default is each.empty
    ]
    made = part(**{name: NEEDED[name] for name in required})
    first = PairwisePreferenceRegressor(kernel=RBF(0.7), optimizer=None, random_state=0)
    shown, params = X[:, :, :1] if part in OF_ONE_COLUMN else X, {parameter: made}
    if part in ALONE:
        first.fit(shown, 2 * Y - 1).set_params(**params)
    else:
        first.set_params(**params).fit(shown, 2 * Y - 1)
    second = again(first)
    assert repr(getattr(second, parameter)) == repr(made)
    assert_array_equal(second.predict(shown[:, 0]), first.predict(shown[:, 0]))
    assert named_in(first) <= {*serializable_types().values()}


def test_learning_goes_on(models):
    model, copy = models["learned"], again(models["learned"])
    theta = model._model.theta + 0.1
    assert copy.log_marginal_likelihood(theta) == model.log_marginal_likelihood(theta)
    stream, other = again(models["stream"]), saved_support._stream(20)
    other = again(other).partial_fit(X[20:], Y[20:])
    assert_array_equal(other.predict(X), stream.predict(X))
    assert_array_equal(clone(copy).fit(X, Y).predict(X), model.predict(X))


def test_a_document_is_readable_by_others(models):
    arrays = models["learned"].to_arrays()
    document = json.loads(bytes(arrays["document"]))
    assert document["format"] == 1 and document["skpref"] == skpref.__version__
    told = document["object"]["posterior_"]
    fitted = models["learned"].posterior_
    assert told["likelihood"]["noise_variance"] == fitted.likelihood.noise_variance

    def kernel(told, a, b):
        """The kernel by another program's own hands."""
        kind = told["class"]
        if kind in ("sklearn.Sum", "sklearn.Product"):
            one, other = (kernel(told[part], a, b) for part in ("k1", "k2"))
            return one + other if kind.endswith("Sum") else one * other
        if kind == "sklearn.ConstantKernel":
            return told["constant_value"]
        off = a[:, None] - b
        if kind == "kernels.ItemEffect":
            return np.all(off == 0.0, axis=2).astype(float)
        assert kind == "sklearn.RBF"
        length = told["length_scale"]
        length = arrays[length["array"]] if isinstance(length, dict) else length
        return np.exp(-0.5 * np.sum((off / length) ** 2, axis=2))

    anchors, weights = (arrays[told[name]["array"]] for name in ("anchors", "weights"))
    rows = np.linspace(-1.0, 1.0, 8).reshape(4, 2)
    found = kernel(told["kernel"], rows, anchors) @ weights
    np.testing.assert_allclose(found.mean(axis=1), fitted.mean(rows), rtol=1e-9)


def test_tables_and_names_come_back(models):
    copy = again(models["table"])
    assert copy.items.frame.equals(TABLE.frame)
    assert copy.items.names.tolist() == NAMES.tolist()
    assert not copy.items.X.flags.writeable
    assert again(models["users"]).users_.tolist() == list(dict.fromkeys(WHO.tolist()))
    odd = [("a", 1), 3, 2.5, True]
    model = CollaborativePreferenceRegressor(**saved_support.FIXED)
    model.fit(X, Y, users=[odd[i % 4] for i in range(len(Y))])
    assert again(model).users_.tolist() == odd


class Own(RBF):
    """A user's kernel."""


class OwnProbit(Probit):
    """A user's likelihood."""


class OwnEngine(EP):
    """A user's engine."""


class Id:
    """A hashable thing."""


def flat(obj_func, initial_theta, bounds):
    return initial_theta, obj_func(initial_theta)[0]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"kernel": Own() + RBF()}, r"kernel\.k1 is a Own.*kernels of scikit-learn and.*pickle"),
        ({"likelihood": OwnProbit()}, r"likelihood is a OwnProbit.*pickle"),
        ({"inference": OwnEngine()}, r"inference is a OwnEngine.*pickle"),
        ({"random_state": np.random.RandomState(0)}, r"random_state.*set_params\(random_state=0\)"),
        ({"optimizer": flat}, r"optimizer is a function.*set the parameter to None"),
    ],
)
def test_what_has_no_name_is_refused(params, message):
    model = PairwisePreferenceRegressor(**{"optimizer": None} | params).fit(X, Y)
    with pytest.raises(ValueError, match=message):
        model.to_arrays()
    for name in ("random_state", "optimizer"):
        if name in params:
            assert_array_equal(again(model.set_params(**{name: None})).predict(X), model.predict(X))


def test_odd_ids_and_unfitted_models_are_refused():
    judged = PairwisePreferenceRegressor(**saved_support.FIXED)
    judged.fit(X[:4], Y[:4], judges=[Id()] * 4)
    with pytest.raises(ValueError, match=r"judges_\..*is a Id.*texts, numbers"):
        judged.to_arrays()
    with pytest.raises(NotFittedError):
        PairwisePreferenceRegressor().to_arrays()


def test_what_is_no_file_of_a_model_is_refused(models):
    read = PairwisePreferenceRegressor.from_arrays
    with pytest.raises(
        ValueError, match=r"incomplete or not of.*KeyError: 'document'.*numpy\.load"
    ):
        read({"weights": np.ones(3)})
    with pytest.raises(ValueError, match=r"incomplete or not of a form.*JSON"):
        read({"document": np.arange(3)})
    with pytest.raises(TypeError, match=r"hold a Posterior.*Posterior\.from_arrays"):
        read(models["learned"].posterior_.to_arrays())
    arrays = models["learned"].to_arrays()
    missing = {key: each for key, each in arrays.items() if key != "posterior_.factor"}
    with pytest.raises(ValueError, match=r"incomplete.*posterior_\.factor"):
        read(missing)

    def changed(old, new):
        text = bytes(arrays["document"]).replace(old, new)
        return arrays | {"document": np.frombuffer(text, np.uint8)}

    with pytest.raises(ValueError, match=r"by skpref 1.*format 2, where 1 is the newest.*earlier"):
        read(changed(b'"format": 1', b'"format": 2'))
    with pytest.raises(ValueError, match=r"incomplete or not of a form.*os\.system"):
        read(changed(b'"gp.Posterior"', b'"os.system"'))


def parts(told):
    """Every container of a document with a key in it."""
    pairs = told.items() if isinstance(told, dict) else enumerate(told)
    for key, part in pairs:
        yield told, key
        if isinstance(part, dict | list):
            yield from parts(part)


def changed_at_random(arrays, classes, rng):
    """The same arrays with one to three changes: of a value, a class, an array, or a byte."""
    arrays, told = dict(arrays), json.loads(bytes(arrays["document"]))
    keys = [key for key in arrays if key != "document"]
    odd = [None, -1, 2**63, "x", [], {}, {"array": "no"}, {"pairs": [[[], 1]]}, {"set": [[1]]}]
    odd += [{"objects": [1], "shape": [10**12]}, {"class": "os.system"}, {"number": "x"}]
    for _ in range(rng.integers(1, 4)):
        places = [*parts(told)]
        held, key = places[rng.integers(len(places))]
        where = rng.integers(5)
        if where == 0:
            held[key] = odd[rng.integers(len(odd))]
        elif where == 1:
            held[key] = {"class": classes[rng.integers(len(classes))]}
        elif where == 2:
            other, name = places[rng.integers(len(places))]
            held[key] = json.loads(json.dumps(other[name]))
        elif where == 3:
            array = arrays[keys[rng.integers(len(keys))]]
            forms = [array.astype(str), array.astype(object), array.ravel()[:1], np.array("x")]
            arrays[keys[rng.integers(len(keys))]] = forms[rng.integers(4)]
        else:
            del held[key]
    text = bytearray(json.dumps(told).encode())
    if rng.random() < 0.2:
        text[rng.integers(len(text))] = rng.integers(256)
    return arrays | {"document": np.frombuffer(bytes(text), np.uint8)}


@pytest.mark.parametrize("name", ["told later", "judges", "table", "users"])
def test_changed_documents_give_a_model_or_one_error(models, name):
    model, rng = models[name], np.random.default_rng(0)
    arrays = model.to_arrays()
    classes = sorted(
        told[key]["class"]
        for told, key in parts(json.loads(bytes(arrays["document"])))
        if isinstance(told[key], dict) and "class" in told[key]
    )
    refused = 0
    for _ in range(60):
        damaged = changed_at_random(arrays, classes, rng)
        try:
            assert type(type(model).from_arrays(damaged)) is type(model)
        except ValueError as error:
            refused += 1
            assert "array" in str(error) or "format" in str(error)
    assert refused > 20


def set_in(document, path, value):
    """Replace the part of a document at a dotted path; None deletes it."""
    *above, last = path.split(".")
    for key in above:
        document = document[key]
    if value is None:
        del document[last]
    else:
        document[last] = value


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("posterior_", None),
        ("posterior_", 3.5),
        ("posterior_.kernel", 3.5),
        ("posterior_.kernel", {"pairs": []}),
        ("posterior_.likelihood.noise_variance", "x"),
        ("posterior_.likelihood.noise_variance", []),
        ("posterior_.likelihood.noise_variance", {"number": "nan"}),
        ("posterior_.likelihood.order_effect", "x"),
        ("posterior_.likelihood.order_effect", []),
        ("posterior_.likelihood.tie_threshold", {"tuple": []}),
        ("posterior_.reader.table.has_features", None),
        ("_fit_metadata", 3.5),
    ],
    ids=str,
)
def test_documents_that_give_no_predictions_are_refused_at_reading(models, path, value):
    arrays = models["table"].to_arrays()
    document = json.loads(bytes(arrays["document"]))
    set_in(document["object"], path, value)
    damaged = arrays | {"document": np.frombuffer(json.dumps(document).encode(), np.uint8)}
    with pytest.raises(ValueError, match=r"incomplete or not of a form"):
        type(models["table"]).from_arrays(damaged)


DAMAGES = {
    "short": lambda array: array[:-1],
    "long": lambda array: np.concatenate([array, array]),
    "flat": np.ravel,
    "one number": lambda array: np.float64(1.0),
    "deeper": lambda array: array[None],
    "empty": lambda array: array[:0],
    "nan": lambda array: np.nan * array,
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["anchors", "weights", "factor"])
def test_arrays_that_do_not_go_together_are_refused_at_reading(models, name, damage):
    arrays = models["table"].to_arrays()
    key = f"posterior_.{name}"
    with pytest.raises(ValueError, match=r"incomplete or not of a form"):
        type(models["table"]).from_arrays(arrays | {key: DAMAGES[damage](arrays[key])})


@pytest.mark.parametrize("name", ["users", "users by features", "users by vb"])
def test_arrays_of_users_that_do_not_go_together_are_refused_at_reading(models, name):
    arrays, read = models[name].to_arrays(), type(models[name]).from_arrays
    of_tastes = [key for key in arrays if key.startswith(("posterior_.", "_people."))]
    for key in of_tastes:
        array = arrays[key]
        forms = [
            change(array) for label, change in DAMAGES.items() if array.ndim > 1 or label != "flat"
        ]
        if array.size:
            forms.append(array.copy())
            forms[-1].flat[array.size // 2] = np.nan
        for form in forms:
            if form.shape == array.shape and np.array_equal(form, array, equal_nan=True):
                continue  # an empty array
            with pytest.raises(ValueError, match=r"incomplete or not of a form"):
                read(arrays | {key: form})


@pytest.mark.parametrize(
    "key", ["judges_.marginals.points", "judges_.weights", "judges_.n_answers", "classes_"]
)
def test_arrays_of_judges_that_do_not_go_together_are_refused_at_reading(models, key):
    arrays, read = models["judges"].to_arrays(), type(models["judges"]).from_arrays
    for label in ("short", "long", "one number", "deeper", "nan"):
        if key == "classes_" and label != "one number":
            continue
        with pytest.raises(ValueError, match=r"incomplete or not of a form"):
            read(arrays | {key: DAMAGES[label](arrays[key])})


# -- pickles, and versions -------------------------------------------------------------------------


@pytest.mark.parametrize("path", OLDER, ids=lambda path: f"{path.parent.name} {path.stem}")
def test_models_of_older_versions_are_read(path):
    name, version = path.stem.replace("_", " "), path.parent.name
    written = (path.parent / "versions.txt").read_text(encoding="utf-8")
    numpy = next(line.partition("==")[2] for line in written.splitlines() if "numpy" in line)
    if tuple(map(int, numpy.split(".")[:2])) > tuple(map(int, np.__version__.split(".")[:2])):
        pytest.skip(f"pickled by numpy {numpy}, which is newer than {np.__version__}")
    with np.load(path.with_name(f"{path.stem}_said.npz")) as file:
        said = [file[key] for key in file.files]
    with np.load(path.with_suffix(".npz")) as arrays:
        kind = CollaborativePreferenceRegressor if is_many(name) else PairwisePreferenceRegressor
        told = kind.from_arrays(arrays)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pickled = pickle.loads(path.read_bytes())
    told_version = any(f"that skpref {version} wrote" in str(each.message) for each in caught)
    assert told_version == (version != skpref.__version__)
    # Another library of linear algebra rounds otherwise.
    assert largest(answers(name, told, draws=False), said) < 1e-7
    assert largest(answers(name, pickled, draws=False), said) < 1e-7


def test_some_older_models_are_kept():
    assert len(OLDER) >= 7


def test_a_pickle_of_another_version_warns(models, monkeypatch):
    written, version = pickle.dumps(models["names"]), skpref.__version__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same = pickle.loads(written)
    assert "_skpref_version" not in vars(same)
    monkeypatch.setattr(skpref, "__version__", "99.1")
    with pytest.warns(UserWarning, match=rf"skpref {version} wrote.*skpref 99\.1.*from_ar"):
        other = pickle.loads(written)
    assert_array_equal(other.predict(GAMES), same.predict(GAMES))


# -- skops -----------------------------------------------------------------------------------------


def test_skops_reads_pipelines():
    io = pytest.importorskip("skops.io")
    model = make_pipeline(Itemwise(StandardScaler()), PairwisePreferenceRegressor(optimizer=None))
    written = io.dumps(model.fit(X, Y))
    assert_array_equal(
        io.loads(written, trusted=SKOPS_TRUSTED).predict_proba(X), model.predict_proba(X)
    )


@pytest.mark.parametrize("name", thinned(MODELS))
def test_skops_reads_what_is_trusted(models, name):
    io = pytest.importorskip("skops.io")
    model = models[name]
    if name == "table":  # of a DataFrame, which skops does not know
        return
    written = io.dumps(model)
    assert set(io.get_untrusted_types(data=written)) <= set(SKOPS_TRUSTED)
    copy = io.loads(written, trusted=SKOPS_TRUSTED)
    assert largest(answers(name, copy), answers(name, model)) < 1e-12

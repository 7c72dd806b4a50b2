"""Arguments of an optimizer: what is refused, and what makes a run's description."""

import json

import numpy as np
import pytest
from scipy import stats
from sklearn.gaussian_process.kernels import RBF, CompoundKernel, ConstantKernel

from skpref.inference import EP
from skpref.likelihoods import Probit, probit
from skpref.optimize import HallucinationBelieverOptimizer, PreferenceOptimizer
from skpref.optimize._configuration import describe
from skpref.optimize._spaces import make_space

TABLE = np.histogram([1.0, 2.0, 2.5, 4.0], bins=3)
SQUARE = [[-5.0, 10.0], [0.0, 15.0]]


def optimizer(**options):
    return HallucinationBelieverOptimizer(SQUARE, random_state=0, **options)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"acquisition": "best"}, ValueError, "acquisition must be one of"),
        ({"incumbent": "best"}, ValueError, "incumbent must be one of"),
        ({"noise_variance": "guess"}, TypeError, "noise_variance must be"),
        ({"noise_variance": 0.0}, ValueError, "noise_variance must lie in"),
        ({"noise_variance": np.inf}, ValueError, "noise_variance must lie in"),
        ({"noise_variance_bounds": "held"}, ValueError, "noise_variance_bounds must be 'fixed'"),
        ({"noise_variance_bounds": (1.0, 0.1)}, ValueError, "0 < low <= high"),
        (
            {"tie_threshold": None, "tie_threshold_bounds": "fixed"},
            ValueError,
            "exclude each other",
        ),
        ({"kernel": CompoundKernel([RBF(), RBF()])}, TypeError, "one covariance matrix"),
        ({"kernel": "rbf"}, TypeError, "kernel must be None or a kernel"),
        ({"incumbent": "joint", "acquisition": "thompson"}, ValueError, "'joint' needs an acq"),
        ({"kernel": RBF([1.0, 1.0, 1.0])}, ValueError, "does not take items of 2 features"),
        ({"n_initial": -1}, ValueError, "n_initial must lie in"),
        ({"refit_every": 0}, ValueError, "refit_every must lie in"),
        ({"lengthscale_prior": "broad"}, ValueError, "'lognormal', None or a pair"),
        ({"noise_prior": "broad"}, ValueError, r"noise_prior must be 'auto', None or a pair \(med"),
        ({"noise_prior": (0.1, 0.0)}, ValueError, "the deviation of noise_prior must lie in"),
        ({"noise_prior": (-1.0, 2.0)}, ValueError, "the median of noise_prior must lie in"),
        (
            {"noise_prior": (0.1, 1.0), "noise_variance_bounds": "fixed"},
            ValueError,
            "noise that is learned, and noise_variance_bounds='fixed' holds it",
        ),
        (
            {"noise_prior": (0.1, 1.0), "likelihood": Probit()},
            ValueError,
            r"got also noise_prior=\(0.1, 1.0\). Leave one",
        ),
        ({"initial_duels": [[[0.0, 1.0], [0.0, 1.0]]]}, ValueError, "two different items"),
        ({"initial_duels": 5}, TypeError, r"shape \(n, 2, d\) or a list of pairs.*got int: 5"),
        ({"initial_duels": {"a": 1}}, TypeError, "or a list of pairs of items, got dict"),
        ({"initial_duels": "ab"}, TypeError, "or a list of pairs of items, got str"),
    ],
)
def test_arguments_are_checked(options, error, message):
    with pytest.raises(error, match=message):
        optimizer(**options)


def test_a_likelihood_has_its_own_ties_and_noise():
    with pytest.raises(
        ValueError, match=r"skpref.likelihoods.probit\(tie_threshold=0.3\), or leave"
    ):
        optimizer(likelihood=Probit(), tie_threshold=0.3)
    with pytest.raises(ValueError, match=r"probit\(grade_thresholds=\(1.0,\)\)"):
        optimizer(likelihood=Probit(), grade_thresholds=(1.0,))
    for likelihood in (probit(tie_threshold=0.3), probit(tie_threshold=0.3, grade_thresholds=(1,))):
        made = optimizer(likelihood=likelihood, n_initial=2)
        made.tell(made.ask(), "tie").tell(made.ask(), 1)
        assert made.posterior_.likelihood.tie_threshold > 0.0


def test_a_believer_is_of_one_inference():
    with pytest.raises(TypeError, match=r"got inference='ep'\. Use PreferenceOptimizer"):
        optimizer(inference="ep")


def test_turns_are_named_once():
    with pytest.raises(ValueError, match=r"of inference \('hmc', 'laplace'\) only one"):
        PreferenceOptimizer(SQUARE, inference=("hmc", "laplace"))


def test_engines_are_checked():
    with pytest.raises(TypeError, match="inference must be 'hallucination'"):
        PreferenceOptimizer(SQUARE, inference=3)
    with pytest.raises(ValueError, match="n must lie in"):
        optimizer().ask(0)


def test_nothing_to_learn_is_fine():
    made = optimizer(
        kernel=RBF(0.3, "fixed"),
        noise_variance=1e-2,
        noise_variance_bounds="fixed",
        n_initial=2,
    )
    made.run(lambda first, second: first[0] > second[0], 5)
    assert made.posterior_.kernel == RBF(0.3, "fixed")
    assert made.posterior_.likelihood.noise_variance == 1e-2


@pytest.mark.slow
def test_a_number_is_where_the_noise_starts_unless_it_is_held():
    def noise(**options):
        made = optimizer(n_initial=2, **options)
        made.run(lambda first, second: first[0] > second[0], 6)
        return made.posterior_.likelihood.noise_variance

    assert noise(noise_variance=0.05, noise_variance_bounds="fixed") == 0.05
    assert noise(noise_variance_bounds="fixed") == pytest.approx(3e-3)
    assert noise() != pytest.approx(3e-3, rel=1e-3)
    for start in (1e-4, 0.05, 0.3):  # six duels say little: the prior's median is near
        assert noise(noise_variance=start) == pytest.approx(2.8e-3, rel=0.1)
    assert 0.2 <= noise(noise_variance=0.25, noise_variance_bounds=(0.2, 0.3)) <= 0.3


def noise_prior(made):
    model = made._session.configuration.models.whole
    (prior,) = [each for each in model.priors if model.noise_index in each.index]
    at = list(prior.index).index(model.noise_index)
    return float(np.exp(prior.centre[at])), float(prior.deviation[at])


def test_the_prior_of_noise_is_broader_where_the_strategy_is_left_open():
    assert noise_prior(PreferenceOptimizer(SQUARE)) == pytest.approx((3e-3, 3.0))
    assert noise_prior(PreferenceOptimizer(SQUARE, tie_threshold=0.1)) == pytest.approx((3e-3, 3.0))
    assert noise_prior(PreferenceOptimizer(SQUARE, acquisition="ei")) == pytest.approx((3e-3, 2.0))
    assert noise_prior(HallucinationBelieverOptimizer(SQUARE)) == pytest.approx((3e-3, 2.0))


def test_the_default_believes_a_judge_who_errs_less_and_one_who_does_not_more():
    pairs = np.random.default_rng(0).random((40, 2, 2))

    def noise(errs, **options):
        made = PreferenceOptimizer(SQUARE, n_initial=2, random_state=0, **options)
        for k, (first, second) in enumerate(pairs):
            made.tell((first, second), (first.sum() > second.sum()) != (errs and k % 8 == 7))
        return made.posterior_.likelihood.noise_variance

    tighter = {"noise_prior": (3e-3, 2.0)}
    assert noise(True) > 1.2 * noise(True, **tighter)
    assert noise(False) < noise(False, **tighter) < 3e-3
    assert noise(True, noise_prior=(0.1, 1.0)) > noise(True)
    assert noise(True, noise_prior=(0.5, 1e-3)) == pytest.approx(0.5, rel=1e-2)
    assert noise(False, noise_prior=None) == pytest.approx(1e-5)  # nothing keeps it off the bound


def test_amplitudes_and_priors_of_ones_own():
    made = optimizer(kernel=ConstantKernel(2.0) * RBF(0.3), lengthscale_prior=(1.0, 0.1))
    made.run(lambda first, second: first[0] > second[0], 8)
    assert 0.5 < made.posterior_.kernel.k2.length_scale < 2.0


def test_a_tight_prior_holds_the_lengthscales():
    made = optimizer(lengthscale_prior=(0.7, 1e-3))
    made.run(lambda first, second: first[0] > second[0], 8)
    np.testing.assert_allclose(made.posterior_.kernel.length_scale, 0.7, rtol=0.01)


def medians(made):
    (prior,) = [each for each in made._session.configuration.models.whole.priors if 0 in each.index]
    return np.exp(prior.centre), prior.deviation


@pytest.mark.parametrize("d", [1, 2, 9])
def test_lengthscales_are_expected_to_grow_with_the_root_of_the_number_of_columns(d):
    box = [(0.0, 1.0)] * d
    found, deviation = medians(PreferenceOptimizer(box))
    np.testing.assert_allclose(found, 0.2 * np.sqrt(d))
    np.testing.assert_array_equal(deviation, np.full(d, 0.75))
    for made in (HallucinationBelieverOptimizer(box), PreferenceOptimizer(box, inference="ep")):
        found, deviation = medians(made)
        np.testing.assert_allclose(found, 0.5)
        np.testing.assert_array_equal(deviation, np.full(d, 0.75))
    kinds = {"x": (0.0, 1.0), "kind": ["a", "b", "c"]}  # four columns
    np.testing.assert_allclose(medians(PreferenceOptimizer(kinds))[0], 0.4)


def test_a_prior_is_the_same_run_however_it_is_given(tmp_path):
    def again(path, **options):
        return PreferenceOptimizer(SQUARE, journal=tmp_path / path, random_state=0, **options)

    again("left.db")
    again("left.db", lengthscale_prior=(0.2 * np.sqrt(2.0), 0.75))
    again("given.db", acquisition="ei")
    again("given.db", acquisition="ei", lengthscale_prior=(0.5, 0.75))
    again("left.db", noise_prior=(3e-3, 3.0))
    again("given.db", acquisition="ei", noise_prior=(3e-3, 2.0))
    with pytest.raises(ValueError, match="another configuration"):
        again("left.db", noise_prior=(3e-3, 2.0))
    with pytest.raises(ValueError, match="another configuration"):
        again("left.db", lengthscale_prior=(0.5, 0.75))


def test_the_callers_kernel_is_not_changed():
    kernel = RBF([0.3, 0.3])
    made = optimizer(kernel=kernel)
    made.run(lambda first, second: first[0] > second[0], 8)
    assert kernel == RBF([0.3, 0.3])
    assert made.posterior_.kernel != kernel


def test_descriptions_tell_configurations_apart():
    boxes = [
        {"a": stats.uniform(0.0, 1.0)},
        {"a": stats.uniform(0.0, 2.0)},
        {"a": stats.norm(0.0, 1.0)},
        {"a": (0.0, 1.0)},
        {"a": (0, 2)},
        {"a": ["x", "y"]},
        {"b": ["x", "y"]},
        {"a": stats.rv_discrete(values=([1, 4, 9], [0.2, 0.3, 0.5]))},
        {"a": stats.rv_discrete(values=([1, 4, 8], [0.2, 0.3, 0.5]))},
    ]
    options = [
        {"kernel": RBF(0.30000001)},
        {"kernel": RBF(0.3)},
        {"inference": EP(tol=1e-6)},
        {"inference": EP()},
        {"acquisition": test_descriptions_tell_configurations_apart},
    ]
    texts = [json.dumps(describe(make_space(box), {})) for box in boxes]
    texts += [json.dumps(describe(make_space(SQUARE), option)) for option in options]
    assert len(set(texts)) == len(boxes) + len(options)


def test_descriptions_hold_nothing_of_the_process():
    for one, two in (
        ({"a": stats.norm}, {"a": stats.norm()}),
        ({"a": stats.rv_histogram(TABLE)}, {"a": stats.rv_histogram(TABLE)}),
    ):
        found = json.dumps(describe(make_space(one), {}))
        assert found == json.dumps(describe(make_space(two), {}))
        assert " at 0x" not in found
    assert json.dumps(describe(make_space(SQUARE), {"lengthscale_prior": (np.float32(0.5), 1.0)}))


def test_acquisitions_without_a_number_are_named():
    def hopeless(posterior, X, incumbent):
        return np.full(len(X), np.nan)

    for options in ({}, {"incumbent": "joint"}):
        for space in ({"space": SQUARE}, {"candidates": np.random.default_rng(0).random((9, 2))}):
            made = PreferenceOptimizer(
                **space, inference="ep", acquisition=hopeless, n_initial=1, **options
            )
            made.tell(made.ask(), 1)
            with pytest.raises(ValueError, match=r"hopeless' chose nothing: it is NaN at all"):
                made.ask()
            assert len(made.pending_) == 0


def test_an_acquisition_may_be_nan_here_and_there():
    def patchy(posterior, X, incumbent):
        return np.where(X[:, 0] > 0.5, np.nan, X[:, 0])

    for space in ({"space": {"x": (0.0, 1.0), "k": [1, 2, 3]}}, {"space": SQUARE}):
        made = HallucinationBelieverOptimizer(
            **space, acquisition=patchy, n_initial=1, random_state=0
        )
        made.tell(made.ask(), 1)
        assert made.to_unit(made.ask())[1, 0] == pytest.approx(0.5, abs=0.02)


def test_acquisitions_of_a_wrong_shape_are_named():
    made = optimizer(acquisition=lambda posterior, X, incumbent: 1.0, n_initial=1)
    made.tell([[0.0, 1.0], [1.0, 1.0]], 1)
    with pytest.raises(ValueError, match="must return one value for each row of X"):
        made.ask()
    worded = optimizer(acquisition=lambda posterior, X, incumbent: ["good"] * len(X), n_initial=1)
    worded.tell([[0.0, 1.0], [1.0, 1.0]], 1)
    with pytest.raises(ValueError, match=r"one number for each row of X, got \['good'"):
        worded.ask()


@pytest.mark.parametrize("space", [[[0.0, 5.0], [-1.0, 1.0]], {"a": [1, 2, 4], "b": (0.0, 1.0)}])
def test_the_prior_of_the_regressor_is_taken_too(space):
    made = PreferenceOptimizer(space, lengthscale_prior="lognormal", n_initial=2, random_state=0)
    made.run(lambda one, two: str(one) < str(two), 4)
    lengths = np.exp(made.posterior_.kernel.theta)
    # The median is √2 standard deviations of a column: 0.41 where it is spread evenly.
    assert np.all((lengths > 0.05) & (lengths < 4.0))


def test_parameters_of_the_answers_that_there_are_not():
    with pytest.raises(
        TypeError, match=r"unexpected keyword argument 'tie_treshold'.*tie_threshold"
    ):
        optimizer(tie_treshold=0.1)


def test_a_journal_goes_on_where_the_default_of_the_answers_is_said(tmp_path):
    path = tmp_path / "run.db"
    duel = optimizer(journal=path).ask()
    said = optimizer(journal=path, noise_variance=3e-3, tie_threshold=None, grade_thresholds=None)
    np.testing.assert_array_equal(said.ask(), duel)
    with pytest.raises(ValueError, match=r"another configuration .*order_effect"):
        optimizer(journal=path, order_effect=0.1)

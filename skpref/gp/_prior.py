"""The contract of priors on the margins of comparisons.

Every prior here is a Gaussian on the margins z of some comparisons, at given hyperparameters of a
kernel: z ~ N(0, S). Given Gaussian sites it says what the margins are, and in the end the
utilities. How S is written down, by all margins, by all items, by a few features, is each prior's
own affair.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, NoReturn, Self

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from skpref._utils import UNIT, Array, Fields, RandomLike, semidefinite_root
from skpref.data import Comparisons, Margins
from skpref.gp._posterior import Posterior
from skpref.gp._shared_noise import JointNoise
from skpref.kernels import intransitive_parts
from skpref.likelihoods import Likelihood

_NO_JOINT = (
    "{0} does not define {1}, which choices and rankings need. Define it, or leave takes_joint at "
    "False."
)
# An error of a margin's mean, in standard deviations of a noisy duel on it, that is refused: it
# moves a probability by up to 0.004.
NOTICED = 1e-2


class Sites(NamedTuple):
    """Gaussian pseudo-observations of the margins in natural parameters.

    Attributes
    ----------
    shift : ndarray of shape (n_margins,) or (n_margins, n_components)
        Precision times target.
    precision : ndarray of shape (n_margins,) or SitePrecision
        May be zero. With joint answers a `SitePrecision`; or infinite where a margin of a joint
        answer is known, noise included: its ``shift`` then is its value (the mean, of an answer
        given more than once).
    log_evidence : float
        Logarithm of the probability of the duels.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.inference import Sites
    >>> sites = Sites(shift=np.array([1.0]), precision=np.array([2.0]), log_evidence=-0.7)
    >>> sites.shift / sites.precision  # what the pseudo-observation says
    array([0.5])
    """

    shift: Array
    precision: Any
    log_evidence: float


class Marginals(NamedTuple):
    """Marginals of the margins under sites; where those are known, noise included, the known ones.

    Attributes
    ----------
    mean : ndarray of shape (n_margins,) or (n_margins, n_components)
    variance : ndarray of shape (n_margins,)
    dual : ndarray of the shape of ``mean``
        w with mean = S w.
    log_det : float
        log|I + τ^½ S τ^½|.
    root : object
        What the prior found them by, for itself alone.
    joint : tuple of ndarray of shape (n_blocks, m, m)
        Covariances among the margins of each joint answer, by the blocks of `Margins`.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.inference import Marginals
    >>> prior = np.array([[1.0]])  # variance S of one margin; its site: precision 1, shift 1
    >>> found = Marginals(np.array([0.5]), np.array([0.5]), np.array([0.5]), np.log(2.0))
    >>> bool(np.allclose(prior @ found.dual, found.mean))
    True
    """

    mean: Array
    variance: Array
    dual: Array
    log_det: float
    root: Any = None
    joint: tuple[Array, ...] = ()


class MarginErrors(NamedTuple):
    """Absolute errors of the means and variances of the margins, shape (n_margins,) each."""

    mean: Array
    variance: Array


class MarginMoments(NamedTuple):
    """Moments of the margins as likelihoods take them, shape (n_margins,) each.

    Attributes
    ----------
    mean, variance : ndarray
    rest : ndarray
        Variance of independent noise beside them: the FITC residual variance of inducing points.
    """

    mean: Array
    variance: Array
    rest: Array


# Square matrices that an exact fit holds at once, those of items among them; as traced at 400 to
# 1400 items, learning included.
HELD = 10.0


class Cost(NamedTuple):
    """Cost of a prior.

    Attributes
    ----------
    multiplications : float
        Of one `Prior.condition`; infinite where this prior should not be taken.
    side : float
        Of its largest square matrices.
    n_bytes : float
        Held at most, while hyperparameters are learned.
    linear : float, default=0.0
        Of the multiplications, those that are not of square matrices but grow with the answers.
    steps : float, default=0.0
        How many steps follow one another, each of which waits for the one before.

    Examples
    --------
    >>> from skpref.inference import Cost
    >>> dense = Cost(multiplications=1e9, side=1000, n_bytes=8e7)
    >>> dense.side, dense.linear
    (1000, 0.0)
    """

    multiplications: float
    side: float
    n_bytes: float
    linear: float = 0.0
    steps: float = 0.0


class Prior(ABC):
    """The prior on the margins of some comparisons, at given hyperparameters.

    A subclass defines the six abstract members; all others follow from these, and are defined
    again where a quicker or a surer way is known. A kernel whose structure allows one names it,
    ``margin_priors = (MyPrior,)``: `choose_prior` takes the cheapest that is exact, and every
    engine that takes exact priors works with it.

    Attributes
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    n_margins : int
    variance : ndarray of shape (n_margins,)
        Prior variance of every margin, diag(S).
    noise : JointNoise or None
        That the inequalities of joint answers share, with ``takes_joint``.
    takes_joint : bool
        Whether there may be answers of several inequalities.
    takes_pair_effects : bool
        Whether it is for kernels with `skpref.kernels.Intransitive`, and for no others.
    takes_measured : bool
        Whether values of items may have been measured. Then the prior is that given these: its
        margins are those of the utilities less their ``utility_mean``.
    utility_mean : ndarray of shape (n_items,) or None
        Mean of the utilities given measured values; None: 0.
    log_density_of_values : float
        Log density of these values, which is part of the evidence.
    starts_at_mode : bool
        Whether EP begins at the mode: with many answers for each degree of freedom the way from
        zero may diverge.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from skpref.duels import Comparisons
    >>> from skpref.gp import choose_prior
    >>> from skpref.inference import Prior
    >>> from skpref.likelihoods import Probit
    >>> seen = Comparisons.from_duels(np.array([[0.0], [1.0]]), [0], [1], [True])
    >>> kernel, likelihood = RBF(1.0), Probit(0.5)
    >>> prior = choose_prior(kernel, seen, likelihood).from_comparisons(kernel, seen, likelihood)
    >>> isinstance(prior, Prior), prior.n_margins
    (True, 1)
    >>> given = prior.condition(np.array([1.0]), np.array([1.0]))  # a site: precision and shift
    >>> bool(given.variance[0] < prior.variance[0])
    True
    """

    takes_joint: ClassVar[bool] = False
    takes_pair_effects: ClassVar[bool] = False
    takes_measured: ClassVar[bool] = False
    starts_at_mode: ClassVar[bool] = True
    kernel: Kernel
    n_margins: int
    variance: Array
    noise: JointNoise | None = None
    utility_mean: Array | None = None
    log_density_of_values: float = 0.0

    @classmethod
    @abstractmethod
    def from_comparisons(
        cls,
        kernel: Kernel,
        comparisons: Comparisons,
        likelihood: Likelihood,
        gradient: bool = False,
    ) -> Self:
        """The prior of these comparisons' margins; with ``gradient`` `pull_back` will be asked."""

    @classmethod
    @abstractmethod
    def cost(cls, kernel: Kernel | None, comparisons: Comparisons, likelihood: Likelihood) -> Cost:
        """Estimate what the prior takes; a kernel that is not known yet is None."""

    @abstractmethod
    def times(self, vector: Array) -> Array:
        """S times a vector (n_margins,) or the columns of a matrix."""

    @abstractmethod
    def condition(self, precision: Any, shift: Array) -> Marginals:
        """The margins given sites: precision (n_margins,), shift likewise or with a column each.

        With ``takes_joint`` the precision may be a `SitePrecision`.
        """

    @abstractmethod
    def pull_back(self, marginals: Marginals, precision: Any, push: Array | None = None) -> Array:
        """Gradient in ``kernel.theta`` of the log-probability of sites, which stay.

        With R = (S + τ⁻¹)⁻¹ and w the dual it is ½ tr[(w wᵀ − R) dS]. A ``push`` u (n_margins,)
        adds w uᵀ + u wᵀ to the bracket: as much as their centre moves by S u.
        """

    @abstractmethod
    def posterior(self, sites: Any, marginals: Any, likelihood: Likelihood) -> Posterior:
        """The utilities given what an engine found with this prior."""

    @property
    def _shared(self) -> JointNoise:
        """The noise of joint answers, where there are any."""
        if self.noise is None:
            raise ValueError("None of these answers is joint, so that they share no noise.")
        return self.noise

    # -- what follows from these -----------------------------------------------------------

    def margin_moments(self, conditioned: Any) -> MarginMoments:
        """Moments of the margins under what an engine found with this prior."""
        return MarginMoments(conditioned.mean, conditioned.variance, np.zeros(self.n_margins))

    def margins_of(
        self, several: Sequence[Comparisons], conditioned: Any, likelihood: Likelihood
    ) -> list[MarginMoments]:
        """Moments of the margins of other comparisons under what an engine found with this prior.

        Parameters
        ----------
        several : sequence of Comparisons
        conditioned : Approximation
        likelihood : Likelihood
        """
        posterior = self.posterior(conditioned.sites, conditioned.conditioned, likelihood)
        moments = []
        for each in several:
            margins = each.rows.margins
            ends = each.items[margins.first], each.items[margins.second]
            means, variance = posterior.component_margins(*ends)
            moments.append(MarginMoments(means[:, 0], variance, np.zeros(len(variance))))
        return moments

    def condition_on_shift(self, marginals: Marginals, precision: Any, shift: Array) -> Marginals:
        """`condition` on sites of the same, finite precision, whose marginals are known."""
        return self.condition(precision, shift)

    def centre(self, precision: Any, shift: Array) -> tuple[Array, Array]:
        """Mean and dual alone of `condition`."""
        marginals = self.condition(precision, shift)
        return marginals.mean, marginals.dual

    def covariance(self) -> Array:
        """S, (n_margins, n_margins), without the noise of joint answers."""
        return self.times(np.eye(self.n_margins))

    def root(self) -> Array:
        """A root of S, with as few columns as it has."""
        return semidefinite_root(self.covariance())

    def on_duels(self, margins: Margins) -> "Prior":
        """The same on margins without noise between the same items; with ``takes_joint``."""
        raise NotImplementedError(_NO_JOINT.format(type(self).__name__, "on_duels"))

    def is_covariance(self) -> bool:
        """Say whether the kernel is a covariance function on these items, up to rounding."""
        return True

    def rounding(self, dual: Array) -> MarginErrors:
        """Rounding errors to expect of the marginals whose dual is given.

        Margins are sums whose terms carry a relative error of the rounding unit each: the terms,
        not the sums, set the error. Errors are taken as independent (Higham and Mary, "A new
        approach to probabilistic rounding error analysis", SIAM J. Sci. Comput. 2019).
        """
        deviation = np.sqrt(self.variance)
        unit = UNIT * np.sqrt(self.n_margins)
        return MarginErrors(unit * deviation * (deviation @ np.abs(dual)), unit * self.variance)

    def energy_error(self, dual: Array) -> float:
        """Rounding error to expect of ½ wᵀ S w."""
        return 0.5 * UNIT * float(self.variance @ dual**2)

    def check_digits(self, posterior: Posterior, marginals: Marginals) -> None:
        """Raise ValueError if rounding has lost too many digits of a posterior."""
        return None


def check_finite(kernel: Kernel, K: Array) -> None:
    """Raise ValueError unless a kernel is finite on the items."""
    if not np.all(np.isfinite(K)):
        raise ValueError(
            f"The kernel {kernel} is not finite on the items. Rescale the features "
            "(for instance Itemwise(StandardScaler())) or choose other hyperparameters."
        )


def check_means(found: Array, mean: Array, variance: Array) -> None:
    """Raise ValueError if means that two ways lead to differ: rounding has lost too many digits.

    Parameters
    ----------
    found, mean : ndarray of shape (n,)
        Of some margins.
    variance : ndarray of shape (n,)
        Of noisy duels on them.
    """
    if np.any(np.abs(found - mean) > NOTICED * np.sqrt(variance)):
        raise_lost_digits()


def raise_lost_digits() -> NoReturn:
    """Raise ValueError: rounding has lost too many digits of the margins."""
    raise ValueError(
        "Rounding errors change probabilities: the noise is too small for the weights, or "
        "repeats, of these answers, or beside what the kernel is on the items. Divide all of "
        "sample_weight by a number, or raise noise_variance and its lower bound; of a "
        "polynomial kernel centre and scale the features, for instance by "
        "Itemwise(StandardScaler())."
    )


class PriorRule(Fields):
    """Choose the prior of an engine, before hyperparameters are known.

    This one takes the cheapest exact prior, see `choose_prior`, and prepares nothing.

    Attributes
    ----------
    exact : bool
        Whether its priors leave nothing of the kernel out.
    by_points : bool
        Whether they are by inducing points, which carry a stream of answers on.
    through_time : bool
        Whether they take items as independent chains through time.

    Examples
    --------
    >>> from skpref.inference import EP, SVI
    >>> EP().prior_rule.exact, SVI(50).prior_rule.exact
    (True, False)
    """

    exact: ClassVar[bool] = True
    by_points: ClassVar[bool] = False
    through_time: ClassVar[bool] = False

    def prepare(self, comparisons: Comparisons, kernel: Kernel, rng: RandomLike = None) -> Self:
        """Return this rule for these comparisons: with points, where it takes any."""
        return self

    def refine(self, comparisons: Comparisons, kernel: Kernel, likelihood: Likelihood) -> Self:
        """Return this rule once the hyperparameters are known."""
        return self

    def prior(
        self,
        kernel: Kernel,
        comparisons: Comparisons,
        likelihood: Likelihood,
        gradient: bool = False,
    ) -> Prior:
        """The prior of comparisons at given hyperparameters."""
        return choose_prior(kernel, comparisons, likelihood).from_comparisons(
            kernel, comparisons, likelihood, gradient
        )

    def check(self, kernel: Kernel, comparisons: Comparisons) -> None:
        """Raise ValueError, before any work, unless there is such a prior."""
        return None

    def cost(self, kernel: Kernel | None, comparisons: Comparisons, likelihood: Likelihood) -> Cost:
        """Estimate what the rule's prior takes."""
        return _cheapest(kernel, comparisons, likelihood)[0]

    def tells_items_apart(self, comparisons: Comparisons) -> bool:
        """Say whether item effects can be learned."""
        return True


# Exact priors that take any kernel.
EXACT: list[type[Prior]] = []


def choose_prior(
    kernel: Kernel | None, comparisons: Comparisons, likelihood: Likelihood
) -> type[Prior]:
    """The cheapest exact prior of comparisons: of those for any kernel, and those it names itself.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel or None
        Its attribute ``margin_priors``, if it has one, names further subclasses of `Prior`: who
        wrote it alone knows what its structure allows.
    comparisons : Comparisons
    likelihood : Likelihood
    """
    return _cheapest(kernel, comparisons, likelihood)[1]


def _cheapest(
    kernel: Kernel | None, comparisons: Comparisons, likelihood: Likelihood
) -> tuple[Cost, type[Prior]]:
    """The cheapest exact prior, after what it takes."""
    joint = comparisons.rows.joint
    own = getattr(kernel, "margin_priors", ())
    if not isinstance(own, tuple | list) or not all(
        isinstance(each, type) and issubclass(each, Prior) for each in own
    ):
        raise TypeError(
            f"margin_priors of the kernel {type(kernel).__name__} must be a tuple of subclasses of "
            f"skpref.gp.Prior, such as (MyPrior,); got {own!r}."
        )
    candidates = (*EXACT, *own)
    check_sets(kernel, comparisons)
    pair_effects = intransitive_parts(kernel)[1] is not None
    costs = (
        (each.cost(kernel, comparisons, likelihood), each)
        for each in candidates
        if (each.takes_joint or not joint)
        and each.takes_pair_effects == pair_effects
        and (each.takes_measured or comparisons.measured is None)
    )
    return min(costs, key=lambda found: found[0].multiplications)


def check_sets(kernel: Kernel | None, comparisons: Comparisons) -> None:
    """Raise ValueError if a kernel has effects of pairs, and not all is answers about pairs."""
    if comparisons.measured is not None and intransitive_parts(kernel)[1] is not None:
        raise ValueError(
            f"got measured= with the kernel {kernel}; kernels of items are allowed, as a value is "
            "of no pair. Leave the term Intransitive or measured= out."
        )
    if comparisons.rows.joint and intransitive_parts(kernel)[1] is not None:
        raise ValueError(
            f"got choices or rankings of more than two items with the kernel {kernel}; duels are "
            "allowed. Leave the term Intransitive out, or break sets into duels by from_rankings."
        )

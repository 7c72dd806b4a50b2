"""CollaborativePreferenceRegressor: parameters and messages."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted

from skpref._estimator import UtilityEstimator, fitted_on_duels
from skpref._utils import (
    RandomLike,
    check_metadata_requested,
    check_number,
    given_metadata,
    unrequested_metadata,
    with_callbacks,
)
from skpref.collaborative._posterior import CollaborativePosterior
from skpref.collaborative._program import (
    check_featured,
    delete_attributes,
    fit_users,
    has_separate_users,
)
from skpref.collaborative._users import code_ids
from skpref.data import AnswerMetadata, Comparisons, ItemTable, check_training, combine_groups
from skpref.fitting import check_settings, warn_of_components
from skpref.gp import Posterior
from skpref.inference import ENGINES, EP, Engine
from skpref.likelihoods import Likelihood


def _never(estimator):
    """Raise AttributeError: a fit of many users takes all answers at once."""
    raise AttributeError(
        f"{type(estimator).__name__} needs all answers at once: use fit. Streams of one utility "
        "are for PairwisePreferenceRegressor(inference='svi')."
    )


class CollaborativePreferenceRegressor(UtilityEstimator):
    r"""Utilities of many users, each learned from few duels with the help of all others'.

    The utility of user u is f_u(x) = f(x) + Σ_d w_ud h_d(x). The population's utility f is a
    Gaussian process. The user's taste w_u weighs functions h that all users share [1]_. Tastes are
    normal. Their covariance is learned, so that a user's answers about one item also tell something
    about others. Tastes of different users are independent. With features of users they are alike
    where the features are alike.

    Parameters
    ----------
    kernel, inference, noise_variance, noise_variance_bounds, tie_threshold, tie_threshold_bounds, \
    grade_thresholds, grade_threshold_bounds, order_effect, order_effect_bounds, \
    lengthscale_prior, items, id_column, optimizer, n_restarts_optimizer, random_state, \
    likelihood, verbose
        As in `PairwisePreferenceRegressor`. With users ``inference`` is "ep", expectation
        propagation, or an `EP` object, whose options apply while hyperparameters are learned. With
        "vb" the functions h are unknown too, as in [1]_; it is for the methods "cp" and "cpu".
    method : {"auto", "cp", "cpu", "su", "pooled", "birlutiu", "bonilla"}, default="auto"
        "cp" is collaborative preferences with independent tastes, "cpu" the same with features of
        users. "auto" is "cpu" if there are ``user_features``, else "cp". The others are for
        comparison. "su" fits a utility for each user; only hyperparameters are shared. "pooled"
        fits one utility for all users. "birlutiu" learns the covariance of tastes without a prior
        [2]_. "bonilla" fits one utility of items and features of users [3]_.
    user_features : mapping, DataFrame or array-like, default=None
        Features of users: a mapping of ids to rows of numbers (or to one number), a pandas frame
        whose index holds the ids, or an array whose positions are the ids. With "cpu" and "bonilla"
        it must have all users of `fit`. It may have others, who are then predicted by it.
    user_kernel : Kernel, default=None
        Covariance over features of users, which are in units of their spread. None: RBF.
    taste_variance, taste_variance_bounds : default=1.0, (1e-6, 1e4) or "fixed"
        Variance of a user's own utility, in units of the kernel, which is that of the population.
        The search starts at the variance and stays within the bounds; "fixed" holds it.
    n_latent : int, default=40
        Number of functions h, at most. If the items allow fewer, all of these are taken, else those
        along which tastes differ most. The others count as noise. With "vb" it is the number.
    n_inducing, n_inducing_users : int, default=100, 25
        Inducing points for items and for features of users. With fewer items nothing is
        approximated.
    n_learning_answers : "auto", int or None, default="auto"
        Number of answers that hyperparameters are learned on. They are of as few users as possible,
        with 24 answers of each, or more where there are no other users. "auto": 800,
        or 2000 where an order effect is learned, of which few answers tell little. None: all; the
        cost grows as the third power of users times items that each met. Without users it is as in
        `PairwisePreferenceRegressor`.
    max_iter : int, default=100
        Passes over the answers, at most. ``verbose=2`` and callbacks report each.
    tol : float, default=2e-3
        The fit ends where the root mean square change of the margins in a pass, in units of their
        deviations, is below it.
    n_jobs : int, default=None
        Users are fitted in parallel by joblib, in threads or at the workers of a
        `joblib.parallel_config`.

    Attributes
    ----------
    posterior_ : CollaborativePosterior or Posterior
        Posterior of the utilities; a `Posterior` if all answers are of one user.
    users_ : ndarray of shape (n_users,)
        Ids of the users that were fitted.
    taste_variance_, taste_variance_by_features_ : float
        As learned with hyperparameters, before the covariance of tastes.
    user_kernel_ : Kernel or None
        With the hyperparameters used.
    engine_, diagnostics_ : Engine, None
        The engine that found the hyperparameters. Without users both are as in
        `PairwisePreferenceRegressor`.
    n_iter_, log_marginal_likelihood_value_ : int, float
        Passes over the answers, and the log evidence of all answers.
    kernel_, likelihood_, noise_variance_, tie_threshold_, grade_thresholds_, order_effect_, \
    classes_, comparisons_, duels_, items_, n_item_components_, n_features_in_, feature_names_in_
        As in `PairwisePreferenceRegressor`.

    Notes
    -----
    The parameters come in groups: the users (``method`` to ``n_inducing_users``), their answers
    (``likelihood`` to ``lengthscale_prior``), the items (``items`` and ``id_column``), and the
    computation (the rest).

    Without users, or if all answers are of one user, this is `PairwisePreferenceRegressor`. In
    predictions a user that was not fitted, or None, is somebody of the population. The mean is then
    the population's, and probabilities are averages over how people differ. With ``user_features``
    such a user, if the table has no row of theirs, is like one of the fitted users, of whom it is
    not known which.

    Answers of several users are duels, which may be ties, or rated items. Rated items have ``X`` of
    shape (n_items, n_features) and the user of each row; pairs within a user (and ``qid``) make
    duels. The cost of a fit is linear in the number of users.

    References
    ----------
    .. [1] Houlsby, Huszár, Ghahramani, Hernández-Lobato, "Collaborative Gaussian processes for
       preference learning", NIPS 2012.
    .. [2] Birlutiu, Groot, Heskes, "Multi-task preference learning with Gaussian processes",
       ESANN 2009.
    .. [3] Bonilla, Guo, Sanner, "Gaussian process preference elicitation", NIPS 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.collaborative import CollaborativePreferenceRegressor
    >>> duels = np.array([[[0.0], [1.0]], [[1.0], [2.0]], [[0.0], [2.0]]] * 2)
    >>> users = ["ann"] * 3 + ["bob"] * 3
    >>> model = CollaborativePreferenceRegressor(optimizer=None)
    >>> model = model.fit(duels, [0, 0, 0, 1, 1, 1], users=users)
    >>> model.predict_proba(duels[[2, 2]], users=["ann", "bob"])[:, 1].round(2)
    array([0.03, 0.97])
    """

    _engines = ENGINES | {"vb": EP}  # of one user's answers nothing else is left of it
    # What scikit-learn routes here without being asked to; on the order see the other regressor.
    __metadata_request__fit: ClassVar = {"users": True, "qid": True, "order": True}
    __metadata_request__predict_proba: ClassVar = {"users": True, "order": True}
    __metadata_request__predict_log_proba: ClassVar = {"users": True, "order": True}
    __metadata_request__decision_function: ClassVar = {"users": True, "order": True}
    __metadata_request__score: ClassVar = {"users": True, "qid": True, "order": True}
    __metadata_request__predict: ClassVar = {"users": True, **unrequested_metadata("order")}

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        method: str = "auto",
        user_features: Any = None,
        user_kernel: Kernel | None = None,
        taste_variance: float = 1.0,
        taste_variance_bounds: tuple[float, float] | str = (1e-6, 1e4),
        n_latent: int = 40,
        n_inducing: int = 100,
        n_inducing_users: int = 25,
        likelihood: Likelihood | None = None,
        noise_variance: float = 1e-2,
        noise_variance_bounds: tuple[float, float] | str = (1e-4, 10.0),
        tie_threshold: float | None = None,
        tie_threshold_bounds: tuple[float, float] | str = (1e-4, 10.0),
        grade_thresholds: Sequence[float] | None = None,
        grade_threshold_bounds: tuple[float, float] | str = (1e-4, 10.0),
        order_effect: float = 0.0,
        order_effect_bounds: tuple[float, float] | str = "fixed",
        lengthscale_prior: str | tuple[float, float] | None = "lognormal",
        items: ItemTable | ArrayLike | None = None,
        id_column: int | str | None = None,
        inference: str | Engine = "ep",
        optimizer: str | Callable | None = "fmin_l_bfgs_b",
        n_restarts_optimizer: int = 0,
        n_learning_answers: int | str | None = "auto",
        max_iter: int = 100,
        tol: float = 2e-3,
        random_state: RandomLike = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.kernel = kernel
        self.method = method
        self.user_features = user_features
        self.user_kernel = user_kernel
        self.taste_variance = taste_variance
        self.taste_variance_bounds = taste_variance_bounds
        self.n_latent = n_latent
        self.n_inducing = n_inducing
        self.n_inducing_users = n_inducing_users
        self.likelihood = likelihood
        self.noise_variance = noise_variance
        self.noise_variance_bounds = noise_variance_bounds
        self.tie_threshold = tie_threshold
        self.tie_threshold_bounds = tie_threshold_bounds
        self.grade_thresholds = grade_thresholds
        self.grade_threshold_bounds = grade_threshold_bounds
        self.order_effect = order_effect
        self.order_effect_bounds = order_effect_bounds
        self.lengthscale_prior = lengthscale_prior
        self.items = items
        self.id_column = id_column
        self.inference = inference
        self.optimizer = optimizer
        self.n_restarts_optimizer = n_restarts_optimizer
        self.n_learning_answers = n_learning_answers
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        users: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        order: ArrayLike | None = None,
        **others: Any,
    ) -> Self:
        """Learn the utilities.

        Parameters
        ----------
        X, y, qid, sample_weight, order
            As in `PairwisePreferenceRegressor.fit`. Several users answer duels or rate items.
            Rated items are compared within a user alone.
        users : array-like of shape (n_duels,) or (n_items,), default=None
            The user of each answer: ids of any hashable kind, none missing. None: all answers are
            of one user.
        **others
            Refused, as ``time`` is: utilities of users stay as they are.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            With any of ``others``; of ``time`` it says what to do instead.
        ValueError
            If an argument or a parameter is not of an allowed form; the message says which are.
        """
        if "time" in others:
            raise TypeError(
                f"{type(self).__name__} takes no time=: the utilities of its users do not drift. "
                "Leave time= out, or fit a PairwisePreferenceRegressor(drift='matern12') to the "
                "answers of one user, or of all as if one had given them."
            )
        if others:
            raise TypeError(
                f"{type(self).__name__}.fit takes X, y, users, qid, sample_weight and order; got "
                f"{', '.join(sorted(others))}. Leave out what it does not take."
            )
        check_metadata_requested(self, given_metadata(users=users))
        keywords = given_metadata(users=users, qid=qid, sample_weight=sample_weight, order=order)
        separate = has_separate_users(self)
        settings = check_settings(self)
        training = check_training(self, X, y, keywords, settings.likelihood, pooled=not separate)
        names = np.empty(0, dtype=object) if training.users is None else training.users.names
        if separate and len(names) > 1:
            fit_users(self, settings, training)
            self._fit_metadata = frozenset(keywords.keys() - {"sample_weight"})
        else:
            keywords.pop("users", None)
            self._fit_answers(settings, training, keywords)
            delete_attributes(self)
            self.users_ = names
        warn_of_components(self)
        return self

    @available_if(_never)
    def partial_fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Not available: all answers are needed at once."""
        return self

    # -- prediction ----------------------------------------------------------------------

    def predict(
        self,
        X: ArrayLike,
        return_std: bool = False,
        return_cov: bool = False,
        *,
        users: ArrayLike | None = None,
    ) -> NDArray[np.float64] | tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Posterior mean utility of items, or mean margin of duels, for users.

        Parameters
        ----------
        X, return_std, return_cov
            As in `PairwisePreferenceRegressor.predict`.
        users : array-like of shape (n,), default=None
            The user of each row. None, or None or an unknown id in it: somebody of the population,
            by features if ``user_features`` has a row for the id.

        Returns
        -------
        mean : ndarray of shape (n,)
        std : ndarray of the same shape
        cov : ndarray of shape (n, n)
        """
        return self._prediction("predict", X, users=users).moments(return_std, return_cov)

    @available_if(fitted_on_duels)
    def predict_proba(
        self, X: ArrayLike, *, users: ArrayLike | None = None, order: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Probabilities of the outcomes of duels; users as in `predict`."""
        return self._prediction("predict_proba", X, users=users, order=order).proba()

    @available_if(fitted_on_duels)
    def predict_log_proba(
        self, X: ArrayLike, *, users: ArrayLike | None = None, order: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Natural logarithm of `predict_proba`, finite far in the tails."""
        prediction = self._prediction("predict_log_proba", X, users=users, order=order)
        return prediction.proba(log=True)

    @available_if(fitted_on_duels)
    def decision_function(
        self, X: ArrayLike, *, users: ArrayLike | None = None, order: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Mean margin of duels as the users see them; users as in `predict`."""
        return self._decision_values(
            self._prediction("decision_function", X, users=users, order=order)
        )

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        users: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        order: ArrayLike | None = None,
    ) -> float:
        """Share of duels called right, or of pairs of rated items of one user ordered right.

        Parameters
        ----------
        X, y, qid, sample_weight, order
            As in `PairwisePreferenceRegressor.score`.
        users : array-like of shape (n,), default=None
            As in `predict`; without them the population is scored.
        """
        prediction = self._prediction("score", X, users=users, qid=qid, order=order)
        metadata = prediction.metadata
        within = None if metadata.user is None else code_ids(metadata.user)
        return self._score(prediction, y, sample_weight, combine_groups(metadata.qid, within))

    def sample_y(
        self,
        X: ArrayLike,
        n_samples: int = 1,
        random_state: RandomLike = 0,
        *,
        users: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """Joint draws of utilities of items, or of margins of duels; users as in `predict`."""
        check_number("n_samples", n_samples, low=1, integer=True)
        prediction = self._prediction("predict", X, users=users)
        query, posterior = prediction.query, prediction.posterior
        if users is None or query.size != 2 or posterior is self.posterior_:
            return prediction.draws(n_samples, random_state)
        return posterior.sample_margins(*query.sides, n_samples, random_state)

    def log_marginal_likelihood(
        self, theta: ArrayLike | None = None, eval_gradient: bool = False
    ) -> float | tuple[float, NDArray[np.float64] | None]:
        """Log evidence of all answers; without users as in `PairwisePreferenceRegressor`.

        Parameters
        ----------
        theta : array-like, default=None
            Of several users ``np.r_[kernel_.theta, log taste_variance_,
            log taste_variance_by_features_, user_kernel_.theta, log σ², log δ, h]``, without those
            that there are none of and that were held. All answers are fitted at these, and the
            covariance of tastes is learned anew. None: the fitted values.
        eval_gradient : bool, default=False
            Without users alone.
        """
        check_is_fitted(self)
        if not isinstance(self.posterior_, CollaborativePosterior):
            return self._log_evidence(theta, eval_gradient)
        if theta is None and not eval_gradient:
            return self.log_marginal_likelihood_value_
        return self._study.log_evidence(self._found, theta, eval_gradient)

    def posterior_for(self, users: ArrayLike) -> CollaborativePosterior | Posterior:
        """The posterior for given users: row i of any input is about user i.

        Parameters
        ----------
        users : array-like of shape (n,)
            As in `predict`.

        Returns
        -------
        CollaborativePosterior or Posterior
            It takes n rows at a time. The latter, ``posterior_``, if all answers are one user's.

        Examples
        --------
        >>> from skpref.active import bald, query
        >>> from skpref.collaborative import CollaborativePreferenceRegressor
        >>> duels = [[[0.0], [1.0]], [[1.0], [2.0]], [[0.0], [2.0]], [[0.0], [2.0]]]
        >>> users = ["ann", "ann", "ann", "bob"]
        >>> model = CollaborativePreferenceRegressor(optimizer=None)
        >>> model = model.fit(duels, [0, 0, 0, 1], users=users)
        >>> pool, asked = [[[1.0], [2.0]]] * 3, ["ann", "bob", "somebody else"]
        >>> bald(model.posterior_for(asked), pool).argmin()
        np.int64(0)
        >>> query(model, pool, users=asked).tolist()
        [2]
        """
        check_is_fitted(self)
        n = _num_samples(users)
        return self._posterior_for(AnswerMetadata.read({"users": users}, n, None))

    def check_loaded_fields(self) -> None:
        """Raise ValueError unless every user has a taste, see `Fields`."""
        super().check_loaded_fields()
        posterior = self.posterior_
        if not isinstance(posterior, CollaborativePosterior):
            return
        names = self._users.names
        if len(names) != posterior.n_users:
            raise ValueError(f"{len(names)} users have {posterior.n_users} tastes")
        ends = [posterior.anchors[[k, k]] for k in (0, -1)]
        if not np.all(np.isfinite(self.posterior_for([names[0], names[-1]]).margin(*ends))):
            raise ValueError("users and their features give no margins")

    def _posterior_for(self, metadata):
        ids = metadata.user
        if ids is None or not isinstance(self.posterior_, CollaborativePosterior):
            return self.posterior_
        return self.posterior_.of(self._users.codes(ids), *self._people.inducing_features(ids))

    def _answers_about(self, user: Any) -> Comparisons | None:
        """Answers that tell of a user's utility, None: all, as what tastes share is learned."""
        study = getattr(self, "_study", None)
        if study is None or study.method.population or study.method.by_features:
            return None
        return study.comparisons.part(np.flatnonzero(study.user == self._users.codes([user])[0]))

    def _fitted_parameters(self) -> dict[str, Any]:
        """Return constructor parameters that hold the fitted hyperparameters, by name."""
        parameters = super()._fitted_parameters()
        variance = getattr(self, "taste_variance_", 0.0)
        by_features = getattr(self, "taste_variance_by_features_", 0.0)
        if by_features:
            parameters["user_kernel"] = self.user_kernel_
        if by_features and self.method != "bonilla":
            # Both parts of the tastes start with half the variance.
            parameters["taste_variance"] = 2.0 * variance
            share = ConstantKernel(by_features / variance, "fixed")
            parameters["user_kernel"] = share * self.user_kernel_
        elif variance:
            parameters["taste_variance"] = variance
        return parameters

    def _check_featured(self, users):
        """Raise ValueError where users that were not in the fit have no features."""
        check_featured(self, users)

"""What a fit leaves on an estimator."""

from dataclasses import replace

from skpref._asked import Who
from skpref._features import remember
from skpref._fitting import Fitted
from skpref._items import ItemTable
from skpref._streaming import Stream, begun
from skpref._validation import Training
from skpref.likelihoods import Judged


def keep(
    estimator,
    fitted: Fitted,
    training: Training,
    table: ItemTable | None,
    stream: Stream | None = None,
) -> None:
    """Set the fitted attributes, all at once.

    Parameters
    ----------
    estimator : PairwisePreferenceRegressor
    fitted : Fitted
    training : Training
    table : ItemTable or None
    stream : Stream, optional
        After a piece of a stream.
    """
    model, state, judges = fitted.model, fitted.state, fitted.judges
    likelihood = model.likelihood
    if judges is not None and isinstance(likelihood, Judged):  # from here on the common level
        likelihood = likelihood.base
    remember(estimator, training.schema)
    estimator._model = model
    if not model.engine.has_evidence:  # only chains are carried over, not the search
        state = state._replace(sites=None)
    estimator._start = state if model.engine.warm_start else None
    if not model.engine.dense and judges is None:
        estimator._stream = begun(fitted, estimator.learn_on) if stream is None else stream
    elif hasattr(estimator, "_stream"):
        del estimator._stream
    schema, who = training.schema, None
    if schema.id_column is not None and schema.ids is not None:
        who = Who(schema.id_column, schema.ids)
    estimator.posterior_ = replace(
        fitted.posterior,
        likelihood=likelihood,
        feature_names=schema.feature_names,
        table=table,
        who=who,
    )
    estimator.judges_ = judges
    estimator.diagnostics_ = fitted.diagnostics
    estimator.items_ = table
    estimator.observations_ = fitted.observations
    estimator.kernel_, estimator.likelihood_ = model.kernel, likelihood
    estimator.engine_ = model.engine
    for name in ("noise_variance", "tie_threshold", "order_effect"):
        if hasattr(likelihood, name):
            setattr(estimator, f"{name}_", getattr(likelihood, name))
        elif hasattr(estimator, f"{name}_"):
            delattr(estimator, f"{name}_")
    estimator.log_marginal_likelihood_value_ = fitted.log_evidence
    estimator.n_iter_ = fitted.n_iter
    if training.classes is not None:
        estimator.classes_ = training.classes
    elif hasattr(estimator, "classes_"):
        del estimator.classes_

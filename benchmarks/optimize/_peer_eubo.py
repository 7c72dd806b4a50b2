"""BoTorch's `PairwiseGP` with the expected utility of the best option, asked and told duels.

The model keeps its defaults (RBF with ARD, its hyperprior) and is fitted from scratch to all told
duels at every ask by the Laplace marginal likelihood; the duel maximises the analytic EUBO of both
items with 3 restarts and 512 raw samples.
The recommended item is the largest posterior mean over the items told. A fit that fails is
replaced by the model at the hyperparameters of the last one that did not.
"""

import sys
import warnings
from importlib import metadata

import numpy as np
import torch
from botorch.acquisition.preference import AnalyticExpectedUtilityOfBestOption
from botorch.exceptions import ModelFittingError
from botorch.fit import fit_gpytorch_mll
from botorch.models.pairwise_gp import PairwiseGP, PairwiseLaplaceMarginalLogLikelihood
from botorch.optim import optimize_acqf
from linear_operator.utils.errors import NanError, NotPSDError

NAME = "BoTorch-EUBO"
PACKAGES = ("botorch", "gpytorch", "torch")
FAILURES = (ModelFittingError, NanError, NotPSDError, torch.linalg.LinAlgError)


def sources():
    """The version, 8 characters long."""
    return f"{metadata.version('botorch'):_<8}"[:8]


class Peer:
    """Items of the unit cube of d features."""

    def __init__(self, d, seed):
        torch.set_num_threads(1)
        torch.set_default_dtype(torch.float64)
        torch.manual_seed(seed)
        warnings.simplefilter("ignore")
        self.items, self.duels = np.empty((0, d)), []
        self.model = self.parameters = None

    def tell(self, duel, outcome):
        first = len(self.items)
        self.items = np.concatenate([self.items, duel])
        self.duels.append([first, first + 1] if outcome == 1 else [first + 1, first])

    def ask(self):
        self._fit_what_is_new()
        bounds = torch.tensor([[0.0] * self.items.shape[1], [1.0] * self.items.shape[1]])
        duel, _ = optimize_acqf(
            AnalyticExpectedUtilityOfBestOption(pref_model=self.model),
            bounds=bounds,
            q=2,
            num_restarts=3,
            raw_samples=512,
        )
        return duel.numpy()

    def recommend(self):
        """Of the model of the last `ask`."""
        with torch.no_grad():
            mean = self.model.posterior(torch.tensor(self.items)).mean
        return self.items[int(mean.argmax())]

    def recommend_of(self, can_be_made):
        """Of a fit to all duels told, among the items that can be made; None if none can."""
        self._fit_what_is_new()
        with torch.no_grad():
            mean = self.model.posterior(torch.tensor(self.items)).mean.numpy().ravel()
        made = [k for k, item in enumerate(self.items) if can_be_made(item)]
        return self.items[max(made, key=lambda k: mean[k])] if made else None

    def _fit_what_is_new(self):
        if self.model is None or len(self.model.comparisons) != len(self.duels):
            self.model = self._fitted()

    def _fitted(self):
        data = torch.tensor(self.items), torch.tensor(self.duels)
        model = PairwiseGP(*data)
        try:
            fit_gpytorch_mll(PairwiseLaplaceMarginalLogLikelihood(model.likelihood, model))
            self.parameters = {k: v.detach().clone() for k, v in model.named_parameters()}
        except FAILURES as error:
            print(f"fit of {len(self.duels)} duels: {error!r}"[:200], file=sys.stderr, flush=True)
            model = PairwiseGP(*data)
            for name, parameter in model.named_parameters():
                if self.parameters is not None:
                    parameter.data.copy_(self.parameters[name])
        return model.eval()

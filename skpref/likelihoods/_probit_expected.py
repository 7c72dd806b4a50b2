"""Expected log-probabilities of the probit, in closed form where it is no tie."""

import numpy as np
from numpy.typing import NDArray

from skpref.likelihoods._base import Likelihood
from skpref.likelihoods._expected import Expected, expected_log_ndtr
from skpref.likelihoods._rows import Rows
from skpref.likelihoods._terms import DUEL, Answers


class ExpectedProbit(Likelihood):
    """What variational inference asks of `Probit`."""

    @property
    def margin_variance(self) -> float:
        """Of the noise on a margin."""
        raise NotImplementedError

    def _noisy_rows(self, answers: Answers) -> Rows | None:
        """Threshold and order effect of every row; None if there are none."""
        raise NotImplementedError

    def expected(
        self,
        mean: NDArray[np.float64],
        variance: NDArray[np.float64],
        noise: NDArray[np.float64],
        answers: Answers,
    ) -> Expected:
        """Expectation of the log-probability, see `Likelihood.expected`."""
        rows, total = self._noisy_rows(answers), self.margin_variance + noise
        if rows is not None and len(rows.ties):
            found = super().expected(mean, variance, noise, answers)
            duels = np.flatnonzero(answers.kind == DUEL)
            seen = mean[duels], variance[duels], noise[duels]
            for whole, own in zip(found, self.expected(*seen, answers.take(duels)), strict=True):
                whole[duels] = own
            return found
        ahead, scale = mean if rows is None else mean + rows.shift, np.sqrt(total)
        value, slope, bend = expected_log_ndtr(ahead / scale, variance / total)
        by_mean, by_variance = slope / scale, bend / total
        by_noise = -(0.5 * ahead * by_mean + variance * by_variance) / total
        return Expected(value, by_mean, by_variance, by_noise)

    def expected_theta_gradient(
        self,
        mean: NDArray[np.float64],
        variance: NDArray[np.float64],
        noise: NDArray[np.float64],
        answers: Answers,
    ) -> NDArray[np.float64]:
        """In log σ², log δ and h, see `Likelihood.expected_theta_gradient`."""
        rows = self._noisy_rows(answers)
        if not self.free or (rows is not None and len(rows.ties)):
            return super().expected_theta_gradient(mean, variance, noise, answers)
        at = self.expected(mean, variance, noise, answers)
        found = {"noise_variance": self.margin_variance * at.by_noise}
        if rows is not None:
            found["tie_threshold"] = -rows.threshold * at.by_mean
            found["order_effect"] = rows.lead * at.by_mean
        return np.stack([found[name] for name in self.free])

    def _averaged(self, margin, noise, answers):
        at = self.tilted(margin, noise, answers)
        # d log p/dnoise is half of p''/p: p as a function of margin and noise diffuses
        return at.log_normaliser, at.gradient, 0.5 * (at.gradient**2 - at.curvature)

    def _averaged_slopes(self, margin, noise, answers):
        return self.tilted_theta_gradient(margin, noise, answers)

"""Coordinates of a search for hyperparameters: ratios to the noise."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from skpref._utils import TOLERANCE, Array


@dataclass(frozen=True, eq=False)
class Ratios:
    """A one-to-one map between hyperparameters θ and the coordinates of a search.

    Of a hyperparameter of power p of the utility's unit the coordinate is its ratio to σ^p: of a
    logarithm log θ − p log σ, of a number (p = 1) θ / σ. Everything else is a coordinate as it is.

    Attributes
    ----------
    noise : int or None
        Where log σ^q is in θ. None: θ are the coordinates.
    noise_power : int
        q.
    powers : ndarray of shape (n_theta,)
        p of the hyperparameters that are ratios, 0 of all others.
    linear : ndarray of bool of shape (n_theta,)
        Which are no logarithms.
    limits : ndarray of shape (n_theta, 2)
        Bounds of θ.

    Examples
    --------
    Noise of variance 4 and a threshold of 1, half a deviation of the noise:

    >>> import numpy as np
    >>> limits = np.log([[1e-4, 10.0], [1e-4, 10.0]])
    >>> powers, linear = np.array([2, 1]), np.array([False, False])
    >>> ratios = Ratios.at(np.log([4.0, 1.0]), powers, linear, limits, 0)
    >>> np.exp(ratios.forward(np.log([4.0, 1.0])))
    array([4. , 0.5])
    """

    noise: int | None
    noise_power: int
    powers: Array
    linear: NDArray[np.bool_]
    limits: Array

    @classmethod
    def at(
        cls,
        theta: Array,
        powers: NDArray[np.intp],
        linear: NDArray[np.bool_],
        limits: Array,
        noise: int | None,
    ) -> Self:
        """Make the coordinates around a point; a hyperparameter at its bound is not a ratio.

        Parameters
        ----------
        theta : ndarray of shape (n_theta,)
        powers : ndarray of int of shape (n_theta,)
            Of the utility's unit; of a number that is no logarithm 0 or 1.
        linear : ndarray of bool of shape (n_theta,)
        limits : ndarray of shape (n_theta, 2)
        noise : int or None
            Which hyperparameter the others are compared with, if any.
        """
        if noise is None:
            return cls(None, 1, np.zeros(len(theta)), linear, limits)
        inside = (theta > limits[:, 0] + TOLERANCE) & (theta < limits[:, 1] - TOLERANCE)
        ratio = np.where(inside, powers, 0).astype(np.float64)
        ratio[noise] = 0.0
        return cls(noise, int(powers[noise]), ratio, linear, limits)

    @property
    def bounds(self) -> Array:
        """Return bounds of the coordinates; a ratio has none, as `back` keeps θ within its own."""
        bounds = np.array(self.limits)
        bounds[self.powers != 0.0] = -np.inf, np.inf
        return bounds

    def _log_deviation(self, coordinates):
        """Return log σ."""
        return coordinates[self.noise] / self.noise_power

    def forward(self, theta: Array) -> Array:
        """Return the coordinates of hyperparameters."""
        if self.noise is None:
            return theta
        log_deviation = self._log_deviation(theta)
        ratios = np.where(self.linear, theta * np.exp(-log_deviation), theta)
        ratios = np.where(self.linear, ratios, theta - self.powers * log_deviation)
        return np.where(self.powers == 0.0, theta, ratios)

    def _theta_without_bounds(self, coordinates):
        """Return the hyperparameters of coordinates, whatever their bounds."""
        log_deviation = self._log_deviation(coordinates)
        theta = np.where(
            self.linear,
            coordinates * np.exp(log_deviation),
            coordinates + self.powers * log_deviation,
        )
        return np.where(self.powers == 0.0, coordinates, theta)

    def back(self, coordinates: Array) -> Array:
        """Return the hyperparameters of coordinates, kept within their bounds."""
        theta = coordinates if self.noise is None else self._theta_without_bounds(coordinates)
        return np.clip(theta, self.limits[:, 0], self.limits[:, 1])

    def pull_back(self, coordinates: Array, gradient: Array) -> Array:
        """Return the gradient in the coordinates from that in the hyperparameters."""
        if self.noise is None:
            return gradient
        theta = self._theta_without_bounds(coordinates)
        is_inside = (theta >= self.limits[:, 0]) & (theta <= self.limits[:, 1])
        slopes = np.where(is_inside | (self.powers == 0.0), gradient, 0.0)
        # Derivatives of the hyperparameters in the coordinate of the noise.
        along = np.where(self.linear, theta, 1.0) * self.powers / self.noise_power
        slope = slopes[self.noise] + along @ slopes
        slopes = np.where(
            self.linear & (self.powers != 0.0),
            slopes * np.exp(self._log_deviation(coordinates)),
            slopes,
        )
        slopes[self.noise] = slope
        return slopes

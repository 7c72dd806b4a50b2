"""Kernels on duels, on chosen columns and on featureless items, and gradients of kernels."""

from skpref.kernels._across import across
from skpref.kernels._gradients import (
    contracted_input_gradient,
    diag_gradient,
    input_gradient,
    kernel_with_gradient,
    spectral_sample,
    theta_gradient,
)
from skpref.kernels._hyperparameters import check_hyperparameters, lengthscale_indices
from skpref.kernels._identity import Identity, ItemEffect
from skpref.kernels._median import median_lengthscales
from skpref.kernels._product_matern import ProductMatern
from skpref.kernels._wrappers import OnColumns, PreferenceKernel

__all__ = [
    "Identity",
    "ItemEffect",
    "OnColumns",
    "PreferenceKernel",
    "ProductMatern",
    "across",
    "check_hyperparameters",
    "contracted_input_gradient",
    "diag_gradient",
    "input_gradient",
    "kernel_with_gradient",
    "lengthscale_indices",
    "median_lengthscales",
    "spectral_sample",
    "theta_gradient",
]

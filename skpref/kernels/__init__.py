"""Kernels on duels, on chosen columns and on featureless items, and gradients of kernels.

They go with scikit-learn's in sums, products and powers. One walk over the tree of a kernel answers
all that is asked of it: values, gradients in hyperparameters and inputs, spectra, units.
"""

from skpref.kernels._anchored import AnchorFeatures
from skpref.kernels._board import PART, PART_BOUNDS, leaderboard_kernel
from skpref.kernels._contracts import (
    PAIRED_ROWS,
    Kernel,
    difference_steps,
    far_origin,
    paired_kernel_values,
)
from skpref.kernels._features import (
    FiniteFeatures,
    Term,
    finite_features,
    finite_parts,
    has_kernel,
    intransitive_parts,
    parts_by_column,
    terms_of_sum,
    theta_places,
)
from skpref.kernels._gradients import (
    CrossKernel,
    across,
    contracted_input_gradient,
    diag_gradient,
    diag_with_gradient,
    input_gradient,
    kernel_values,
    kernel_with_gradient,
    spectral_sample,
    theta_gradient,
)
from skpref.kernels._hyperparameters import (
    amplitude_powers,
    check_hyperparameters,
    has_amplitude,
    hyperparameter_names,
    identity_columns,
    lengthscale_indices,
    median_lengthscales,
    reads_numbers,
    seen_columns,
    shortest_lengths,
    surely_covariance,
    time_powers,
)
from skpref.kernels._leaves import Identity, ItemEffect, Linear, ProductMatern, Seasons, Wiener
from skpref.kernels._outside import outside_option_kernel
from skpref.kernels._state_space import Drift, Drifts, Process, drifts_of
from skpref.kernels._views import features_part, with_centred_linear_terms
from skpref.kernels._wrappers import (
    Intransitive,
    OnColumns,
    Padded,
    PreferenceKernel,
    Teams,
    all_columns,
)

__all__ = [
    "Identity",
    "Intransitive",
    "ItemEffect",
    "Linear",
    "OnColumns",
    "Padded",
    "PreferenceKernel",
    "ProductMatern",
    "Seasons",
    "Teams",
    "Wiener",
    "across",
    "check_hyperparameters",
    "contracted_input_gradient",
    "diag_gradient",
    "input_gradient",
    "kernel_with_gradient",
    "leaderboard_kernel",
    "lengthscale_indices",
    "median_lengthscales",
    "outside_option_kernel",
    "spectral_sample",
    "theta_gradient",
]

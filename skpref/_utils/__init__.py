"""What every room may use and what knows of no other: matrices, panels, checks, threads, warnings.

Factorisations with rounding bounds, parameters' checks, leases, random sources, threads of linear
algebra, warnings that name the caller's line, scikit-learn's metadata, and its callbacks where it
has them.
"""

from skpref._utils._files import replace_files
from skpref._utils._lease import Lease
from skpref._utils._linalg import (
    BLOCK,
    ITERATION_CAP,
    NEGLIGIBLE,
    ROUNDING,
    TOLERANCE,
    UNIT,
    Array,
    NoCovarianceError,
    cholesky,
    cholesky_blocks,
    covariance_of,
    eigen_root,
    floor_variance,
    inverse_blocks,
    inverse_cholesky,
    is_covariance,
    jointly_diagonal,
    leading_axes,
    pivoted_cholesky,
    positive_blocks,
    pseudosolve_blocks,
    row_blocks,
    semidefinite_blocks,
    semidefinite_root,
    solve_band,
    solve_blocks,
    solve_lower,
    spanning_columns,
    spectrum_blocks,
    symmetric_root,
    unit_triangular_band,
)
from skpref._utils._metadata import (
    calibration_method,
    check_metadata_requested,
    given_metadata,
    refuse_dropped,
    unrequested_metadata,
    validates_methods,
)
from skpref._utils._older_sklearn import (
    CallbackSupportMixin,
    ProgressBar,
    scored_tags,
    with_callbacks,
)
from skpref._utils._panels import DEPTH, PANEL_NODES, PANEL_WEIGHTS, adaptive_panels
from skpref._utils._parameters import (
    check_bounds,
    check_choice,
    check_lognormal,
    check_number,
    check_scoring_weights,
)
from skpref._utils._random import RandomLike, make_generator, read_random_state, seed_of, sobol
from skpref._utils._records import (
    Fields,
    Recorded,
    check_shapes,
    serializable_types,
    skpref_version,
)
from skpref._utils._roots import bracketed_roots
from skpref._utils._summary import (
    PrintableBunch,
    Summarised,
    csv_cell,
    csv_text,
    html_table,
    html_text,
    printable_text,
    probability_text,
    whole_percent,
)
from skpref._utils._threads import blas_threads
from skpref._utils._warnings import warn

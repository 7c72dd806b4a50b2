"""Kernels on rows that say more than items do: `Padded`."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct

from skpref.kernels import (
    Identity,
    Linear,
    OnColumns,
    Padded,
    across,
    diag_gradient,
    features_part,
    finite_features,
    finite_parts,
    hyperparameter_names,
    input_gradient,
    kernel_values,
    kernel_with_gradient,
    seen_columns,
    spectral_sample,
    with_centred_linear_terms,
)

RNG = np.random.default_rng(0)
ITEMS = np.column_stack([RNG.integers(0, 3, 6), RNG.normal(size=6)])
ROWS = np.column_stack([ITEMS[:4], [1.0, -1.0, 0.5, 2.0], [0.0, 1.0, 1.0, 0.0]])
FILL = (0.5, 2.0)
INNER = (
    OnColumns(Identity(), [0]) * OnColumns(Linear(), [2])
    + ConstantKernel(0.7) * OnColumns(Linear(2.0, centre=0.5), [1])
    + ConstantKernel(0.3) * (OnColumns(Linear(centre=0.25), [3]) * OnColumns(Identity(), [0]))
)
SMOOTH = INNER + ConstantKernel(0.4) * (OnColumns(RBF(0.8), [1]) * OnColumns(Linear(), [2]))


def filled(X):
    return np.hstack([X, np.tile(FILL, (len(X), 1))])


@pytest.mark.parametrize("inner", [INNER, SMOOTH], ids=["linear", "smooth"])
def test_items_are_rows_with_what_is_filled_in(inner):
    kernel = Padded(inner, 2, FILL)
    whole = inner(filled(ITEMS))
    assert_allclose(kernel(ITEMS), whole)
    assert_allclose(kernel.diag(ITEMS), np.diagonal(whole))
    for values in (kernel(ITEMS, ROWS), kernel_values(kernel, ITEMS, ROWS)):
        assert_allclose(values, inner(filled(ITEMS), ROWS))
    assert_allclose(across(kernel, ITEMS, ROWS)[0], inner(filled(ITEMS), ROWS))
    assert_allclose(kernel_with_gradient(kernel, ITEMS)[0], whole)
    assert_allclose(kernel(ITEMS, eval_gradient=True)[1], inner(filled(ITEMS), None, True)[1])
    assert clone(kernel) == kernel != Padded(inner, 2, (0.5, 1.0))
    assert kernel.theta.shape == inner.theta.shape
    assert len(hyperparameter_names(kernel)) == len(kernel.theta)


def test_gradients_are_in_the_columns_of_the_items():
    kernel = Padded(SMOOTH, 2, FILL)
    found = input_gradient(kernel, ITEMS, ROWS)
    assert found.shape == (6, 4, 2)
    assert_allclose(found, input_gradient(SMOOTH, filled(ITEMS), ROWS)[..., :2])
    assert_allclose(diag_gradient(kernel, ITEMS), diag_gradient(SMOOTH, filled(ITEMS))[:, :2])


def test_features_of_items_are_those_at_the_fill():
    kernel = Padded(INNER, 2, FILL)
    finite = finite_features(kernel, 2)
    assert {column for term in finite.terms for column in term.columns} == {0, 1}
    total, at = np.zeros((6, 6)), 0
    for term in finite.terms:
        group = ITEMS[:, list(term.group)]
        same = np.all(group[:, None] == group[None], axis=2)
        n = len(term.monomials)
        values = term.values(ITEMS)
        total += same * ((values * finite.variance[at : at + n]) @ values.T)
        at += n
    assert_allclose(total, kernel(ITEMS))
    assert finite_features(kernel, 4).terms == finite_features(INNER, 4).terms
    few, rest = finite_parts(Padded(SMOOTH, 2, FILL), 2)
    assert_allclose(few(ITEMS) + rest(ITEMS), SMOOTH(filled(ITEMS)))


def test_questions_about_columns_are_about_those_of_items():
    kernel = Padded(SMOOTH, 2, FILL)
    assert seen_columns(kernel, 2) == ([0], [1])
    assert spectral_sample(kernel, 10, 2, RNG) is None
    shared = features_part(kernel, 2, id_column=0)
    assert isinstance(shared, Padded) and seen_columns(shared, 2)[1] == [1]
    far = Padded(OnColumns(DotProduct(), [1]), 2, FILL)
    moved = with_centred_linear_terms(far, ITEMS + np.array([0.0, 1e4]))
    assert isinstance(moved, Padded) and isinstance(moved.kernel.kernel, Linear)


def test_rows_of_other_widths_are_refused():
    for width in (1, 5):
        with pytest.raises(ValueError, match=f"rows of {width} columns; Padded takes items of 2 "):
            Padded(INNER, 2, FILL)(np.zeros((1, width)))


def test_rows_that_have_some_of_the_further_columns():
    kernel, whole = Padded(INNER, 2, FILL), np.hstack([ITEMS, np.tile(FILL, (len(ITEMS), 1))])
    np.testing.assert_array_equal(kernel(whole[:, :3], ITEMS), kernel(whole))

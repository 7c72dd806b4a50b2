"""Users and items in the plane in which tastes differ most."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skpref._utils import check_number
from skpref.inspection import user_tastes
from skpref.plotting._style import (
    SIZES,
    Display,
    check_matplotlib,
    density_ellipse,
    draw_legend_above,
    ellipse_radius,
    hide_frame,
    label_with_unit,
    palette,
    percent_text,
    place_labels,
    short_name,
    thin_look,
    update_layout,
)


@dataclass(eq=False, kw_only=True, repr=False)
class TastesDisplay(Display):
    """Where users stand in the plane in which their utilities differ most, and what items do there.

    A user who stands towards the tip of an item's line likes it more than the population does.
    Made by `from_estimator`; the parameters are kept as attributes.

    Parameters
    ----------
    users : array-like of shape (n_users,)
    tastes : ndarray of shape (n_users, 2)
    covariance : ndarray of shape (n_users, 2, 2)
    names : array-like of shape (n_items,)
    loadings : ndarray of shape (n_items, 2)
    share : ndarray of shape (2,)
        See `skpref.inspection.user_tastes`.
    level : float
        Of the ellipses.
    n_items : int
        How many items are drawn, those of the longest lines.
    unit : {"noise", "elo", "logit"}

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    points_ : Line2D
        Users.
    ellipses_ : list of Ellipse
        Empty of more than 25 users.
    items_ : LineCollection
    labels_ : list of Text

    Examples
    --------
    >>> from skpref import CollaborativePreferenceRegressor
    >>> from skpref.plotting import TastesDisplay
    >>> duels = [["tea", "milk"], ["tea", "coffee"], ["coffee", "tea"], ["coffee", "milk"]] * 3
    >>> people = ["ann", "ann", "bob", "bob"] * 3
    >>> model = CollaborativePreferenceRegressor(optimizer=None).fit(duels, users=people)
    >>> TastesDisplay.from_estimator(model).users.tolist()  # doctest: +SKIP
    ['ann', 'bob']
    """

    users: ArrayLike
    tastes: NDArray[np.float64]
    covariance: NDArray[np.float64]
    names: ArrayLike
    loadings: NDArray[np.float64]
    share: NDArray[np.float64]
    level: float = 0.5
    n_items: int = 8
    unit: str = "noise"

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        items: Any = None,
        *,
        level: float = 0.5,
        n_items: int = 8,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Ask how users differ and draw it.

        Parameters
        ----------
        model, items
            See `skpref.inspection.user_tastes`.
        level : float, default=0.5
            Probability that a user's ellipse holds.
        n_items : int, default=8
            How many items are drawn, those of the longest lines.
        ax : matplotlib Axes, default=None
        **options
            For `user_tastes`, such as ``users=["ann"]``.

        Returns
        -------
        TastesDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            As `user_tastes`.
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        check_number("level", level, low=0.0, high=1.0, open_low=True, open_high=True)
        check_number("n_items", n_items, low=0, integer=True)
        tastes = user_tastes(model, items, **options)
        columns = {name: tastes[name] for name in cls.__dataclass_fields__ if name in tastes}
        return cls(**columns, level=level, n_items=n_items).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or on a new figure, and return the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None

        Returns
        -------
        TastesDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        ax = self._new_axes(ax, (4.8, 4.9))
        colors = palette(ax)
        ax.axhline(0.0, **thin_look())
        ax.axvline(0.0, **thin_look())
        self.ellipses_ = []
        if len(self.tastes) <= SIZES.named_points:
            for at, covariance in zip(self.tastes, self.covariance, strict=True):
                drawn = density_ellipse(at, covariance, self.level)
                drawn.set(facecolor=colors.blue, alpha=0.12, edgecolor="none")
                self.ellipses_.append(ax.add_patch(drawn))
        (self.points_,) = ax.plot(
            *self.tastes.T, "o", color=colors.blue, markersize=4.0, label="users", zorder=3
        )
        lengths = np.linalg.norm(self.loadings, axis=1)
        chosen = np.sort(np.argsort(-lengths, kind="stable")[: self.n_items])
        # Lines as long as the users' distances are wide: only directions and ratios are told.
        widest = np.abs(self.tastes).max() or 1.0
        tips = self.loadings[chosen] * (widest / (lengths[chosen].max(initial=0.0) or 1.0))
        segments: Any = np.stack([np.zeros_like(tips), tips], axis=1)
        from matplotlib.collections import LineCollection

        self.items_ = LineCollection(
            segments, colors=colors.orange, linewidths=1.2, label="items", zorder=2
        )
        ax.add_collection(self.items_)
        spread = np.sqrt(np.diagonal(self.covariance, axis1=1, axis2=2).max(initial=0.0))
        reach = 1.1 * widest + min(ellipse_radius(self.level) * spread, 0.6 * widest)
        ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
        words = ("first", "second")
        for word, part, set_label in zip(
            words, self.share, (ax.set_xlabel, ax.set_ylabel), strict=True
        ):
            what = f"{word} direction of taste, {percent_text(round(float(part), 2))}"
            set_label(label_with_unit(what, self.unit) if word == "first" else what)
        hide_frame(ax)
        draw_legend_above(ax, 2)
        update_layout(ax)
        label_texts = self._label_texts(self.names, chosen)
        every = [(at, name, colors.orange) for at, name in zip(tips, label_texts, strict=True)]
        if len(self.tastes) <= SIZES.named_points:
            label_texts = self._label_texts(self.users, range(len(self.tastes)))
            every += [
                (at, name, colors.blue) for at, name in zip(self.tastes, label_texts, strict=True)
            ]
        self.labels_ = place_labels(ax, every)
        return self

    @staticmethod
    def _label_texts(names, chosen):
        """Return the short names of chosen users or items."""
        listed = np.asarray(names, dtype=object).tolist()
        return [short_name(listed[k]) for k in chosen]

"""Win rates, traces, judges, tastes, residuals, acquisitions: what is drawn is what was found."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tiers_support import thinned

from skpref import (
    CollaborativePreferenceRegressor,
    HallucinationBelieverOptimizer,
    PairwisePreferenceRegressor,
)
from skpref.inference import HMC
from skpref.inspection import (
    group_residuals,
    judge_reliability,
    sampler_traces,
    user_tastes,
    win_rates,
)
from skpref.optimize import ActiveLearner
from skpref.plotting import (
    AcquisitionDisplay,
    JudgesDisplay,
    ResidualsDisplay,
    TastesDisplay,
    TracesDisplay,
    WinRatesDisplay,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

RNG = np.random.default_rng(1)
NAMES = np.array(
    ["ann", "$bob$", "cid of the long name and the longer one", "dan", "eve", "fay"], dtype=object
)
PAIRS = np.array([RNG.choice(6, 2, replace=False) for _ in range(120)])
GAMES = NAMES[PAIRS]
MARGIN = 0.6 * (PAIRS[:, 1] - PAIRS[:, 0]) + RNG.normal(size=120)
Y = (MARGIN > 0.0).astype(int)
WHO = np.array([f"judge {k} of a panel with a name" for k in range(5)], dtype=object)[
    np.arange(120) % 5
]
TURN = np.arange(120) % 5
ODD = np.select([TURN == 1, TURN == 2], [1 - Y, RNG.integers(0, 2, 120)], Y)
GROUPS = np.array(["English", "German", "a language with a name"])[np.arange(120) % 3]


def one(**params):
    return PairwisePreferenceRegressor(
        **{"optimizer": None, "noise_variance": 0.5, "random_state": 0} | params
    )


@pytest.fixture(scope="module")
def models():
    optimizer = HallucinationBelieverOptimizer({"heat": (60.0, 100.0), "n": (1, 9)}, random_state=0)
    optimizer.run(lambda a, b: abs(a["heat"] - 80.0) < abs(b["heat"] - 80.0), 12)
    alike = CollaborativePreferenceRegressor(optimizer=None, noise_variance=0.5)
    return {
        "plain": one().fit(GAMES, Y),
        "ties": one(tie_threshold=0.3).fit(GAMES, np.where(np.abs(MARGIN) < 0.4, 0, 2 * Y - 1)),
        "drawn": one(inference=HMC(draws=120, chains=4)).fit(GAMES, Y),
        "judged": one().fit(GAMES, ODD, judges=WHO),
        "many": alike.fit(GAMES, ODD, users=WHO),
        "optimizer": optimizer,
    }


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def drawn(models):
    """Every display, as a call that takes axes."""
    told = {"groups": GROUPS}
    ties = np.where(np.abs(MARGIN) < 0.4, 0, 2 * Y - 1)
    return {
        "rates": lambda ax: WinRatesDisplay.from_estimator(models["plain"], ax=ax),
        "traces": lambda ax: TracesDisplay.from_estimator(models["drawn"], ax=ax),
        "judges": lambda ax: JudgesDisplay.from_estimator(models["judged"], ax=ax),
        "tastes": lambda ax: TastesDisplay.from_estimator(models["many"], ax=ax),
        "residuals": lambda ax: ResidualsDisplay.from_estimator(
            models["plain"], GAMES, Y, **told, ax=ax
        ),
        "residuals of ties": lambda ax: ResidualsDisplay.from_estimator(
            models["ties"], GAMES, ties, **told, ax=ax
        ),
        "acquisition": lambda ax: AcquisitionDisplay.from_optimizer(
            models["optimizer"], resolution=12, ax=ax
        ),
    }


ALL = ("rates", "traces", "judges", "tastes", "residuals", "residuals of ties", "acquisition")


def texts(figure):
    """Every text that is seen, by axes."""
    for ax in figure.axes:
        ticks = [
            tick
            for axis in (ax.xaxis, ax.yaxis)
            for tick, place in zip(axis.get_ticklabels(), axis.get_ticklocs(), strict=True)
            if min(axis.get_view_interval()) <= place <= max(axis.get_view_interval())
        ]
        legend = ax.get_legend()
        entries = [] if legend is None else legend.get_texts()
        labels = [ax.xaxis.label, ax.yaxis.label, ax.title, ax._left_title]
        yield [each for each in [*ticks, *entries, *labels, *ax.texts] if each.get_text()]


@pytest.mark.parametrize("name", thinned(ALL, 4))
@pytest.mark.parametrize("layout", ["constrained", None])
def test_letters_have_room_in_a_column_of_a_paper(models, name, layout):
    """88 mm wide, letters of 7 points: no text leaves the figure or covers another."""
    with plt.rc_context({"font.size": 7.0}):
        figure, ax = plt.subplots(figsize=(3.46, 3.3), layout=layout)
        display = drawn(models)[name](ax)
        assert display.ax_ is ax and display.figure_ is figure
        figure.canvas.draw()
        whole = figure.bbox.padded(1.0)
        for shown in texts(figure):
            boxes = [(each.get_text(), each.get_window_extent()) for each in shown]
            boxes = [(text, box) for text, box in boxes if box.width > 0.0]
            for i, (text, box) in enumerate(boxes):
                assert whole.x0 <= box.x0 and box.x1 <= whole.x1, text
                assert whole.y0 <= box.y0 and box.y1 <= whole.y1, text
                for other, there in boxes[i + 1 :]:
                    wide = min(box.x1, there.x1) - max(box.x0, there.x0)
                    tall = min(box.y1, there.y1) - max(box.y0, there.y0)
                    assert min(wide, tall) <= 1.5, (text, other)
        assert not any("cid of the long name and the longer one" in str(t) for t in ax.texts)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_they_are_drawn_on_a_dark_ground_and_again(models, name):
    figure, ax = plt.subplots(facecolor="black")
    ax.set_facecolor("black")
    display = drawn(models)[name](ax)
    again = display.plot()
    assert again is display and display.figure_ is not figure


@pytest.mark.slow
def test_cells_are_the_win_rates(models):
    rates = win_rates(models["plain"])
    display = WinRatesDisplay.from_estimator(models["plain"], top=4)
    assert display.names.tolist() == rates.names[:4].tolist()
    shown = np.ma.filled(display.image_.get_array(), np.nan)
    apart = ~np.eye(4, dtype=bool)
    assert_allclose(shown[apart], rates.win[:4, :4][apart])
    assert np.isnan(shown[~apart]).all()
    assert len(display.annotations_) == 12
    for text in display.annotations_:
        j, i = text.get_position()
        assert text.get_text() == f"{100.0 * rates.win[int(i), int(j)]:.0f}"
    assert WinRatesDisplay.from_estimator(models["plain"], annotate=False).annotations_ == []
    many = WinRatesDisplay(names=np.arange(80), win=np.full((80, 80), 0.5))
    assert many.plot(plt.subplots(figsize=(3.0, 3.0))[1]).annotations_ == []
    sure = WinRatesDisplay(names=["a", "b"], win=np.array([[0.5, 0.9999], [0.0001, 0.5]])).plot()
    assert [text.get_text() for text in sure.annotations_] == [">99", "<1"]
    tied = win_rates(models["ties"])
    halved = WinRatesDisplay.from_estimator(models["ties"])
    apart = ~np.eye(6, dtype=bool)
    share = np.ma.filled(halved.image_.get_array(), np.nan)
    assert_allclose(share[apart], (tied.win + 0.5 * tied.tie)[apart])
    assert_allclose((share + share.T)[apart], 1.0)
    assert "½" in halved.ax_.get_xlabel() and "½" not in display.ax_.get_xlabel()
    with pytest.raises(ValueError, match="top must"):
        WinRatesDisplay.from_estimator(models["plain"], top=0)


def test_lines_are_the_traces(models):
    found = sampler_traces(models["drawn"], top=5, unit="logit")
    display = TracesDisplay.from_estimator(models["drawn"], unit="logit")
    assert [len(chains) for chains in display.lines_] == [4] * 5
    base = np.array([np.mean([line.get_ydata() for line in row]) for row in display.lines_])
    assert np.all(np.diff(base) < 0.0)
    assert_allclose(np.diff(base), np.diff(base)[0])  # rows stand equally far apart
    for row, start, trace in zip(display.lines_, base, found.draws, strict=True):
        away = trace - trace.mean()
        for line, chain in zip(row, away, strict=True):
            assert_allclose(line.get_ydata() - start, chain, atol=1e-9)
    told = [text.get_text() for text in display.annotations_]
    pairs = zip(found.rhat, found.ess, strict=True)
    assert told == [f"R̂ {r:.3f}, {e:.0f} effective" for r, e in pairs]
    names = [text.get_text().split("\n")[0] for text in display.ax_.get_yticklabels()]
    assert any("…" in name for name in names) or len(names) == 5
    with pytest.raises(ValueError, match="no draws"):
        TracesDisplay.from_estimator(models["plain"])


def test_marks_tell_what_judges_do(models):
    found = judge_reliability(models["judged"], level=0.5)
    display = JudgesDisplay.from_estimator(models["judged"], level=0.5)
    assert set(display.points_) <= {"reliable", "at random", "wrong way round"}
    assert "wrong way round" in display.points_
    lowest = display.points_["wrong way round"].get_data()
    assert_allclose(lowest, [[found.reliability[-1]], [4]])
    ends = np.array([path.vertices[:, 0] for path in display.intervals_.get_paths()])
    assert_allclose(ends, np.column_stack([found.lower, found.upper]))
    drawn = np.concatenate([line.get_xdata() for line in display.points_.values()])
    assert_allclose(np.sort(drawn), np.sort(found.reliability))
    assert "50 %" in display.ax_.get_xlabel()
    with pytest.raises(ValueError, match=r"least_answers=25; the most are 24"):
        JudgesDisplay.from_estimator(models["judged"], least_answers=25)
    with pytest.raises(ValueError, match="knows no judges"):
        JudgesDisplay.from_estimator(models["plain"])


def test_points_are_users_and_lines_are_items(models):
    found = user_tastes(models["many"])
    display = TastesDisplay.from_estimator(models["many"], level=0.8, n_items=3)
    assert_allclose(np.transpose(display.points_.get_data()), found.tastes)
    tips = np.array([segment[1] for segment in display.items_.get_segments()])
    lengths = np.linalg.norm(found.loadings, axis=1)
    chosen = np.sort(np.argsort(-lengths)[:3])
    ratio = tips / found.loadings[chosen]
    assert_allclose(ratio, ratio[0, 0])  # one scale for all
    # An ellipse holds as much of the normal as it says.
    draws = RNG.multivariate_normal(found.tastes[0], found.covariance[0], size=4000)
    ellipse = display.ellipses_[0]
    inside = ellipse.get_patch_transform().inverted().transform(draws)
    assert np.mean(np.sum(inside**2, axis=1) < 1.0) == pytest.approx(0.8, abs=0.03)
    with pytest.raises(ValueError, match="one utility for all"):
        TastesDisplay.from_estimator(models["plain"])
    with pytest.raises(ValueError, match="level must"):
        TastesDisplay.from_estimator(models["many"], level=0.0)


@pytest.mark.parametrize(("model", "n"), [("plain", 1), ("ties", 3)])
def test_points_are_the_residuals(models, model, n):
    y = Y if model == "plain" else np.where(np.abs(MARGIN) < 0.4, 0, 2 * Y - 1)
    proba, classes = models[model].predict_proba(GAMES), models[model].classes_
    found = group_residuals(y, proba, GROUPS, classes=classes, level=0.6)
    told = {"groups": GROUPS, "level": 0.6}
    display = ResidualsDisplay.from_estimator(models[model], GAMES, y, **told)
    order = [1] if n == 1 else [2, 1, 0]
    assert len(display.points_) == len(display.bands_) == n
    for j, line, band in zip(order, display.points_, display.bands_, strict=True):
        assert_allclose(line.get_xdata(), found.residual[:, j])
        ends = np.array([path.vertices[:, 0] for path in band.get_paths()])
        assert_allclose(ends, found.band[:, [j]] * [-1.0, 1.0])
    surprise = ResidualsDisplay.from_estimator(models[model], GAMES, y, kind="surprise", **told)
    assert_allclose(surprise.points_[0].get_xdata(), found.surprise)
    assert "60 %" in surprise.ax_.get_xlabel()


def test_choices_have_a_surprise_alone():
    p, y = RNG.dirichlet(np.ones(4), size=30), RNG.integers(0, 4, 30)
    told = (y, p, np.arange(30) % 2)
    display = ResidualsDisplay.from_predictions(*told, classes=[0, 1, 2, 3])
    assert_allclose(display.points_[0].get_xdata(), display.surprise)
    with pytest.raises(ValueError, match='kind="surprise"'):
        ResidualsDisplay.from_predictions(*told, classes=[0, 1, 2, 3], kind="outcomes")
    with pytest.raises(ValueError, match="kind must"):
        ResidualsDisplay.from_predictions(*told, kind="bars")


def test_the_surface_is_the_acquisition(models):
    optimizer = models["optimizer"]
    found = optimizer.acquisition_surface(("n", "heat"), resolution=15)
    display = AcquisitionDisplay.from_optimizer(optimizer, ("n", "heat"), resolution=15)
    assert_array_equal(display.acquisition, found.acquisition)
    assert display.acquisition.shape == (9, 15)  # nine whole numbers
    assert_allclose(np.transpose(display.shown_.get_data()), found.shown)
    assert_allclose(np.ravel(display.best_.get_data()), found.best)
    ax = display.ax_
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("n", "heat")
    for axis, places, values in zip((ax.xaxis, ax.yaxis), found.unit, found.grid, strict=True):
        ticks = [float(text.get_text()) for text in axis.get_ticklabels()]
        assert len(ticks) >= 3
        assert_allclose(np.interp(ticks, values, places), axis.get_ticklocs())
    assert "improvement" in display.colorbar_.ax.get_ylabel()
    X = RNG.uniform(size=(5, 2, 2))
    with pytest.raises(TypeError, match="PreferenceOptimizer; got ActiveLearner"):
        AcquisitionDisplay.from_optimizer(ActiveLearner(one(), X))

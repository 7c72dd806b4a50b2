"""Listeners to a fit, and searches of a known length."""

import importlib.util

import pytest

HAS_CALLBACKS = importlib.util.find_spec("sklearn.callback") is not None
needs_callbacks = pytest.mark.skipif(
    not HAS_CALLBACKS, reason="scikit-learn has callbacks from 1.9 on"
)


class Listener:
    """A callback that keeps the names of the tasks, and may ask to stop."""

    def __init__(self, stop_at=None, task="evaluation"):
        self.stop_at, self.task, self.begun, self.ended = stop_at, task, [], []
        self.closed = 0

    def setup(self, estimator, context):
        self.begun, self.ended = [], []

    def on_fit_task_begin(self, estimator, context, **_):
        self.begun.append(context.task_name)

    def on_fit_task_end(self, estimator, context, **_):
        self.ended.append(context.task_name)
        return self.ended.count(self.task) == self.stop_at

    def teardown(self, estimator, context):
        self.closed += 1


def counted(calls):
    """An optimizer that evaluates so many times."""

    def optimizer(obj_func, initial_theta, bounds):
        best = None
        for k in range(calls):
            theta = initial_theta + 0.1 * k
            value, _ = obj_func(theta)
            if best is None or value < best[1]:
                best = theta, value
        return best

    return optimizer

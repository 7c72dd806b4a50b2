"""Sources of random numbers: every kind is taken, seeds repeat themselves, sources move on."""

import numpy as np
import pytest

from skpref._utils._random import make_generator, read_random_state, seed_of

SOURCES = (np.random.default_rng, np.random.RandomState)


def test_seeds_from_every_kind_of_random_state():
    assert seed_of(7) == 7
    assert seed_of(np.int64(7)) == 7
    assert seed_of(None) is None
    for kind in SOURCES:
        assert seed_of(kind(1)) == seed_of(kind(1)) != seed_of(kind(2))
        source = kind(1)
        assert seed_of(source) != seed_of(source)
    with pytest.raises(ValueError, match="random_state must lie in"):
        seed_of(-1)
    for odd in (1.5, "one", True):
        with pytest.raises(TypeError, match="random_state must be an integer"):
            seed_of(odd)


def test_generators_from_every_kind_of_source():
    own = np.random.default_rng(0)
    assert make_generator(own) is own
    assert make_generator(5).random() == make_generator(np.int64(5)).random()
    assert make_generator(5).random() == np.random.default_rng(5).random()
    assert make_generator(None).random() != make_generator(None).random()
    source = np.random.RandomState(1)
    assert make_generator(source).random() == make_generator(np.random.RandomState(1)).random()
    assert make_generator(source).random() != make_generator(np.random.RandomState(1)).random()


def test_a_generator_is_a_source_of_its_own():
    generator = np.random.default_rng(0)
    assert read_random_state(generator) is generator
    assert isinstance(read_random_state(0), np.random.RandomState)
    assert read_random_state(5).randint(100) == np.random.RandomState(5).randint(100)

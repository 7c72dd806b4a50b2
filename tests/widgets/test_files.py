"""Pictures and sounds as files: what other readers find in them."""

import io
import struct
import wave
import zlib

import numpy as np
import pytest

from skpref.widgets._files import encode_png, encode_wav

RNG = np.random.default_rng(0)


def pixels_of(content):
    """A PNG of 8 bits without filters, read by the letter of its standard."""
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(content):
        (n,) = struct.unpack(">I", content[at : at + 4])
        name, body = content[at + 4 : at + 8], content[at + 8 : at + 8 + n]
        (check,) = struct.unpack(">I", content[at + 8 + n : at + 12 + n])
        assert check == zlib.crc32(name + body)
        chunks[name], at = body, at + 12 + n
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, depth, colour, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, rest) == (8, [0, 0, 0])
    channels = {0: 1, 2: 3, 6: 4}[colour]
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), dtype=np.uint8).reshape(height, -1)
    assert not rows[:, 0].any()
    found = rows[:, 1:].reshape(height, width, channels)
    return found[:, :, 0] if channels == 1 else found


@pytest.mark.parametrize("shape", [(3, 5), (4, 2, 3), (1, 7, 4)])
def test_a_picture_comes_back(shape):
    levels = RNG.integers(0, 256, shape)
    for given in (levels, levels.astype(np.uint8), levels / 255.0, np.float32(levels / 255.0)):
        np.testing.assert_array_equal(pixels_of(encode_png(given)), levels)
    flags = levels > 100
    np.testing.assert_array_equal(pixels_of(encode_png(flags)), 255 * flags)


def test_another_reader_sees_the_same_picture():
    images = pytest.importorskip("PIL.Image")
    levels = RNG.integers(0, 256, (6, 4, 3)).astype(np.uint8)
    np.testing.assert_array_equal(np.asarray(images.open(io.BytesIO(encode_png(levels)))), levels)


def test_values_beyond_by_rounding_are_taken_for_the_ends():
    assert pixels_of(encode_png(np.array([[-1e-9, 1.0 + 1e-9]]))).tolist() == [[0, 255]]


@pytest.mark.parametrize(
    ("picture", "words"),
    [
        (np.zeros(5), r"shape \(height, width\).*got \(5,\).*rate"),
        (np.zeros((4, 4, 2)), r"got \(4, 4, 2\)"),
        (np.zeros((0, 4)), r"got \(0, 4\)"),
        (np.full((2, 2), 1.5), r"from 0 to 1.*1\.5.*np\.clip\(picture, 0, 1\)"),
        (np.full((2, 2), 256), r"from 0 to 255"),
        (np.full((2, 2), -1), r"from 0 to 255"),
        (np.array([[0.5, np.nan]]), r"from 0 to 1, got some from nan"),
        (np.full((2, 2), "a"), "of numbers"),
    ],
)
def test_no_picture(picture, words):
    with pytest.raises(ValueError, match=words):
        encode_png(picture)


@pytest.mark.parametrize("shape", [(50,), (50, 1), (50, 2)])
def test_a_sound_comes_back(shape):
    samples = RNG.uniform(-1.0, 1.0, shape)
    whole = np.rint(32767 * samples).astype(np.int16)
    for given in (samples, whole):
        with wave.open(io.BytesIO(encode_wav(8000, given))) as file:
            assert (file.getframerate(), file.getnframes(), file.getsampwidth()) == (8000, 50, 2)
            found = np.frombuffer(file.readframes(50), dtype="<i2").reshape(50, -1)
        np.testing.assert_array_equal(found, whole.reshape(50, -1))


@pytest.mark.parametrize(
    ("rate", "samples", "words"),
    [
        (8000, np.zeros((2, 50)), r"\(n, n_channels\), got \(2, 50\)"),
        (8000, np.zeros(0), r"got \(0,\)"),
        (0, np.zeros(9), "got 0"),
        (8000, np.full(9, 1.5), r"up to 1\.5"),
        (8000, np.full(9, np.nan), "up to nan"),
        (8000, np.zeros(9, dtype=np.int64), "int16 as samples, got int64"),
    ],
)
def test_no_sound(rate, samples, words):
    with pytest.raises(ValueError, match=words):
        encode_wav(rate, samples)

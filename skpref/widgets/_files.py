"""Arrays as files that a browser shows: pictures as PNG, sounds as WAV."""

import io
import struct
import wave
import zlib
from typing import Any

import numpy as np

# Colour type of a PNG by its number of channels.
_COLOURS = {1: 0, 3: 2, 4: 6}
# Values this far beyond the ends of their range count as rounding.
_ROUNDING = np.sqrt(np.finfo(np.float32).eps)


def encode_png(pixels: np.ndarray) -> bytes:
    """Return a picture as the bytes of a PNG.

    Parameters
    ----------
    pixels : ndarray of shape (height, width), (height, width, 3) or (height, width, 4)
        Grey, RGB or RGBA. Floats from 0 to 1, integers from 0 to 255, or booleans.

    Raises
    ------
    ValueError
        If it has another shape or other values.
    """
    pixels = np.asarray(pixels)
    channels = pixels.shape[2] if pixels.ndim == 3 else 1
    if pixels.ndim not in (2, 3) or channels not in _COLOURS or not pixels.size:
        raise ValueError(
            "A picture has shape (height, width), (height, width, 3) or (height, width, 4), got "
            f"{pixels.shape}. Give a sound with its rate, (rate, samples); draw a curve as a "
            "matplotlib figure."
        )
    levels = _pixel_bytes(pixels)
    rows = levels.reshape(len(levels), -1)
    body = np.concatenate([np.zeros((len(rows), 1), dtype=np.uint8), rows], axis=1)  # no filter
    head = struct.pack(">IIBBBBB", levels.shape[1], len(levels), 8, _COLOURS[channels], 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _png_chunk(b"IHDR", head)
        + _png_chunk(b"IDAT", zlib.compress(body.tobytes()))
        + _png_chunk(b"IEND", b"")
    )


def _pixel_bytes(pixels):
    """Return pixels as bytes; ValueError for values out of their range."""
    kind = pixels.dtype.kind
    if kind not in "biuf":
        raise ValueError(f"A picture is of numbers, got an array of dtype {pixels.dtype}.")
    top = 1 if kind in "bf" else 255
    low, high = pixels.min(), pixels.max()
    if not (low >= -_ROUNDING and high <= top + _ROUNDING):  # nor NaN
        raise ValueError(
            f"A picture of dtype {pixels.dtype} has values from 0 to {top}, got some from {low} to "
            f"{high}. Scale them, or clip them by np.clip(picture, 0, {top})."
        )
    if top == 255:
        return pixels.astype(np.uint8)
    return np.rint(255.0 * np.clip(pixels.astype(np.float64), 0.0, 1.0)).astype(np.uint8)


def _png_chunk(name, content):
    """Return a chunk of a PNG with its length and checksum."""
    return (
        struct.pack(">I", len(content))
        + name
        + content
        + struct.pack(">I", zlib.crc32(name + content))
    )


def encode_wav(rate: int, samples: Any) -> bytes:
    """Return a sound as the bytes of a WAV of 16 bits.

    Parameters
    ----------
    rate : int
        Samples a second.
    samples : ndarray of shape (n,) or (n, n_channels)
        Floats from -1 to 1, or integers of 16 bits.

    Raises
    ------
    ValueError
        If it has another shape or other values, or the rate is not positive.
    """
    samples = np.asarray(samples)
    rows = samples[:, None] if samples.ndim == 1 else samples
    if rows.ndim != 2 or not rows.size or rows.shape[1] > rows.shape[0]:
        raise ValueError(
            f"A sound has samples of shape (n,) or (n, n_channels), got {samples.shape}; channels "
            "are columns."
        )
    if rate < 1:
        raise ValueError(f"The rate of a sound is a number of samples a second, got {rate}.")
    if rows.dtype.kind == "f":
        peak = np.abs(rows).max()
        if not peak <= 1.0 + _ROUNDING:  # nor NaN
            raise ValueError(
                f"A sound of floats has samples from -1 to 1, got up to {peak}. Divide all sounds "
                "by one number, so that none is louder for it, or clip them."
            )
        rows = np.rint(32767.0 * np.clip(rows, -1.0, 1.0))
    elif rows.dtype != np.int16:
        raise ValueError(
            f"A sound has floats from -1 to 1 or int16 as samples, got {rows.dtype}. Convert them."
        )
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(rows.shape[1])
        file.setsampwidth(2)
        file.setframerate(int(rate))
        file.writeframes(rows.astype("<i2").tobytes())
    return out.getvalue()

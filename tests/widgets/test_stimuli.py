"""What `show` may return, told apart by its type."""

import numpy as np
import pytest

from skpref.plotting import UtilityDisplay
from skpref.widgets._files import encode_png, encode_wav
from skpref.widgets._stimuli import describe_item, stimulus_of

PICTURE = np.linspace(0.0, 1.0, 12).reshape(3, 4)
SAMPLES = np.sin(np.arange(40.0))
PNG, WAV = encode_png(PICTURE), encode_wav(8000, SAMPLES)


class Drawn:
    """An object that draws itself in notebooks."""

    def __init__(self, **ways):
        for name, content in ways.items():
            setattr(self, f"_repr_{name}_", lambda content=content: content)


def test_arrays_are_pictures():
    assert stimulus_of(PICTURE) == {"mime": "image/png", "data": PNG}


@pytest.mark.parametrize("rate", [8000, np.int64(8000)])
def test_pairs_of_a_rate_and_samples_are_sounds(rate):
    for pair in ((rate, SAMPLES), (SAMPLES, rate)):
        assert stimulus_of(pair) == {"mime": "audio/wav", "data": WAV}


def test_texts_are_texts():
    assert stimulus_of("<b>a & b</b>") == {"mime": "text/plain", "text": "<b>a & b</b>"}


BYTES = [
    (PNG, "image/png"),
    (WAV, "audio/wav"),
    (b"\xff\xd8\xff\xe0rest", "image/jpeg"),
    (b"GIF89a...", "image/gif"),
    (b"RIFF....WEBPVP8 ", "image/webp"),
    (b"OggS....", "audio/ogg"),
    (b"fLaC....", "audio/flac"),
    (b"ID3.....", "audio/mpeg"),
    (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"),
]


@pytest.mark.parametrize(("content", "mime"), BYTES)
def test_files_are_known_by_how_they_begin(content, mime, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(content)
    for given in (content, bytearray(content), memoryview(content), path):
        assert stimulus_of(given) == {"mime": mime, "data": content}


def test_a_file_of_neither_is_refused(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_bytes(b"not this")
    with pytest.raises(ValueError, match=r"notes\.txt.*png.*wav.*b'not this'"):
        stimulus_of(path)
    with pytest.raises(ValueError, match=r"^The bytes that show returned begin"):
        stimulus_of(b"not this")
    with pytest.raises(FileNotFoundError):
        stimulus_of(tmp_path / "missing.png")


def test_a_text_that_names_a_file_is_asked_about(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.PNG").write_bytes(PNG)
    with pytest.raises(TypeError, match=r"return pathlib\.Path\('a\.PNG'\)(?i:)|Path\('a\.PNG'\)"):
        stimulus_of("a.PNG")
    assert stimulus_of("b.png")["text"] == "b.png"


def test_figures_axes_and_displays_are_drawn_and_closed():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(2, 1))
    ax.plot([1, 2])
    display = UtilityDisplay.__new__(UtilityDisplay)
    display.figure_ = figure
    found = [stimulus_of(each) for each in (figure, ax, display)]
    assert found[0] == found[1] == found[2]
    assert found[0]["data"].startswith(b"\x89PNG")
    assert not plt.fignum_exists(figure.number)


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK", "F"])
def test_pictures_of_pil(mode):
    images = pytest.importorskip("PIL.Image")
    found = stimulus_of(images.new("RGB", (3, 2), (10, 20, 30)).convert(mode))
    assert found["mime"] == "image/png"
    assert found["data"].startswith(b"\x89PNG")


def test_objects_draw_themselves():
    assert stimulus_of(Drawn(html="<b>1</b>", png=None)) == {
        "mime": "text/html",
        "text": "<b>1</b>",
    }
    assert stimulus_of(Drawn(html="<b>1</b>", png=PNG)) == {"mime": "image/png", "data": PNG}
    assert stimulus_of(Drawn(svg="<svg/>")) == {"mime": "image/svg+xml", "data": b"<svg/>"}
    sound = Drawn(html="<audio>")
    sound.data = WAV
    assert stimulus_of(sound) == {"mime": "audio/wav", "data": WAV}


@pytest.mark.parametrize("shown", [None, 3, 0.5, {"a": 1}, ["a"], object, Drawn(html=None)])
def test_what_cannot_be_shown_is_refused(shown):
    with pytest.raises(TypeError, match=r"cannot be shown\. Return an array .* a text"):
        stimulus_of(shown)


@pytest.mark.parametrize("shown", [(), (8000,), (8000, 8000), (SAMPLES, SAMPLES), ("a", "b")])
def test_a_pair_that_is_no_sound_is_refused(shown):
    with pytest.raises(TypeError, match="its rate"):
        stimulus_of(shown)


def test_items_in_words():
    assert describe_item({"gain": 0.123456, "kind": "a=b"}) == "gain: 0.1235\nkind: a=b"
    assert describe_item(np.array([0.5, 2.0])) == "(0.5, 2)"
    assert describe_item("tea") == "tea"
    assert describe_item(7) == "7"

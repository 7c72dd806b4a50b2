"""The gallery: every script of ``examples/`` runs, and its page shows what it prints and draws."""

import re
from pathlib import Path

from sphinx.util import logging

from skpref.datasets import fetch_atp_matches

logger = logging.getLogger(__name__)

# In the order in which they are shown.
ORDER = (
    "first_steps_candy.py",
    "raw_contests.py",
    "picture_1d.py",
    "pictures.py",
    "pictures_of_votes.py",
    "language_models.py",
    "leaderboard_llm.py",
    "football.py",
    "many_users.py",
    "rated_items.py",
    "text_duels.py",
    "reward_head.py",
    "tuning_grid_search.py",
    "optimise_ten_lines.py",
    "pick_from_pool.py",
    "tune_image_filter.py",
    "judge_in_browser.py",
    "judge_in_notebook.py",
    "resume_run.py",
    "leaving_one_machine.py",
    "tennis.py",
)
# Their data are fetched: they run where these are, and elsewhere are shown as they stand.
FETCHED = {"tennis.py": fetch_atp_matches}


def position(name: str) -> tuple[int, str]:
    """Those that are not in `ORDER` come last."""
    return (ORDER.index(name) if name in ORDER else len(ORDER), name)


def without_data() -> list[str]:
    """Examples whose data are not here."""
    absent = []
    for name, fetch in FETCHED.items():
        try:
            fetch(download_if_missing=False)
        except OSError:
            absent.append(name)
    return absent


def settings(doc: Path) -> dict:
    """`sphinx_gallery_conf` of the site in the folder `doc`."""
    shown_alone = "".join(rf"(?!{re.escape(name)}$)" for name in without_data())
    return {
        "examples_dirs": [str(doc.parent / "examples")],
        "gallery_dirs": ["auto_examples"],
        "filename_pattern": rf"/{shown_alone}\w+\.py$",
        "within_subsection_order": "_site.gallery.position",
        "abort_on_example_error": True,
        "copyfile_regex": r".*\.rst",
        "download_all_examples": False,
        "remove_config_comments": True,
        "show_memory": False,
        "show_signature": False,
        "matplotlib_animations": False,
        "min_reported_time": 5,
        "write_computation_times": False,
        "capture_repr": (),
        "plot_gallery": True,
    }


def without_picture(doc: Path) -> list[str]:
    """Examples that drew nothing, though they ran."""
    ran = {path.name for path in (doc.parent / "examples").glob("*.py")} - set(
        without_data()
    )
    images = doc / "auto_examples" / "images"
    return sorted(
        name for name in ran if not (images / f"sphx_glr_{name[:-3]}_001.png").exists()
    )


def look(app, env, docnames):
    if app.config.sphinx_gallery_conf["plot_gallery"] is True:
        for name in without_picture(Path(app.srcdir)):
            logger.warning("examples/%s draws no picture", name)


def setup(app):
    app.connect("env-before-read-docs", look)
    return {"parallel_read_safe": True}

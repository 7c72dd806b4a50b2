"""The gallery: every script of ``examples/`` runs, and its page shows what it prints and draws."""

from pathlib import Path

# In the order in which they are shown.
ORDER = (
    "first_steps_candy.py",
    "raw_contests.py",
    "picture_1d.py",
    "pictures.py",
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
    "resume_run.py",
    "leaving_one_machine.py",
    "tennis.py",
)
FETCH = ("tennis.py",)  # their data, from the network: shown without being run


def position(name: str) -> tuple[int, str]:
    """Those that are not in `ORDER` come last."""
    return (ORDER.index(name) if name in ORDER else len(ORDER), name)


def settings(doc: Path) -> dict:
    """`sphinx_gallery_conf` of the site in the folder `doc`."""
    fetched = "|".join(name.removesuffix(".py") for name in FETCH)
    return {
        "examples_dirs": [str(doc.parent / "examples")],
        "gallery_dirs": ["auto_examples"],
        "filename_pattern": rf"/(?!(?:{fetched})\.py)\w+\.py$",
        "within_subsection_order": "_site.gallery.position",
        "abort_on_example_error": True,
        "copyfile_regex": r".*\.rst",
        "download_all_examples": False,
        "remove_config_comments": True,
        "show_memory": False,
        "show_signature": False,
        "matplotlib_animations": False,
        "min_reported_time": 5,
        "capture_repr": (),
        "plot_gallery": True,
    }

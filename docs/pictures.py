"""Pictures of README, from the examples of the gallery: python docs/pictures.py."""

import runpy
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

ROOT = Path(__file__).parents[1]
PICTURES = {  # picture: example, and which of its figures
    "classes": ("plot_1_first_model", 2),
    "leaderboard": ("rankings/plot_3_leaderboard", 1),
    "choices": ("choices/plot_1_heating", 1),
}


def main():
    """Run the examples and keep one figure of each."""
    for name, (example, number) in PICTURES.items():
        plt.close("all")
        runpy.run_path(str(ROOT / "examples" / f"{example}.py"))
        plt.figure(number).savefig(ROOT / "docs" / "figures" / f"{name}.png", dpi=110, bbox_inches="tight")


if __name__ == "__main__":
    main()

"""Numbers printed in section 4 of the paper; none is computed here."""

from __future__ import annotations

from typing import NamedTuple

REPLICATIONS = 20  # replications of Tables 2 and 3
SETS = ("lenses", "wine", "iris", "heart", "german", "pima")


class Spread(NamedTuple):
    """Mean and standard deviation."""

    mean: float
    sd: float


class Efficiency(NamedTuple):
    """Row of Table 3: seconds, smallest effective sample size of 5,000 draws, seconds/ESS, relative speed."""

    seconds: float
    ess: float
    seconds_per_draw: float
    speed: float


TABLE1 = {
    "lenses": (4, 3, 24),
    "wine": (13, 3, 178),
    "iris": (4, 3, 150),
    "heart": (13, 2, 270),
    "german": (24, 2, 1000),
    "pima": (8, 2, 768),
}  # d, K, n

TABLE2 = {
    "pima": {"logit": Spread(0.240, 0.024), "gibbs": Spread(0.238, 0.015), "variational": Spread(0.239, 0.017)},
    "iris": {"logit": Spread(0.086, 0.086), "gibbs": Spread(0.186, 0.055), "variational": Spread(0.181, 0.057)},
    "heart": {"logit": Spread(0.215, 0.046), "gibbs": Spread(0.170, 0.023), "variational": Spread(0.223, 0.056)},
    "german": {"logit": Spread(0.262, 0.021), "gibbs": Spread(0.260, 0.017), "variational": Spread(0.298, 0.015)},
    "lenses": {"logit": Spread(0.700, 0.087), "gibbs": Spread(0.825, 0.071), "variational": Spread(0.821, 0.073)},
    "wine": {"logit": Spread(0.080, 0.038), "gibbs": Spread(0.048, 0.019), "variational": Spread(0.093, 0.048)},
}

TABLE3 = {
    "lenses": {"logit": Efficiency(26.0, 304, 0.086, 1), "gibbs": Efficiency(8.6, 2916, 0.003, 29)},
    "wine": {"logit": Efficiency(184.9, 8, 22.960, 1), "gibbs": Efficiency(15.1, 23, 0.655, 35)},
    "iris": {"logit": Efficiency(139.9, 8, 17.996, 1), "gibbs": Efficiency(10.8, 14, 0.747, 24)},
    "heart": {"logit": Efficiency(128.8, 270, 0.477, 2), "gibbs": Efficiency(16.0, 14, 1.185, 1)},
    "german": {"logit": Efficiency(561.1, 418, 1.342, 3), "gibbs": Efficiency(58.0, 17, 3.426, 1)},
    "pima": {"logit": Efficiency(409.6, 675, 0.607, 2), "gibbs": Efficiency(23.2, 23, 1.028, 1)},
}

COLON = {"gibbs": Spread(0.36, 0.11), "logit": Spread(0.33, 0.15)}
COLON_SPLIT = (50, 12)
COLON_SPEED = 500.0  # factor by which sparse logit is slower than PL-Gibbs

SUSHI = {"gibbs": 656, "logit": 672}  # errors per 1,000, means of five repetitions, without deviations
SUSHI_SPLIT = (4000, 1000)
SUSHI_REPLICATIONS = 5

"""Settings of random tastes, and the law that they imply for the columns of a design."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from plackett.capabilities import Ignored
from plackett.data.base_levels import with_levels_named
from plackett.data.choice_tables import Columns
from plackett.data.columns import listed
from plackett.data.validation import check_bool, check_names, plain
from plackett.inference.base import open_ended
from plackett.inference.gibbs import Gibbs
from plackett.model.diagnostics import READ_ESS
from plackett.model.taste_law import SIGNS, TasteLaw

LAWS = (*SIGNS, "fixed")
LENGTH = {"draws": 500, "tune": 500, "max_draws": 20_000}  # default lengths of a chain


class Tastes(BaseEstimator):
    """Settings of random tastes: r_ta = exp(x_ta·β_i), β_i ~ N(μ, Σ) over persons i (mixed logit).

    Parameters
    ----------
    random : list of str, optional
        Attributes, or other columns of the design, whose coefficients differ between persons; the name of a text
        stands for all its levels. None: all attributes. The other columns have a common coefficient.
    law : dict, optional
        Law of a coefficient over the population: "normal", the default; "lognormal", e^b with normal b, which is
        always positive; "-lognormal", −e^b, always negative, as for a price; "fixed", the same for all.
    correlated : bool
        True if tastes are correlated; otherwise Σ is diagonal.
    constants : bool
        True if alternatives have constants, and the columns of the person interactions with them. Use False if the
        labels of alternatives have no meaning.

    Notes
    -----
    Columns are divided by their deviations. For these, each mean has the prior N(0, 10²), the mean of the logarithm of
    a log-normal coefficient N(0, 4²), and a fixed coefficient N(0, 10²). Σ has the prior of Huang & Wand (2013) with
    ν = 2: each deviation is half-t with 2 degrees of freedom and the scale 5 (of logarithms 2), and each correlation is
    uniform on (−1, 1). Where tastes are not correlated, the deviations have the same prior.

    Examples
    --------
    >>> from plackett import PlackettLuceChooser, Tastes
    >>> PlackettLuceChooser(features=Tastes(random=["price", "time"], law={"price": "-lognormal"}))
    PlackettLuceChooser(features=Tastes(law={'price': '-lognormal'}, random=['price', 'time']))
    """

    unread_by: ClassVar[dict[str, Ignored]] = {  # settings ignored by an inference
        "Gibbs": Ignored(
            ("moves", "shape_prior", "move_budget"), "it is a setting of the sampler for fixed features. Leave it out."
        ),
    }
    unread = Ignored(("shape", "rate", "prior"), "coefficients of random tastes have no Gamma prior. Leave it out.")

    def __init__(
        self,
        random: Sequence[str] | None = None,
        law: Mapping[str, str] | None = None,
        correlated: bool = False,
        constants: bool = True,
    ):
        self.random = random
        self.law = law
        self.correlated = correlated
        self.constants = constants

    def check(self, n_traits: int) -> None:
        """Raise for invalid values, or useless columns of the person."""
        check_names("Tastes(random)", self.random)
        for name, law in dict(self.law or {}).items():
            if law not in LAWS:
                raise ValueError(f"Tastes(law[{name!r}]) must be one of {list(LAWS)}, got {plain(law)} instead.")
        for name in ("correlated", "constants"):
            check_bool(f"Tastes({name})", getattr(self, name))

    def with_levels(self, columns: Columns, source: Iterable[str]) -> Tastes:
        """Return these settings with the levels of a text, by their columns' `source`, in place of its name."""
        known = list(source)
        random = None if self.random is None else with_levels_named(self.random, columns, known)
        laws = dict(self.law or {})
        law = {each: laws[name] for name in laws for each in with_levels_named([name], columns, known)}
        return Tastes(random, law or None, self.correlated, self.constants)

    def of_columns(self, names: npt.NDArray[Any], source: npt.NDArray[Any], attributes: Sequence[str]) -> TasteLaw:
        """Return the law for the columns of a design; a column may also be named by its `source`."""
        laws = dict(self.law or {})
        wanted = list(attributes) if self.random is None else list(self.random)
        if self.random is not None:
            unread = [name for name, law in laws.items() if law != "fixed" and name not in wanted]
            if unread:
                raise ValueError(
                    f"Tastes(law) has {plain(unread[0])}, which is not among random={plain(wanted)}. Name it in both."
                )
        places, sign = list[int](), list[int]()
        given = [str(name) for name in wanted] + [name for name in laws if name not in wanted]
        for name in given:
            if not (np.isin(name, names) or np.isin(name, source)) or name == "constant":
                raise ValueError(f"Tastes names {name!r}, and the columns are {listed(map(str, names))}.")
        for f, (name, of) in enumerate(zip(names, source, strict=True)):
            key = str(name) if name in wanted else str(of)
            law = laws.get(str(name), laws.get(str(of), "normal"))
            if key in wanted and law != "fixed" and (name == key or of == key):
                places.append(f)
                sign.append(SIGNS[law])
        if not places:
            raise ValueError(
                "no coefficient is random: name some in Tastes(random=[...]), or use features='linear', which has the "
                "same coefficients for all."
            )
        return TasteLaw.of(places, sign, len(names), self.correlated)


def complete(gibbs: Gibbs) -> Gibbs:
    """Complete the settings of the chains; open-ended ones run until the law can be interpreted."""
    if open_ended(gibbs):
        found = gibbs.completed(**LENGTH)
        found.target_ess = READ_ESS
        return found
    return gibbs.completed(**LENGTH)

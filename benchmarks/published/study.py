"""A published result and ours beside it: which program printed what, of which data, and how near ours has to be."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Printed:
    """A number as its source prints it.

    Attributes
    ----------
    text : str
        The number with the digits of the source.
    within : float, optional
        The largest difference that ours may have. None: one unit in the last place, as for two programs that maximise
        the same likelihood.
    noise : float
        By how much ours may change from one run to the next, with Monte Carlo error; 0 for a maximum.
    """

    text: str
    within: float | None = None
    noise: float = 0.0

    @property
    def decimals(self) -> int:
        """Decimals that the source prints."""
        return len(self.text.partition(".")[2])

    @property
    def allowed(self) -> float:
        """The largest difference that ours may have."""
        return 10.0**-self.decimals if self.within is None else self.within


def estimate(mean, std_error, apart=1.0):
    """A posterior mean against a maximum with a standard error.

    The two estimators may be one standard error apart, or more where the maximum is that of a likelihood simulated by
    few draws. Chains go on until there are 400 effective draws, so that two runs differ by 5 √2 / 20 of the posterior
    deviation at most.
    """
    return Printed(mean, apart * float(std_error), 0.35 * float(std_error))


@dataclass(frozen=True)
class Study:
    """One model of one set, as another program has it and as it is here.

    Attributes
    ----------
    tool : str
        The program, which is the name of its page.
    source : str
        Where the numbers are printed, or which version was run, in Markdown.
    data, model : str
        The set and the model in words.
    ours : function
        Fits the model here; returns the quantities by name.
    theirs : dict
        The printed numbers by name.
    file : str, optional
        The file of the folder PLACKETT_DATA that is needed; None where the set comes with the package.
    kind : str
        What our numbers are: "maximum" or "posterior mean".
    """

    tool: str
    source: str
    data: str
    model: str
    ours: Callable[[], Mapping[str, float]]
    theirs: Mapping[str, str | Printed]
    file: str | None = None
    kind: str = "maximum"

    @property
    def name(self) -> str:
        """The study in words."""
        return f"{self.tool}: {self.data}, {self.model}"

    def printed(self) -> dict[str, Printed]:
        """The printed numbers by name."""
        return {what: each if isinstance(each, Printed) else Printed(each) for what, each in self.theirs.items()}

    def missing(self, folder: Path | None) -> bool:
        """Whether the set is not at hand."""
        return self.file is not None and (folder is None or not (folder / self.file).exists())

    def rows(self) -> list[dict]:
        """One row for each number: theirs, ours, difference."""
        found = self.ours()
        return [
            {
                "tool": self.tool,
                "source": self.source,
                "data": self.data,
                "model": self.model,
                "kind": self.kind,
                "quantity": what,
                "theirs": each.text,
                "ours": round(float(found[what]), each.decimals + 2),
                "difference": round(float(found[what]) - float(each.text), each.decimals + 2),
                "allowed": each.allowed,
            }
            for what, each in self.printed().items()
        ]

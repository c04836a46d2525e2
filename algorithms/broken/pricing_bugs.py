"""The mistakes of private pricing by number, each beside what its documentation says.

An auditor often holds the density of the *documented* algorithm, not of the code. `AsDocumented`
is that situation: it runs the broken code and states density and claim of the correct one, with
the same parameters. The claim is the whole Gaussian curve that the declared noise gives on the
pair, so a mistake shows even where loose constants keep it within the published budget: measured
mu exceeds the declared one (DP001), or labels refuse the density (DP014). Alone, with its own
density, the same code shows how far its real privacy is from the published claim (DP012).

Claim: that of the documented algorithm on one pair; it does not hold of the code.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from algorithms.broken import pricing, pricing_cov, pricing_mle
from algorithms.broken.pricing_softmax import SoftmaxClipNorm
from algorithms.pricing.private_cov import PrivateCov
from algorithms.pricing.private_mle import PrivateMle
from audit.claim import GaussianDp
from audit.errors import UsageError
from audit.pair import Pair
from audit.view import Views

Floats = npt.NDArray[np.float64]
CALIBRATIONS = ("exact", "loose")


@dataclass(frozen=True)
class AsDocumented:
    """Broken code under the density and the claim of the algorithm that it is meant to be.

    Attributes:
        code: What is played.
        paper: Whose accountant and claim are stated.
        density: Whose density scores the views: that of the ``paper``, or of the ``code`` for an
            auditor who suspects what is wrong.

    Raises:
        UsageError: For another density.
    """

    code: Any
    paper: Any
    density: str = "paper"

    def __post_init__(self) -> None:
        if self.density not in ("paper", "code"):
            raise UsageError(f"bug: expected density paper or code, got {self.density!r}")

    @property
    def claim(self) -> GaussianDp:
        """The Gaussian parameter that the declared noise gives on the pair."""
        pair = self.pairs()[0]
        return GaussianDp(
            mu=self.paper.mu(pair),
            view="transcript",
            relation=pair.relation,
            source="the documented noise on this pair",
        )

    @property
    def declared_scale(self) -> float:
        """Noise scale of the documentation."""
        return float(self.paper.declared_scale)

    def pairs(self) -> Sequence[Pair]:
        """The first pair of the code."""
        return (self.code.pairs()[0],)

    def run(self, data: Mapping[str, Any], n: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Play the code `n` times."""
        emitted: dict[str, Floats] = self.code.run(data, n, rng)
        return emitted

    def log_likelihood_ratio(self, views: Views, pair: Pair) -> Floats:
        """``ln P_left/P_right`` by the chosen density, shape (n,)."""
        known = self.paper if self.density == "paper" else self.code
        return np.asarray(known.log_likelihood_ratio(views, pair), dtype=float)

    def tilted_run(
        self, pair: Pair, tilt: float, n: int, rng: np.random.Generator
    ) -> tuple[dict[str, Floats], Floats]:
        """Tilted plays of the algorithm whose density is stated: its certificate is its own."""
        known = self.paper if self.density == "paper" else self.code
        tilted: Any = getattr(known, "tilted_run", None)
        if tilted is None:
            return known.run(pair.left, n, rng), np.zeros(n)
        emitted, log_weights = tilted(pair, tilt, n, rng)
        return emitted, log_weights

    def exact_profile(self, pair: Pair, epsilon: float) -> float:
        """Divergence of the documented algorithm at `epsilon`."""
        return float(self.paper.exact_profile(pair, epsilon))


@dataclass(frozen=True)
class Bug:
    """One mistake.

    Attributes:
        mistake: In a few words.
        code: Class of the broken twin.
        paper: Class of the correct algorithm; None when the mistake has no Gaussian yardstick.
        exact: Parameters with noise that has no slack.
        loose: Parameters with noise as published; None where there is no other calibration.
        corrected: Parameters that make `paper` correct, where the classes are the same.
    """

    mistake: str
    code: type
    paper: type | None
    exact: Mapping[str, Any] = field(default_factory=dict)
    loose: Mapping[str, Any] | None = None
    corrected: Mapping[str, Any] = field(default_factory=dict)

    def parameters(self, calibration: str) -> Mapping[str, Any]:
        """Parameters under a calibration.

        Raises:
            UsageError: For a calibration that is not one of `calibrations`.
        """
        if calibration not in self.calibrations:
            raise UsageError(
                f"bug: expected one of {', '.join(self.calibrations)}, got "
                f"calibration={calibration!r}"
            )
        return self.exact if calibration == "exact" or self.loose is None else self.loose

    @property
    def calibrations(self) -> tuple[str, ...]:
        """``exact``, and ``loose`` where there is such a noise."""
        return CALIBRATIONS if self.loose is not None else CALIBRATIONS[:1]


def broken(number: str, calibration: str = "exact") -> Any:
    """The twin with a mistake, under its own density and the published claim.

    Args:
        number: Key of `BUGS`.
        calibration: ``exact`` or ``loose``.

    Raises:
        UsageError: For an unknown number or calibration.
    """
    bug = _bug(number)
    return bug.code(**bug.parameters(calibration))


def documented(number: str, calibration: str = "loose", density: str = "paper") -> AsDocumented:
    """The twin with a mistake, under the claim of the correct algorithm on its pair.

    Args:
        number: Key of `BUGS`.
        calibration: ``exact`` or ``loose``.
        density: ``paper`` or ``code``.

    Raises:
        UsageError: For an unknown number or calibration, or a mistake without such a density.
    """
    bug = _bug(number)
    if bug.paper is None:
        raise UsageError(f"bug {number!r}: no documented density; use broken({number!r}) instead")
    parameters = bug.parameters(calibration)
    correct = bug.paper(**{**parameters, **bug.corrected})
    return AsDocumented(bug.code(**parameters), correct, density)


def _bug(number: str) -> Bug:
    if number not in BUGS:
        raise UsageError(f"bug: expected one of {', '.join(BUGS)}, got number={number!r}")
    return BUGS[number]


def _cov(mistake: str, code: type) -> Bug:
    return Bug(mistake, code, PrivateCov, {}, {"calibration": "basic"})


def _mle(mistake: str, code: type, calls: int = 1) -> Bug:
    common = {"records": 20, "times": (20,) * calls}
    exact = {**common, "calibration": "exact_label", "demand": "linear"}
    return Bug(mistake, code, PrivateMle, exact, {**common, "calibration": "kst_gamma"})


BUGS: Mapping[str, Bug] = MappingProxyType(
    {
        "P1": _cov("add/remove sensitivity, replace-one claim", pricing.AddRemoveSensitivity),
        "P2": _cov("node noise redrawn at every query", pricing.RedrawnNoise),
        "P3": _cov("noise for one level", pricing_cov.OneLevel),
        "P4": _cov("levels by natural logarithm", pricing_cov.NaturalLog),
        "P5": _cov("root of sigma as standard deviation", pricing_cov.RootScale),
        "P6": _cov("no noise on the diagonal", pricing_cov.NoiselessDiagonal),
        "P7": _cov("one noise matrix for all nodes", pricing.SharedNoise),
        "P8": _cov("levels never emptied", pricing_cov.NeverReset),
        "P9": _cov("prices from the exact covariance", pricing_cov.ExactBonus),
        "P10 cov": _cov("features not normalised", pricing_cov.RawFeatures),
        "P10 mle": _mle("features not normalised", pricing_mle.RawFeatures),
        "P11": _cov("one person owns three records", pricing_cov.RepeatVisits),
        "P12": _mle("the whole budget for each of 10 calls", pricing_mle.FullBudgetEach, 10),
        "P13": _mle("the whole budget for each of 1023 calls", pricing_mle.FullBudgetEach, 1023),
        "P14": _mle("outcomes not clipped, up to 20", pricing_mle.UnclippedOutcomes),
        "P15": Bug(
            "one noise vector for two calls",
            pricing_mle.SharedNoise,
            None,
            {"times": (10, 20), "records": 20},
            {"times": (10, 20), "records": 20, "calibration": "kst_gamma"},
        ),
        "P16": Bug(
            "ridge 1/1000, Jacobian forgotten",
            pricing_mle.NoRidge,
            None,
        ),
        "P16 ball": Bug(
            "the same with theta in the unit ball",
            pricing_mle.NoRidge,
            None,
            {"radius": 1.0},
        ),
        "P17": Bug(
            "a step of .01 from the fit without noise",
            pricing_mle.OneStep,
            None,
            {"step": 0.01},
        ),
        "P17 small": Bug(
            "a step of .001 from the fit without noise",
            pricing_mle.OneStep,
            None,
            {"step": 0.001},
        ),
        "P18": Bug("four gradient steps, no minimiser", pricing_mle.EarlyStop, None),
        "P20": Bug(
            "softmax demand, zeta = clipping norm",
            SoftmaxClipNorm,
            SoftmaxClipNorm,
            {},
            {"calibration": "kst_zeta"},
            {"noise_factor": math.sqrt(2)},
        ),
    }
)

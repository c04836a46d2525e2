"""A calibration weight applied to every record of an input by itself.

Claim: record i touches entry i of the output and nothing else, so replacing one record changes the
law of one entry, which the weight keeps within its own claim (parallel composition; McSherry 2009).

With many records this is the ideal game for an audit by one run: no canary disturbs another.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from algorithms.calibration.additive import Gaussian, Laplace
from algorithms.calibration.base import require_positive
from algorithms.calibration.selection import RandomisedResponse
from audit.claim import AnyClaim
from audit.errors import UsageError
from audit.pair import Pair
from audit.view import Array, Floats, Views

WEIGHTS = {"laplace": Laplace, "gaussian": Gaussian, "randomised-response": RandomisedResponse}
Weight = Laplace | Gaussian | RandomisedResponse


@dataclass(frozen=True)
class PerRecord:
    """Laplace, Gaussian or randomised response on every record.

    The data are the records, shape (m,): 0 and `sensitivity` for additive noise, 0 and 1 for
    randomised response.

    Attributes:
        kind: ``laplace``, ``gaussian`` or ``randomised-response``.
        options: Parameters of that weight.
        records: Number of records in the pair that it offers.

    Raises:
        UsageError: For an unknown kind or a number of records that is not positive.
    """

    kind: str = "laplace"
    options: Mapping[str, Any] = field(default_factory=lambda: {"epsilon": 1.0})
    records: int = 100

    def __post_init__(self) -> None:
        require_positive(self, "records")
        if self.kind not in WEIGHTS:
            raise UsageError(
                f"PerRecord: expected a kind in {', '.join(WEIGHTS)}, got kind={self.kind!r}; "
                "choose one"
            )

    @property
    def weight(self) -> Weight:
        """What is applied to one record."""
        made: Weight = WEIGHTS[self.kind](**self.options)
        return made

    @property
    def claim(self) -> AnyClaim:
        """The weight's claim, for replacing one record."""
        return msgspec.structs.replace(self.weight.claim, relation="replace-one")

    @property
    def declared_scale(self) -> float:
        """The noise scale in use."""
        return self.weight.declared_scale

    def noise_scaled(self, factor: float) -> PerRecord:
        """The same mechanism and claim with all noise multiplied by `factor` > 0."""
        options = {**self.options, "scale": self.declared_scale * factor}
        return dataclasses.replace(self, options=options)

    def pairs(self) -> tuple[Pair, ...]:
        """The first record replaced."""
        left, right = self.canaries(self.records)
        one = left.copy()
        one[0] = right[0]
        return (Pair(left, one, "first record replaced", relation="replace-one"),)

    def run(self, data: Array, n: int, rng: np.random.Generator) -> dict[str, Array]:
        """Noisy records: ``value`` or ``choice``, shape (n, m)."""
        records = np.asarray(data)
        flat = self.weight.run(0, n * len(records), rng)
        noise = {name: column.reshape(n, -1) for name, column in flat.items()}
        if isinstance(self.weight, RandomisedResponse):
            return {"choice": (records + noise["choice"]) % self.weight.categories}
        return {"value": records + noise["value"]}

    def log_likelihood_ratio(self, views: Views, pair: Pair) -> Floats:
        """Exact ``ln P_left/P_right``, the sum over the records that differ; shape (n,)."""
        total = np.zeros(len(views))
        for i in pair.differs or ():
            total += self._one(views, i, pair.left[i], pair.right[i])
        return total

    def exact_profile(self, pair: Pair, epsilon: float) -> float:
        """Profile of the weight on the first record that differs."""
        i = pair.position
        return self.weight.exact_profile(Pair(pair.left[i], pair.right[i]), epsilon)

    def canaries(self, m: int) -> tuple[Array, Array]:
        """Two inputs of `m` records that differ in all of them, as far as neighbours can."""
        pair = self.weight.pairs()[0]
        return np.full(m, pair.left), np.full(m, pair.right)

    def canary_scores(self, views: Views, left: Array, right: Array) -> Floats:
        """Exact log-likelihood ratio of every record in a single run; shape (m,)."""
        alike = bool((left == left[0]).all() and (right == right[0]).all())
        if not alike:
            rows = range(len(left))
            return np.array([self._one(views, i, left[i], right[i])[0] for i in rows])
        columns = {name: column[0] for name, column in views.columns.items()}
        single = Views(np.full(len(left), "", dtype=object), columns)
        return self.weight.log_likelihood_ratio(single, Pair(left[0], right[0]))

    def _one(self, views: Views, i: int, left: float, right: float) -> Floats:
        columns = {name: column[:, i] for name, column in views.columns.items()}
        return self.weight.log_likelihood_ratio(Views(views.form, columns), Pair(left, right))

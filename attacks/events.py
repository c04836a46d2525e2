"""Single events: the form of an output, or one number of it.

Why this is valid: every score is a frozen function of the view, fitted on scouting trials only
(counts per event, as in StatDP, Ding et al. 2018, and DP-Sniper, Bichsel et al. 2021); what the
event is worth is counted on fresh trials.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from attacks.counting import Codes, Table, Tail, Tally, best_tail
from attacks.leaves import Layout, Silent, rows_of, stacked
from attacks.scalars import Scalar, away_scalars, derived_scalars, leaf_scalars
from audit.attack import Game, Scorer
from audit.event import Event, tail_score
from audit.view import Floats, Views

_BIN_TAIL = 60
_BETTER = 0.05
_BINNED = 6


@dataclass(frozen=True)
class FormScorer:
    """Smoothed log odds of the form.

    Attributes:
        odds: Form to its log odds; forms never scouted score 0.
        description: The event in words.
    """

    odds: dict[str, float]
    description: str

    @property
    def event(self) -> Event:
        """The score as data."""
        return Event(kind="form", description=self.description, odds=self.odds)

    def __call__(self, views: Views) -> Floats:
        """Scores, shape (n,)."""
        return self.event(views)


@dataclass(frozen=True)
class Form:
    """Guess from type, shape, keys, missing steps and exceptions: all that is not a number."""

    name: str = "form"
    slow: bool = False
    learns: bool = True

    def applies(self, game: Game) -> bool:  # noqa: ARG002
        """Every output has a form."""
        return True

    def fit(
        self,
        game: Game,  # noqa: ARG002
        left_views: Views,
        right_views: Views,
        rng: np.random.Generator,  # noqa: ARG002
    ) -> Scorer:
        """Count the forms of both sides."""
        left, right = Counter(left_views.form.tolist()), Counter(right_views.form.tolist())
        forms = sorted(left | right)
        odds = {f: math.log((left[f] + 0.5) / (right[f] + 0.5)) for f in forms}
        if len(forms) < 2:
            return Silent("all outputs have the same form")
        telling = max(forms, key=lambda f: abs(odds[f]))
        side = "left" if odds[telling] > 0 else "right"
        return FormScorer(odds, f"guesses {side} when the form is {short(telling)}")


def short(text: str, most: int = 60) -> str:
    """The text, cut to `most` characters."""
    return text if len(text) <= most else text[: most - 3] + "..."


@dataclass(frozen=True)
class TailScorer:
    """One number, the larger (or the smaller) the more left.

    Attributes:
        names: Frozen leaves.
        scalar: The number.
        sign: 1 when large means left, else -1.
        centre: Where the score is 0.
        spread: Its unit.
        missing: Score of a trial that does not have it.
        description: The event in words.
    """

    names: tuple[str, ...]
    scalar: Scalar
    sign: int
    centre: float
    spread: float
    missing: float
    description: str

    @property
    def event(self) -> Event | None:
        """The score as data, where the number is a leaf itself."""
        if self.scalar.kind != "value" or self.scalar.step:
            return None
        return Event(
            kind="leaf",
            description=self.description,
            leaf=self.names[self.scalar.at[0]],
            sign=self.sign,
            centre=self.centre,
            spread=self.spread,
            missing=self.missing,
        )

    def __call__(self, views: Views) -> Floats:
        """Scores, shape (n,): an increasing, bounded function of the number."""
        values = self.scalar(rows_of(views, self.names))
        return tail_score(values, self.sign, self.centre, self.spread, self.missing)


@dataclass(frozen=True)
class TableScorer:
    """Log odds of a code of the row, looked up in a table.

    Attributes:
        names: Frozen leaves.
        key: What is looked up.
        table: Codes and their log odds.
        description: The event in words.
    """

    names: tuple[str, ...]
    key: Callable[[Floats], Codes]
    table: Table
    description: str

    def __call__(self, views: Views) -> Floats:
        """Scores, shape (n,)."""
        if not len(views):
            return np.empty(0)
        return self.table(self.key(rows_of(views, self.names)))


@dataclass(frozen=True)
class Binned:
    """The quantile bin of a number.

    Attributes:
        scalar: The number.
        edges: Increasing edges of the bins.
    """

    scalar: Scalar
    edges: Floats

    def __call__(self, rows: Floats) -> Codes:
        """Bin of each row, shape (n,); missing numbers have a bin of their own."""
        return _bins(self.scalar(rows), self.edges)


def _bins(values: Floats, edges: Floats) -> Codes:
    found = np.searchsorted(edges, values, side="right")
    found[np.isnan(values)] = len(edges) + 1
    return found.astype(np.uint64)


@dataclass(frozen=True)
class Leaf:
    """Guess from the one number, among leaves and derived ones, that tells the sides apart best.

    A number is used by its tails; where bins of it certify clearly more (the sides differ in the
    middle of its range), by its bins.
    """

    name: str = "leaf"
    slow: bool = False
    learns: bool = True

    def applies(self, game: Game) -> bool:  # noqa: ARG002
        """Every view can be tried."""
        return True

    def fit(
        self,
        game: Game,  # noqa: ARG002
        left_views: Views,
        right_views: Views,
        rng: np.random.Generator,  # noqa: ARG002
    ) -> Scorer:
        """Rank all numbers on the scouted trials."""
        names, rows, left = stacked(left_views, right_views)
        if not names:
            return Silent("the view holds no numbers")
        layout = Layout.of(rows, names)
        leaves = leaf_scalars(rows, left)
        scalars = leaves + away_scalars(leaves, layout) + derived_scalars(rows, left, layout)
        values = [scalar(rows) for scalar in scalars]
        tails = [best_tail(v[:left], v[left:]) for v in values]
        best = max(range(len(tails)), key=lambda i: tails[i].gain)
        found = _best_bins(scalars, values, tails, left)
        if found is not None and found[0].gain > tails[best].gain + _BETTER:
            tally, key = found
            words = f"log odds of the bin of {key.scalar.describe(names)}"
            return TableScorer(names, key, tally.table(), words)
        return _tail_scorer(names, scalars[best], tails[best], values[best], left)


def _best_bins(
    scalars: Sequence[Scalar], values: Sequence[Floats], tails: Sequence[Tail], left: int
) -> tuple[Tally, Binned] | None:
    """Bins of the number that certify most, among those with the largest contrast."""
    tried = sorted(range(len(tails)), key=lambda i: -tails[i].contrast)[:_BINNED]
    found = []
    for i in tried:
        key = Binned(scalars[i], _edges(values[i]))
        found.append((Tally.of(_bins(values[i], key.edges), left), key))
    return max(found, key=lambda pair: pair[0].gain, default=None)


def _edges(values: Floats) -> Floats:
    """Quantiles of the finite values, finer in the tails."""
    ordered = np.sort(values[np.isfinite(values)])
    if not len(ordered):
        return np.empty(0)
    share = np.clip(_BIN_TAIL / len(ordered), 1e-3, 0.05)
    inner = np.linspace(0, 1, 17)[1:-1]
    shares = np.sort(np.concatenate([[share, 2 * share], inner, [1 - 2 * share, 1 - share]]))
    return np.unique(ordered[(shares * (len(ordered) - 1)).astype(int)])


def _tail_scorer(
    names: tuple[str, ...], scalar: Scalar, tail: Tail, values: Floats, left: int
) -> TailScorer:
    finite = values[np.isfinite(values)]
    spread = float(np.subtract(*np.quantile(finite, [0.9, 0.1]))) if len(finite) else 1.0
    gone = np.isnan(values)
    missing = math.log((gone[:left].sum() + 0.5) / (gone[left:].sum() + 0.5))
    relation = ">=" if tail.sign > 0 else "<"
    words = f"guesses left when {scalar.describe(names)} {relation} {tail.centre:.4g}"
    return TailScorer(
        names, scalar, tail.sign, tail.centre, spread or 1.0, missing if gone.any() else 0.0, words
    )

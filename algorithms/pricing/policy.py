"""Privacy-preserving dynamic personalised pricing: the whole policy.

Chen, Simchi-Levi and Wang (2022), *Privacy-Preserving Dynamic Personalized Pricing with Demand
Learning*, Management Science, Algorithm 1. Customers arrive with contexts; each is offered the
optimistic best price under the current estimate of demand. Two releasers see the records
(`algorithms.pricing.private_cov` after every customer, `algorithms.pricing.private_mle` whenever
the released determinant has doubled, at most ``cap`` times); the price optimiser sees releases.

Claim
-----
The releases are jointly (eps, delta)-DP: the covariance tree is mu-GDP with
``mu = D sqrt(m)/sigma``, the estimator is called at most ``cap`` times (enforced) and each call's
loss is bounded in law by ``ln(1 + beta/rho) + q^2/2 + q chi_2``; later releases may depend on
earlier ones. The price of customer n is a function of past releases, x_n and independent
randomness, so prices of *other* customers are post-processing (``prices_except``), in particular
all later ones (``prices_after``: anticipating DP). The customer's own price depends on x_n
directly: with all prices in view (``prices_all``, plain DP) no useful policy is private.
The published claim adds the releasers' budgets; ``accounting="joint"`` convolves their losses.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from algorithms.pricing.constants import Constants, constants
from algorithms.pricing.guarantee import Guarantee, PairGuarantee
from algorithms.pricing.inversion import own_price_score, placed, price_score
from algorithms.pricing.market import Market, market_of, probed, sample_market, truth
from algorithms.pricing.policy_pairs import replacements
from algorithms.pricing.policy_tilting import Leaning
from algorithms.pricing.price_attack import period_of, periodic_score
from algorithms.pricing.releasers import Drawn
from algorithms.pricing.rounds import FEWEST_REFRESHES, Course, Regime, play
from algorithms.pricing.transcript import log_ratio
from audit.claim import ApproxDp
from audit.errors import UsageError
from audit.pair import Pair
from audit.view import Views

Floats = npt.NDArray[np.float64]

SOURCE = "Chen, Simchi-Levi and Wang (2022), Management Science, Algorithm 1"
VIEWS = ("transcript", "prices_after", "prices_except", "prices_all")
_PROBE = 64
_FARTHEST = 5.0
_TINY = 1e-12
_BLOCK = 4000


@dataclass(frozen=True)
class PrivatePricing:
    """The three-layer pricing policy on a fixed stream of customers.

    Data are a mapping with ``contexts``, shape (T, k), and ``valuations``, shape (T,), or
    ``outcomes``, shape (T,) (see `algorithms.pricing.market`).

    Attributes:
        preset: Name of the public constants (`algorithms.pricing.constants.PRESETS`).
        changes: Constants that differ from the preset; for noise by the name of a calibration
            see `algorithms.pricing.guarantee.noise_for`.
        view: ``transcript`` to emit and claim all releases, or a projection of the prices.
        delta: Of the whole policy.
        accounting: ``sum`` adds the releasers' budgets, each at half of delta; ``joint``
            convolves their losses.
        customer: 0-based customer whom the pairs replace; the first for releases and later
            prices, one in the second half for ``prices_all``, when negative.
        market_seed: Seed of the test market.
        allow_vacuous: Play a policy that refreshes nothing or never leaves the price ceiling.
        noise_factor: Multiplies all noise and leaves the claim as it is.
        probes: Who comes after the exploration (`algorithms.pricing.market.probed`).
        data: ``contexts`` and ``valuations`` to play instead of the test market.

    Raises:
        UsageError: For a parameter out of its range.
    """

    preset: str = "working"
    changes: Mapping[str, Any] = field(default_factory=dict)
    view: str = "prices_after"
    delta: float = 1e-6
    accounting: str = "sum"
    customer: int = -1
    market_seed: int = 1
    allow_vacuous: bool = False
    noise_factor: float = 1.0
    probes: str = "none"
    data: Mapping[str, Floats] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        _require(self.view in VIEWS, f"one of {', '.join(VIEWS)}", view=self.view)
        _require(0 < self.delta < 1, "0 < delta < 1", delta=self.delta)
        _require(self.accounting in ("sum", "joint"), "sum or joint", accounting=self.accounting)
        _require(0 < self.noise_factor < math.inf, "> 0", noise_factor=self.noise_factor)
        _require(self.customer < self.public.rounds, "a customer", customer=self.customer)
        private = self.public.sigma > 0 and self.public.nu > 0
        _require(private, "sigma > 0 and nu > 0", preset=self.preset)

    @cached_property
    def public(self) -> Constants:
        """The public constants."""
        return constants(self.preset, **self.changes)

    @property
    def claim(self) -> ApproxDp:
        """What the releasers promise about the view."""
        found = self.guarantee
        epsilon = sum(found.parts) if self.accounting == "sum" else found.joint_epsilon
        how = "budgets added" if self.accounting == "sum" else "losses convolved"
        return ApproxDp(
            epsilon=epsilon,
            delta=self.delta,
            view=self.view,
            relation="replace-one",
            source=f"{SOURCE}, {how}",
        )

    @property
    def guarantee(self) -> Guarantee:
        """What the declared noise guarantees for any replaced customer."""
        return Guarantee(self.public, self.delta)

    def accountant(self, epsilon: float) -> float:
        """Profile that the noise drawn guarantees for all releases together."""
        return Guarantee(self._noisy, self.delta).profile(epsilon)

    def exact_profile(self, pair: Pair, epsilon: float) -> float:
        """Profile of the releases on one pair, see `algorithms.pricing.guarantee`.

        Raises:
            UsageError: For a customer after the exploration, or when only prices are in view.
        """
        _require(self.view == "transcript", "view transcript for a profile", view=self.view)
        return self._pair_guarantee(pair).profile(epsilon)

    @property
    def declared_scale(self) -> float:
        """Standard deviation sigma of the covariance noise."""
        return self.public.sigma

    def noise_scaled(self, factor: float) -> PrivatePricing:
        """The same policy and claim with the noise of both releasers multiplied by `factor`."""
        return replace(self, noise_factor=self.noise_factor * factor)

    @property
    def smallest_block(self) -> int:
        """Fewest trials that are worth a call: a round costs about as much for 300 as for one."""
        return 512

    @property
    def likelihood_views(self) -> tuple[str, ...]:
        """The likelihood ratio is that of the releases; of prices alone none is known."""
        return ("transcript", "output") if self.view == "transcript" else ()

    def pairs(self) -> Sequence[Pair]:
        """A customer of the market replaced, after checking that the policy does anything there.

        Raises:
            UsageError: For a vacuous policy, unless `allow_vacuous`.
        """
        return self._pairs

    def regime(self, data: Mapping[str, Any], n: int = _PROBE) -> Regime:
        """What the policy does on `data`, from `n` trials of their own."""
        rng = np.random.default_rng(0)
        course, _ = self._course(market_of(data, self.public), n, rng, keep=False)
        return Regime.of(course, self.public)

    def run(self, data: Mapping[str, Any], n: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Play the whole stream `n` times.

        Returns:
            ``prices``, shape (n, T), for a view of the prices; for the transcript ``sums``
            (n, T - 1, D), ``thetas`` (n, cap, d), ``times`` (n, cap; the 1-based round of each
            refresh, 0 when unused) and the exploration prices ``explored`` (n, T0).

        Raises:
            UsageError: For data of another shape.
        """
        market, keep = market_of(data, self.public), self.view == "transcript"
        blocks = []
        for start in range(0, n, _BLOCK):
            course, drawn = self._course(market, min(_BLOCK, n - start), rng, keep=keep)
            blocks.append(_columns(course, drawn))
        return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}

    def log_likelihood_ratio(self, views: Views, pair: Pair) -> Floats:
        """Exact ``ln P_left/P_right`` of the releases, shape (n,)."""
        markets = self._markets(pair)
        return log_ratio(self._noisy, markets, pair.position, views)

    def tilted_run(
        self, pair: Pair, tilt: float, n: int, rng: np.random.Generator
    ) -> tuple[dict[str, Floats], Floats]:
        """Transcripts in which large losses are common, and their log importance weights.

        A customer after the exploration is shown prices of their own; then the runs are plain. The
        tilt is limited, since not every pair reaches the epsilon that is promised for the worst.
        """
        if pair.position >= self.public.explore:
            return self.run(pair.left, n, rng), np.zeros(n)
        squares, markets = self._pair_guarantee(pair).squares, self._markets(pair)
        tilt = min(tilt, _FARTHEST / math.sqrt(max(float(squares.max()), _TINY)))
        drawn = Leaning(self._noisy, markets, pair.position, tilt, squares, n, rng)
        course = play(self._noisy, markets[0], drawn, n)
        return _columns(course, drawn), drawn.log_weights

    def price_score(self, views: Views, pair: Pair) -> Floats:
        """A score of the prices in view, shape (n,); it starts from the test market's demand."""
        place, guess = pair.position, truth(self.public.wide)
        prices = placed(views["prices"], place, self.public.rounds)
        markets = self._markets(pair)
        if views["prices"].shape[1] == self.public.rounds:
            return own_price_score(self._noisy, markets, place, prices, guess)
        if period_of(self.public, markets[0]):
            return periodic_score(self._noisy, markets, place, prices, guess)
        return price_score(self._noisy, markets, prices, guess)

    def utility_curves(
        self,
        horizons: Sequence[int] | None = None,
        epsilons: Sequence[float] | None = None,
        runs: int = 40,
        seed: int = 0,
    ) -> dict[str, list[Any]]:
        """Regret against T and epsilon, beside uniform, GLM-UCB, fixed and random prices.

        Args:
            horizons: Numbers of rounds; usual ones when omitted.
            epsilons: Promised epsilons; usual ones when omitted.
            runs: Trials per point.
            seed: Root of the random streams.

        Returns:
            Points (`algorithms.pricing.utility.Point`) against ``rounds`` and ``epsilon``.
        """
        from algorithms.pricing.utility import curves

        return {**curves(self, horizons, epsilons, runs, seed)}

    @cached_property
    def _pairs(self) -> tuple[Pair, ...]:
        data = self.data
        if data is None:
            data = sample_market(self.public.rounds, self.public.wide, self.market_seed)
        data = probed(data, self.probes, self.public.explore)
        self._refuse_vacuous(data)
        return tuple(replacements(self.public, data, self.customer, self.view))

    def _markets(self, pair: Pair) -> tuple[Market, Market]:
        return market_of(pair.left, self.public), market_of(pair.right, self.public)

    def _pair_guarantee(self, pair: Pair) -> PairGuarantee:
        return PairGuarantee(self._noisy, self._markets(pair), pair.position)

    @property
    def _noisy(self) -> Constants:
        """The constants with the noise that is really drawn."""
        c, factor = self.public, self.noise_factor
        return replace(c, sigma=c.sigma * factor, nu=c.nu * factor)

    def _course(
        self, market: Market, n: int, rng: np.random.Generator, *, keep: bool
    ) -> tuple[Course, Drawn]:
        drawn = Drawn(self._noisy, market, n, rng, keep=keep)
        return play(self._noisy, market, drawn, n), drawn

    def _refuse_vacuous(self, data: Mapping[str, Any]) -> None:
        few = min(self.public.doublings, self.public.cap) < FEWEST_REFRESHES
        found = Regime(self.public.doublings, 0.0) if few else self.regime(data)
        if found.vacuous and not self.allow_vacuous:
            raise UsageError(f"{found}. Lower the ridges, explore more, or set allow_vacuous")
        if found.vacuous:
            warnings.warn(str(found), UserWarning, stacklevel=4)


def _columns(course: Course, drawn: Drawn) -> dict[str, Floats]:
    if drawn.sums is None:
        return {"prices": course.prices}
    return {
        "sums": drawn.sums,
        "thetas": drawn.thetas,
        "times": drawn.times,
        "explored": drawn.explored,
    }


def _require(met: bool, expected: str, **got: object) -> None:
    if not met:
        name, value = next(iter(got.items()))
        raise UsageError(f"PrivatePricing: expected {expected}, got {name}={value!r}")

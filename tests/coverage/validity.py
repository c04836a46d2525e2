"""Validity at scale: ``python -m tests.coverage.validity [--audits 1000] [--seeds 100]``.

Thousands of small whole audits of mechanisms without slack, and every broken twin many times over.
What is counted goes to ``reports/validity.json`` after every mechanism, so a run that was ended
goes on where it was; the table in ``reports/validity.md`` is made of it. About two and a half
hours on two cores, one of which goes to the policy on real households.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from joblib import Parallel, delayed
from scipy import stats

import audit
from algorithms.catalogue import CATALOGUE
from audit.files import write_atomically
from tests.coverage.pipeline import ALPHA, Subject, tolerated
from tests.tables.reports import line

COUNTS = Path("reports/validity.json")
TARGET = Path("reports/validity.md")
SMALL, USUAL, TWIN_ALPHA = 600, 20_000, 1e-3
FEWER = {
    "broken/policy-own-price": 4_000,
    "broken/policy-own-price-households": 6_000,  # 4,000: 7 of 10 found out
    "broken/policy-quiet": 2_000,
    "broken/glm-ucb": 2_000,
}
TIGHT = (
    "bandits/batched-exp3n",
    "bandits/batched-ftpl",
    "bandits/threshold-canary",
    "bandits/agarwal-singh",
    "bandits/per-round-exp4",
    "bandits/ftrl-tree",
    "pricing/private-cov",
    "pricing/private-cov-gdp",
    "pricing/private-mle-labels",
    "pricing/laplace-tree",
)
HEADS = ("mechanism", "audits", "wronged", "share", "at most")
TWIN_HEADS = ("twin", "seeds", "found out", "median trials", "trials at most")


def broken() -> list[str]:
    """Catalogue names of all broken controls."""
    return [n for n, e in CATALOGUE.items() if n.startswith("broken/") and e.role == "control"]


def wronged(name: str, audits: int) -> dict[str, int]:
    """How many of so many small audits of a tight mechanism are wrong."""
    mechanism = CATALOGUE[name].build()
    subject = Subject(name, mechanism, mechanism.claim.epsilon_at(0.0), 0.0)
    found = _all(lambda seed: subject.wronged(SMALL, seed), audits)
    return {"audits": audits, "wronged": sum(found)}


def caught(name: str, seeds: int) -> dict[str, Any]:
    """How often a twin is found out, and after how many trials in all."""
    budget, twin = budget_of(name), CATALOGUE[name].build()

    def one(seed: int) -> int:
        result = audit.examine(twin, trials=budget, alpha=TWIN_ALPHA, seed=seed)
        return result.trials + result.scouting if result.found_out else 0

    spent = [trials for trials in _all(one, seeds) if trials]
    middle = int(median(spent)) if spent else None
    return {"seeds": seeds, "found": len(spent), "trials": middle}


def budget_of(name: str) -> int:
    """Trials of an audit of a twin; whole policies are slow."""
    return FEWER.get(name, USUAL)


def _all(task: Callable[[int], Any], seeds: int) -> list[Any]:
    return list(Parallel(n_jobs=-1)(delayed(task)(seed) for seed in range(seeds)))


def collect(audits: int, seeds: int, only: str = "") -> None:
    """Count what has not been counted yet."""
    tasks = [("tight", name, audits, wronged) for name in TIGHT]
    tasks += [("broken", name, seeds, caught) for name in broken()]
    counts = read()
    for kind, name, number, count in tasks:
        if only in name and name not in counts[kind]:
            counts[kind][name] = count(name, number)
            print(kind, name, counts[kind][name], flush=True)
            write_atomically(COUNTS, (json.dumps(counts, indent=1) + "\n").encode())


def read() -> dict[str, dict[str, Any]]:
    """What has been counted."""
    if not COUNTS.exists():
        return {"tight": {}, "broken": {}}
    found: dict[str, dict[str, Any]] = json.loads(COUNTS.read_text(encoding="utf-8"))
    return found


def rows(tight: dict[str, Any]) -> list[Sequence[str]]:
    """Lines under `HEADS`, and one for all together."""
    lines = [(name, found["audits"], found["wronged"]) for name, found in tight.items()]
    lines.append(("all", sum(n for _, n, _ in lines), sum(k for _, _, k in lines)))
    return [
        (name, f"{n:,}", str(k), f"{k / n:.4f}", f"{tolerated(n) / n:.4f}") for name, n, k in lines
    ]


def detectable(audits: int, power: float = 0.95) -> float:
    """The true rate of false refutations that so many audits would have shown.

    Args:
        audits: Number of audits, all of which may be wrong with probability `ALPHA`.
        power: With which probability more than the tolerated number would be wrong.
    """
    limit, low, high = tolerated(audits), ALPHA, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        shown = stats.binom.sf(limit, audits, middle) >= power
        low, high = (low, middle) if shown else (middle, high)
    return high


def twin_rows(twins: dict[str, Any]) -> list[Sequence[str]]:
    """Lines under `TWIN_HEADS`."""
    return [
        (name, str(f["seeds"]), str(f["found"]), f"{f['trials']:,}", f"{budget_of(name):,}")
        for name, f in twins.items()
    ]


def document(counts: dict[str, dict[str, Any]]) -> str:
    """Both tables with their explanations."""
    total = sum(found["audits"] for found in counts["tight"].values())
    lines = [
        "# Validity at scale",
        "",
        f"Whole audits with {SMALL} trials and the whole battery at alpha {ALPHA}, one per seed,",
        "of mechanisms whose claim has no slack at all. *Wronged* counts those that refuted the",
        "claim or certified more than the truth; a valid audit exceeds *at most* with probability",
        f"1e-4. All {total:,} together would have shown a true rate of {detectable(total):.4f}",
        "with probability .95.",
        "",
        *map(line, (HEADS, ["---"] * len(HEADS), *rows(counts["tight"]))),
        "",
        "## Broken twins",
        "",
        f"Every control of the catalogue, audited once per seed at alpha {TWIN_ALPHA} with early",
        "stopping. *Found out* counts refutations, and densities or noise that refuse their own",
        "statement; the trials include scouting.",
        "",
        *map(line, (TWIN_HEADS, ["---"] * len(TWIN_HEADS), *twin_rows(counts["broken"]))),
        "",
        "Written by `python -m tests.coverage.validity`.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Count, then write the table."""
    parser = argparse.ArgumentParser(description="Validity at scale.")
    parser.add_argument("--audits", type=int, default=1_000, help="Audits per tight mechanism.")
    parser.add_argument("--seeds", type=int, default=100, help="Audits per broken twin.")
    parser.add_argument("--only", default="", help="Only mechanisms whose name contains this.")
    options = parser.parse_args()
    collect(options.audits, options.seeds, options.only)
    TARGET.write_text(document(read()), encoding="utf-8")


if __name__ == "__main__":
    main()

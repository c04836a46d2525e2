"""Rules: every finding has a code, and every code a page that ``explain`` prints.

The docstring of a rule is its page: cause, effect on the verdict, remedy. Here are the rules about
verdicts; those about the behaviour of an implementation are in `audit.implementation_rules`.
"""

from __future__ import annotations

from audit import implementation_rules as implementation_rules
from audit.errors import UsageError
from audit.rule import Rule


class ClaimRefuted(Rule):
    """A certified lower bound, on epsilon or the claim's own parameter, lies above the claim.

    Cause: on the reported pair of neighbouring inputs, the frozen attack told left from right
    more often than any mechanism that keeps the claim could, except with the probability that the
    report states as its false-alarm rate.

    Effect: a subject fails the run (exit code 1); for a control this is what must happen.

    Remedy: look at the pair and at the event in words: they show which part of the output gives
    the record away. Run the reproducing command, mend the implementation or correct the claim. A
    known refutation is accepted with ``python -m audit accept``, with a reason.
    """

    code = "DP001"
    title = "claim refuted"


class WorseThanBaseline(Rule):
    """A case leaks more than it did in its baseline, accepted or still within its claim.

    Cause: the lower limit of what the frozen rule measures, and the certified bound too, now lie
    above the upper confidence limit of what the same attack measured then. If no rule measures
    more than then, this happens with probability at most the alphas of both runs together.

    Effect: a subject fails the run (exit code 1), even if its refutation had been accepted.

    Remedy: find what changed since the baseline; accept the new state only with a new reason.
    """

    code = "DP002"
    title = "worse than the baseline"


class ClaimsDiffer(Rule):
    """The claim given in the configuration differs from the one that the mechanism computes.

    Cause: two sources promise different things about the same view.

    Effect: both claims are audited, as two cases; each gates.

    Remedy: delete one of the claims or make them agree.
    """

    code = "DP003"
    title = "claims differ"


class Blind(Rule):
    """The audit could not have caught a violation of the size that matters.

    Cause: with this many trials, even a mechanism whose epsilon is the stated multiple of the
    claim would have been refuted with probability below 0.8, and so would one whose Renyi
    divergences are, where the claim limits those; or nothing varies in the view.

    Effect: no verdict (exit code 3), since an audit that could not fail must not look green.

    Remedy: raise ``--trials``, offer a worse pair, or audit a richer view.
    """

    code = "DP004"
    title = "blind"


class ControlNotCaught(Rule):
    """A mechanism that is known to be broken was not refuted.

    Cause: the audit as configured lacks the power, the attack or the pair to see the planted bug.

    Effect: the run has no verdict (exit code 3): green subjects mean little beside it.

    Remedy: raise ``--trials`` or restore the attack that used to catch it.
    """

    code = "DP005"
    title = "control not caught"


class Resolved(Rule):
    """An accepted finding no longer reproduces.

    Cause: the case is in the baseline as refuted and was not refuted now.

    Effect: none on the exit code.

    Remedy: accept the new record, so that a relapse turns red again.
    """

    code = "DP008"
    title = "accepted finding no longer reproduces"


class WeakerAudit(Rule):
    """The audit is weaker than the one in its baseline.

    Cause: fewer trials, or the attack or pair that testified is no longer offered: the smallest
    violation that could have been caught has grown well beyond the baseline's.

    Effect: no verdict (exit code 3).

    Remedy: restore the budget, or accept a new baseline on purpose.
    """

    code = "DP010"
    title = "audit weaker than its baseline"


class ClaimTight(Rule):
    """The certified bound comes close to the claim, or the claim leaves much room.

    Cause: the report states the certified epsilon as a share of the claimed one.

    Effect: none.

    Remedy: a share far below one either means a weak attack or noise that could be reduced.
    """

    code = "DP011"
    title = "slack"


class CertificateAboveClaim(Rule):
    """The algorithm's own density certifies more than the claim allows.

    Cause: exact privacy losses, computed from the density that the mechanism states for itself,
    exceed the claim. The design is at fault, whatever the code does.

    Effect: a control counts as caught; for a subject the verdict still rests on counting.

    Remedy: correct the calibration or the claim.
    """

    code = "DP012"
    title = "certificate above the claim"


class EvidenceAboveAccountant(Rule):
    """Counting certifies more than the exact epsilon of the mechanism's stated density.

    Cause: the code does not draw from the density that it states.

    Effect: none by itself; the claim is refuted only when the bound exceeds it too.

    Remedy: compare the noise that is drawn with the noise that is calibrated.
    """

    code = "DP013"
    title = "evidence above the accountant"


class NoiseNotAsStated(Rule):
    """Noise is not what the code says.

    Cause: given the view, labels do not follow the odds that the stated density implies: the
    noise has another scale or law than the one stated. It may be too much as well as too little.

    Effect: a control counts as caught; for a subject the verdict still rests on the claim.

    Remedy: compare the noise that is drawn with the noise that is calibrated.
    """

    code = "DP014"
    title = "noise is not what the code says"


class NotConfirmed(Rule):
    """A refutation was not confirmed on fresh streams.

    Cause: the run was asked to confirm, and of its two runs, each with half of alpha, only the
    first refuted the claim. A violation too small for the budget does this, and so does chance.

    Effect: the case counts as the second run found it; the smaller bounds of both are certified.

    Remedy: raise --trials; never repeat until the answer pleases.
    """

    code = "DP015"
    title = "refuted once, not confirmed"


class NullTestFailed(Rule):
    """Something was certified although both sides were played on the same input.

    Cause: trials depend on each other or on time, the target keeps state, or the audit itself is
    at fault. By chance it happens with probability at most the share of alpha of the case.

    Effect: no verdict (exit code 3): what is certified from nothing is no evidence.

    Remedy: run ``python -m audit check TARGET`` and make trials independent.
    """

    code = "DP040"
    title = "null test certified something"


class AcceptanceLapsed(Rule):
    """A refutation had been accepted until a date that has passed.

    Cause: the baseline names an expiry date for the acceptance.

    Effect: the refutation fails the run (exit code 1) like a new one.

    Remedy: mend the implementation, or accept it again with a reason and a new date.
    """

    code = "DP041"
    title = "acceptance has lapsed"


RULES: dict[str, type[Rule]] = {
    rule.code: rule for rule in sorted(Rule.__subclasses__(), key=lambda rule: rule.code)
}


def explain(code: str) -> str:
    """The page of a rule.

    Raises:
        UsageError: For an unknown code.
    """
    rule = RULES.get(code.upper())
    if rule is None:
        raise UsageError(f"rule {code!r}: expected one of {', '.join(sorted(RULES))}")
    return rule.page()

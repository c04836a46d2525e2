"""Rules: every finding has a code, and every code a page that ``explain`` prints.

The docstring of a rule is its page: cause, effect on the verdict, remedy.
"""

from __future__ import annotations

import inspect

from audit.errors import UsageError


class Rule:
    """Base of all rules.

    Attributes:
        code: The stable code.
        title: A few words.
    """

    code = ""
    title = ""

    @classmethod
    def page(cls) -> str:
        """The text that ``explain`` prints."""
        return f"{cls.code}: {cls.title}\n\n{inspect.cleandoc(cls.__doc__ or '')}\n"


class ClaimRefuted(Rule):
    """The certified lower bound on epsilon lies above what the claim allows.

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
    """An accepted refutation has become worse, or a case outside the baseline is refuted.

    Cause: the certified lower bound now lies above the upper estimate stored in the baseline.

    Effect: the run fails (exit code 1), although the case had been accepted.

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
    claim would have been refuted with probability below 0.8; or nothing varies in the view.

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


class MechanismFailed(Rule):
    """The mechanism failed, always or on one side more often than on the other.

    Cause: exceptions, a wrong leading axis, a dead child process.

    Effect: an exception in a trial is an outcome that the adversary sees, so one-sided failures
    count as evidence. When no trial of either side returns, there is no verdict (exit code 3).

    Remedy: run ``python -m audit check TARGET``; it names the first contract that breaks.
    """

    code = "DP006"
    title = "mechanism failed"


class NotReproducible(Rule):
    """The same seed gave different views.

    Cause: the mechanism draws from another source than the generator it is given, or keeps state.

    Effect: none on the verdict by itself, but the record cannot be reproduced bit for bit, and
    state shared between trials would void the bounds.

    Remedy: draw all randomness from ``rng``; build all state inside the call.
    """

    code = "DP007"
    title = "same seed, different view"


class Resolved(Rule):
    """An accepted finding no longer reproduces.

    Cause: the case is in the baseline as refuted and was not refuted now.

    Effect: none on the exit code.

    Remedy: accept the new record, so that a relapse turns red again.
    """

    code = "DP008"
    title = "accepted finding no longer reproduces"


class TrialsDependent(Rule):
    """Trials of one batched call depend on each other.

    Cause: the batched function shares a draw between trials of a call: rows repeat, or differ
    less within calls than between them. Every bound needs independent trials.

    Effect: each trial is played in a call of its own, which is slower and then valid.

    Remedy: draw noise with the leading trial axis in its shape.
    """

    code = "DP009"
    title = "trials of a batch depend on each other"


class WeakerAudit(Rule):
    """The audit is weaker than the one in its baseline.

    Cause: fewer trials, a missing attack or pair: the smallest violation that could have been
    caught has grown well beyond the baseline's.

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


class NoiseFreeDifference(Rule):
    """Without noise, the outputs of the pair differ by more than the noise was made for.

    Cause: both inputs were played with the noise switched off, and then with every single draw
    switched on in turn. So it is known exactly how far the noise must move to turn one output into
    the other: further than the claim allows, or no such move exists. A wrong sensitivity does
    this, and one draw for several numbers.

    Effect: none on the verdict. It is an exact statement about noise-free runs of this code on this
    pair, not a refutation, which takes runs with noise.

    Remedy: compare the sensitivity that the noise is calibrated for with how far one record moves
    everything that is released.
    """

    code = "DP020"
    title = "noise-free runs differ too much"


class SmallSeedSpace(Rule):
    """Views repeat as if all randomness came from a small set of seeds.

    Cause: trials with independent generators gave the same view, to the last bit, although it
    holds several numbers that hardly repeat one by one. So the mechanism seeds a generator of its
    own with few bits, or reads its noise from a table.

    Effect: none on the verdict. Whoever knows the code can try all seeds and undo the noise.

    Remedy: draw from the generator that is handed in, or seed with 128 bits of entropy.
    """

    code = "DP021"
    title = "few seeds"


class StateBetweenTrials(Rule):
    """What was played before shows in the view.

    Cause: a trial played again with the same generator state, after other trials, gave another
    view. A cache, a counter or a clock survives the call.

    Effect: none on the verdict by itself; dependent trials that disagree void it (DP009).

    Remedy: build all state inside the call.
    """

    code = "DP022"
    title = "state shared between trials"


RULES: dict[str, type[Rule]] = {rule.code: rule for rule in Rule.__subclasses__()}


def explain(code: str) -> str:
    """The page of a rule.

    Raises:
        UsageError: For an unknown code.
    """
    rule = RULES.get(code.upper())
    if rule is None:
        raise UsageError(f"rule {code!r}: expected one of {', '.join(sorted(RULES))}")
    return rule.page()

"""Rules about how an implementation behaves when it is played."""

from __future__ import annotations

from audit.rule import Rule


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
    state shared between trials would void the bounds. Copies of such a mechanism may repeat one
    another's draws, so it is played in one process whatever ``--jobs`` says, and ``--resume``
    starts its case again.

    Remedy: draw all randomness from ``rng``; build all state inside the call.
    """

    code = "DP007"
    title = "same seed, different view"


class TrialsDependent(Rule):
    """Trials of one batched call depend on each other.

    Cause: the batched function shares a draw between trials of a call: rows repeat, or differ
    less within calls than between them. Every bound needs independent trials.

    Effect: each trial is played in a call of its own, which is slower and then valid.

    Remedy: draw noise with the leading trial axis in its shape.
    """

    code = "DP009"
    title = "trials of a batch depend on each other"


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


class TrialEndedProcess(Rule):
    """A trial ended the process that played it.

    Cause: with ``--isolate``, a trial crashed (a segmentation fault, say), was killed for want of
    memory, or left through ``os._exit``.

    Effect: how the process ended is the outcome of that trial, as an exception would be, and part
    of what the adversary sees. Without ``--isolate`` there would be no verdict.

    Remedy: mend the crash; one that only happens for some inputs gives them away.
    """

    code = "DP030"
    title = "a trial ended its process"

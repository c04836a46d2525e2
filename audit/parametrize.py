"""The contract as test cases: one per mechanism and check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from audit.contract import CHECKS, Subject
from audit.errors import UsageError
from audit.mechanism import Mechanism
from audit.registry import as_mechanism, catalogue, resolve

if TYPE_CHECKING:
    import pytest


@dataclass(frozen=True)
class ContractCheck:
    """One check, to be called with a mechanism.

    Attributes:
        name: As in ``python -m audit check``.
        view: Audited projection; the claim's own when empty.
    """

    name: str
    view: str = ""

    def __call__(self, mechanism: Mechanism) -> None:
        """Check.

        Raises:
            AssertionError: When the mechanism breaks this part of the contract.
        """
        claim = mechanism.claim
        if claim is None:
            raise UsageError("the mechanism states no claim; see parametrize_with_checks")
        line = CHECKS[self.name](Subject(mechanism, mechanism.pairs(), claim, self.view))
        if not line.passed:
            raise AssertionError(f"{line.name}: {line.message}")


def parametrize_with_checks(mechanisms: Sequence[Any]) -> pytest.MarkDecorator:
    """Parametrise a test over mechanisms and the checks of their contract.

        @audit.parametrize_with_checks([mymodule.noisy, "calibration/laplace"])
        def test_contract(mechanism, check):
            check(mechanism)

    Args:
        mechanisms: Anything that states a claim and can be audited: decorated functions and
            policies, mechanisms, catalogue names, ``module:attr``.

    Returns:
        A decorator for a test function of ``mechanism`` and ``check``.

    Raises:
        UsageError: For one that cannot be audited or states no claim.
    """
    import pytest

    parameters = []
    for given in mechanisms:
        name = given if isinstance(given, str) else str(getattr(given, "__name__", type(given)))
        made = resolve(given) if isinstance(given, str) else as_mechanism(given, name)
        if made.claim is None:
            raise UsageError(
                f"parametrize_with_checks: {name} states no claim; decorate it with "
                "@audit.claims('eps=1', pairs=[(left, right)])"
            )
        view = catalogue()[given].view if given in catalogue() else ""
        parameters += [
            pytest.param(made, ContractCheck(check, view), id=f"{name}-{check.replace(' ', '-')}")
            for check in CHECKS
        ]
    return pytest.mark.parametrize(("mechanism", "check"), parameters)

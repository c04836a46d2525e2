"""The pytest plugin: configured cases as test items, and a fixture for audits in tests.

``pytest --audit`` (or ``audit = true`` in the ini file) collects the cases of ``[tool.audit]``. The
fixture ``assert_unrefuted`` is there without it. Importing this module loads nothing numerical: a
test run that audits nothing does not pay for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from audit.config import CaseConfig
    from audit.record import CaseResult, Record

MARKER = "audit: a privacy audit; every case of [tool.audit] and every test with assert_unrefuted"
_SETTINGS = {
    "trials": (int, "Mechanism runs per case."),
    "alpha": (float, "Probability that a certified statement of the session's cases is wrong."),
    "seed": (int, "Root of all random streams."),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare ``--audit`` and what goes with it."""
    group = parser.getgroup("audit", "privacy audits")
    group.addoption("--audit", action="store_true", help="Collect the cases of [tool.audit].")
    group.addoption(
        "--audit-config", metavar="FILE", help="TOML file with [tool.audit]; pyproject.toml."
    )
    for name, (kind, text) in _SETTINGS.items():
        group.addoption(f"--audit-{name}", type=kind, default=None, help=text)
    parser.addini("audit", "Collect the cases of [tool.audit].", type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and put the configured cases among what is collected."""
    config.addinivalue_line("markers", MARKER)
    if not (config.getoption("--audit") or config.getini("audit")):
        return
    path = _config_path(config)
    given = {Path(argument.partition("::")[0]).resolve() for argument in config.args}
    if path.resolve() not in given:
        config.args.append(str(path))


def _config_path(config: pytest.Config) -> Path:
    given = config.getoption("--audit-config")
    path = Path(given) if given else config.rootpath / "pyproject.toml"
    if not path.is_file():
        raise pytest.UsageError(
            f"--audit: expected a TOML file with [tool.audit], got {path}; give --audit-config FILE"
        )
    return path


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """The configuration as a file of test items."""
    config = parent.config
    if not (config.getoption("--audit") or config.getini("audit")):
        return None
    if file_path.resolve() != _config_path(config).resolve():
        return None
    made: AuditFile = AuditFile.from_parent(parent, path=file_path)
    return made


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that audits, so that ``-m "not audit"`` leaves them out."""
    for item in items:
        if "assert_unrefuted" in getattr(item, "fixturenames", ()):
            item.add_marker("audit")


class AuditFile(pytest.File):
    """The cases of a configuration file."""

    def collect(self) -> Iterator[pytest.Item]:
        """One item per case.

        Raises:
            pytest.Collector.CollectError: When the file cannot be read.
        """
        import msgspec

        from audit.config import read_config
        from audit.errors import UsageError

        try:
            config = read_config(self.path)
        except UsageError as error:
            raise self.CollectError(f"error: {error}") from None
        given = settings_of(self.config)
        settings = {**config.defaults(), **given}
        for case in config.case:
            yield AuditItem.from_parent(
                self,
                name=case.name or case.target,
                case=msgspec.structs.replace(case, trials=given.get("trials", case.trials)),
                settings=settings,
                share=1 / len(config.case),
            )


class AuditItem(pytest.Item):
    """One configured case; it fails when the run of this case alone would fail."""

    def __init__(
        self, *, case: CaseConfig, settings: dict[str, Any], share: float, **place: Any
    ) -> None:
        super().__init__(**place)
        self.case, self.settings, self.share = case, settings, share
        self.add_marker("audit")

    def runtest(self) -> None:
        """Audit the case with its share of alpha.

        Why the session's statements hold together: the shares of all configured cases add up to
        alpha, whichever of them are selected and wherever they run.

        Raises:
            AuditFailure: When the case has no clean outcome.
        """
        from audit.session import audit_case

        usual = self.path == Path.cwd() / "pyproject.toml"
        words = () if usual else ("--config", str(self.path))
        record = audit_case(self.case, self.settings, self.share, words)
        for result in record.results:
            self.user_properties += properties(result)
        if record.summary.exit_code:
            raise AuditFailure(record)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *_: Any) -> Any:
        """The findings; no traceback, since the code that failed is not the test's."""
        from audit.errors import AuditError

        if isinstance(excinfo.value, AuditFailure | AuditError):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Where the case is written and what it is called."""
        return self.path, None, f"audit: {self.name}"


class AuditFailure(AssertionError):  # noqa: N818  (a failed assertion, as pytest says it)
    """A case without a clean outcome."""

    def __init__(self, record: Record) -> None:
        lines = [record.summary.sentence]
        for finding in record.summary.findings:
            lines.append(f"{finding.rule}: {finding.message}")
            lines += [f"  $ {finding.reproduce}"] if finding.reproduce else []
        super().__init__("\n".join(lines))


def settings_of(config: pytest.Config) -> dict[str, Any]:
    """What the command line sets, by the names of `audit.examine`."""
    given = {name: config.getoption(f"--audit-{name}") for name in _SETTINGS}
    return {name: value for name, value in given.items() if value is not None}


def properties(result: CaseResult) -> list[tuple[str, object]]:
    """JUnit properties of a result."""
    from audit.power import smallest

    least = smallest(result.could_have_caught)
    own = {n: getattr(result, n) for n in ("parameter_lower", "parameter_caught")}
    return [
        ("verdict", result.verdict),
        ("epsilon_lower", result.epsilon_lower),
        ("could_have_caught", "nothing" if least is None else least),
        ("claim", f"{result.claim} of {result.view}"),
        *((n, v) for n, v in own.items() if v is not None),
        ("alpha", result.alpha),
    ]


@pytest.fixture
def assert_unrefuted(request: pytest.FixtureRequest) -> Callable[..., CaseResult]:
    """`audit.assert_unrefuted`, with claims as text, pairs as tuples and the options' settings.

    The result's properties go into the JUnit report, also when it fails.
    """

    def check(mechanism: Any, **settings: Any) -> CaseResult:
        from audit.api import require_unrefuted
        from audit.session import examine_stated

        allow_blind = settings.pop("allow_blind", False)
        result = examine_stated(mechanism, {**settings_of(request.config), **settings})
        request.node.user_properties += properties(result)
        return require_unrefuted(result, allow_blind=allow_blind)

    return check

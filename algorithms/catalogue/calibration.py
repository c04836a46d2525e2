"""Calibration weights: exactly known curves. One line each."""

from audit.entry import Entry

CALIBRATION: dict[str, Entry] = {
    "calibration/laplace": Entry(
        "algorithms.calibration:Laplace", {"epsilon": 1.0}, summary="count, Laplace noise"
    ),
    "calibration/gaussian": Entry(
        "algorithms.calibration:Gaussian",
        {"epsilon": 1.0, "delta": 1e-5, "curve": "gaussian"},
        summary="count, Gaussian noise, the whole curve claimed",
    ),
    "calibration/randomised-response": Entry(
        "algorithms.calibration:RandomisedResponse", {"epsilon": 1.0}, summary="one bit"
    ),
    "calibration/discrete-laplace": Entry(
        "algorithms.calibration:DiscreteLaplace",
        {"epsilon": 1.0},
        summary="integer count, two-sided geometric noise",
    ),
    "calibration/exponential": Entry(
        "algorithms.calibration:Exponential", {"epsilon": 1.0}, summary="one of five scores"
    ),
    "calibration/noisy-max": Entry(
        "algorithms.calibration:NoisyMax",
        {"epsilon": 1.0},
        summary="one of five scores, Laplace noise",
    ),
    "calibration/laplace-per-record": Entry(
        "algorithms.calibration.local:PerRecord",
        {"kind": "laplace", "options": {"epsilon": 1.0}},
        reference=False,
        summary="Laplace noise on every record; also for --one-run",
    ),
    "calibration/gaussian-per-record": Entry(
        "algorithms.calibration.local:PerRecord",
        {"kind": "gaussian", "options": {"epsilon": 1.0, "delta": 1e-5, "curve": "gaussian"}},
        reference=False,
        summary="Gaussian noise on every record, the whole curve claimed; also for --one-run",
    ),
    "calibration/randomised-response-per-record": Entry(
        "algorithms.calibration.local:PerRecord",
        {"kind": "randomised-response", "options": {"epsilon": 1.0}},
        reference=False,
        summary="randomised response on every record; also for --one-run",
    ),
}

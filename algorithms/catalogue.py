"""Every mechanism that has a name: one line each."""

from audit.entry import Entry

CATALOGUE: dict[str, Entry] = {
    # calibration weights: exactly known curves
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
    # bandits
    "bandits/batched-htinf": Entry(
        "algorithms.bandits.conversion:BatchedLaplace",
        {"learner": "htinf", "epsilon": 0.5, "horizon": 40, "arms": 4},
        summary="batched Laplace conversion of HTINF, whole transcript",
    ),
    "bandits/batched-exp3n": Entry(
        "algorithms.bandits.conversion:BatchedLaplace",
        {"learner": "exp3n", "epsilon": 1.0, "horizon": 20, "arms": 5},
        summary="batched Laplace conversion of EXP3 for noisy losses, whole transcript",
    ),
    "bandits/threshold-canary": Entry(
        "algorithms.bandits.conversion:BatchedLaplace",
        {"learner": "threshold", "epsilon": 1.0, "horizon": 20, "arms": 2, "view": "actions"},
        summary="a base learner that writes one bit of feedback into its actions",
    ),
    "bandits/quantile-canary": Entry(
        "algorithms.bandits.conversion:BatchedLaplace",
        {"learner": "quantile", "epsilon": 0.5, "horizon": 20, "arms": 10, "view": "actions"},
        summary="a base learner that writes ten bins of feedback into its actions",
    ),
    "bandits/batched-htinf-actions": Entry(
        "algorithms.bandits.conversion:BatchedLaplace",
        {"learner": "htinf", "epsilon": 0.5, "horizon": 40, "arms": 4, "view": "actions"},
        role="informational",
        summary="actions alone of batched HTINF: they show little by nature",
    ),
    # pricing
    "pricing/private-cov": Entry(
        "algorithms.pricing.private_cov:PrivateCov",
        {"epsilon": 1.0, "delta": 1e-6, "records": 31, "dimension": 2},
        summary="tree sums of phi phi^T, exact calibration",
    ),
    "pricing/private-cov-gdp": Entry(
        "algorithms.pricing.private_cov:PrivateCov",
        {"epsilon": 1.0, "delta": 1e-6, "records": 31, "dimension": 2, "claim_as": "gaussian"},
        summary="the same, the whole Gaussian curve claimed",
    ),
    "pricing/private-cov-customers": Entry(
        "algorithms.pricing.contexts:private_cov_on",
        {"source": "modechoice", "customers": 64, "epsilon": 1.0, "delta": 1e-6},
        summary="tree sums over 64 real train travellers",
    ),
    "pricing/private-cov-apple": Entry(
        "algorithms.pricing.contexts:private_cov_on",
        {"source": "apple", "customers": 32, "epsilon": 1.0, "delta": 1e-6},
        reference=False,
        summary="tree sums over 32 real shoppers (needs the extra 'data')",
    ),
    # broken twins (role="control")
    "broken/laplace-half-noise": Entry(
        "algorithms.broken.cases:mechanism_of",
        {"case": "half-noise"},
        role="control",
        summary="true epsilon 2, claimed 1",
    ),
    "broken/histogram-shared-draw": Entry(
        "algorithms.broken.cases:mechanism_of",
        {"case": "C7"},
        role="control",
        summary="all bins share one draw: true epsilon infinite, claimed 1",
    ),
    "broken/prefix-sums-redrawn": Entry(
        "algorithms.broken.cases:mechanism_of",
        {"case": "C15"},
        role="control",
        summary="fresh noise for each of 64 sums: true epsilon 10.67, claimed 1",
    ),
    "broken/bandit-half-noise": Entry(
        "algorithms.broken.bandits:HalfNoise",
        {"learner": "htinf", "epsilon": 1.0, "horizon": 20, "arms": 3},
        role="control",
        summary="half the noise: really 2 eps",
    ),
    "broken/bandit-sum-noise": Entry(
        "algorithms.broken.bandits:SumNoise",
        {"learner": "htinf", "epsilon": 0.1, "horizon": 60, "arms": 3},
        role="control",
        summary="noise on the batch sum, then divided: really eps tau = 1",
    ),
    "broken/bandit-floor-batch": Entry(
        "algorithms.broken.bandits:FloorBatch",
        {"learner": "threshold", "epsilon": 0.6, "horizon": 20, "arms": 2, "view": "actions"},
        role="control",
        summary="batches of floor(1/eps) rounds, actions of a canary: really 1",
    ),
    "broken/bandit-no-clamp": Entry(
        "algorithms.broken.bandits:NoClamp",
        {"learner": "exp3n", "epsilon": 0.5, "horizon": 40, "arms": 3},
        role="control",
        summary="losses not clamped to their range: really 3 eps",
    ),
    "broken/bandit-shared-noise": Entry(
        "algorithms.broken.bandits:SharedNoise",
        {"learner": "htinf", "epsilon": 1.0, "horizon": 20, "arms": 3},
        role="control",
        summary="one noise draw for two batches: really infinite",
    ),
    "broken/bandit-raw-loss": Entry(
        "algorithms.broken.bandits:RawLoss",
        {"learner": "leader", "epsilon": 1.0, "horizon": 20, "arms": 2, "view": "actions"},
        role="control",
        summary="decisions on the exact loss: really infinite, from the actions alone",
    ),
    "broken/bandit-one-sided": Entry(
        "algorithms.broken.bandits:OneSidedNoise",
        {"learner": "exp3n", "epsilon": 1.0, "horizon": 20, "arms": 3},
        role="control",
        summary="exponential noise: really infinite",
    ),
    "broken/cov-half-noise": Entry(
        "algorithms.broken.pricing:HalfNoise",
        {"epsilon": 4.0, "delta": 1e-6, "records": 31, "claim_as": "gaussian"},
        role="control",
        summary="tree sums with half the noise: really 2 mu",
    ),
    "broken/cov-redrawn": Entry(
        "algorithms.broken.pricing:RedrawnNoise",
        {"epsilon": 4.0, "delta": 1e-6, "records": 63, "claim_as": "gaussian"},
        role="control",
        summary="tree sums, node noise redrawn at every query: really 2.05 mu",
    ),
    "broken/cov-shared-noise": Entry(
        "algorithms.broken.pricing:SharedNoise",
        {"epsilon": 1.0, "delta": 1e-6, "records": 31},
        role="control",
        summary="tree sums, one noise matrix for all nodes: really infinite",
    ),
    "broken/cov-add-remove-noise": Entry(
        "algorithms.broken.pricing:AddRemoveSensitivity",
        {"epsilon": 4.0, "delta": 1e-6, "records": 31, "claim_as": "gaussian"},
        role="control",
        reference=False,
        summary="tree sums, add/remove noise for a replace-one claim: really 1.41 mu",
    ),
}

"""A pricing service as it stands in production: it knows nothing of audits."""

import logging

import numpy as np

log = logging.getLogger("shop")


class Shop:
    """Serves one customer at a time; its price follows the noisy demand."""

    def __init__(self, floor):
        self.floor, self.sold, self.served = floor, 0.0, 0
        self.noise = np.random.default_rng(2024)

    def quote(self, customer):
        demand = self.sold + self.noise.laplace(scale=0.5) + np.random.laplace(scale=0.5)  # noqa: NPY002
        log.warning("customer %s sees demand %s", customer["id"], demand)
        return self.floor + demand / (1 + self.served)

    def record_sale(self, bought):
        self.sold, self.served = self.sold + bought, self.served + 1

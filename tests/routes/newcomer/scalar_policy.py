class Policy:  # python -m audit run scalar_policy:Policy --claim "eps=1" --view prices_after
    def __init__(self, rng):
        self.rng, self.total = rng, 0.0

    def act(self, context):
        return 1.0 + self.total + self.rng.laplace(scale=32.0)

    def observe(self, outcome):
        self.total += outcome

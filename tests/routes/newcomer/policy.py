class Policy:  # python -m audit run policy:Policy --claim "eps=1,delta=1e-6" --view prices_after
    def start(self, n, rng):
        self.n, self.rng, self.total = n, rng, 0.0

    def act(self, context):
        return 1.0 + self.total + self.rng.laplace(scale=32.0, size=self.n)

    def observe(self, outcome):
        self.total = self.total + outcome

import audit


class Noisy:
    claim = audit.PureDp(epsilon=1.0)
    pairs = staticmethod(lambda: [audit.Pair(0.0, 1.0)])
    run = staticmethod(lambda data, n, rng: data + rng.laplace(size=n))


noisy = Noisy()  # python -m audit run an_object:noisy

import audit


@audit.claims("eps=1", pairs=[([0.0], [1.0])], relation="replace-one")
def noisy(data, rng):
    return sum(data) + rng.laplace(scale=1.0)


# python -m audit run decorated:noisy

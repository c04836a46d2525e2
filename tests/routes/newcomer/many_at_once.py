def noisy(data, n, rng):
    return sum(data) + rng.laplace(scale=1.0, size=n)


# python -m audit run many_at_once:noisy --claim "eps=1" --pair '[0.0]' '[1.0]'

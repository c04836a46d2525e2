def noisy(data, rng):
    return sum(data) + rng.laplace(scale=1.0)


# python -m audit run bare_function:noisy --claim "eps=1" --pair '[0.0]' '[1.0]'

def noisy(data, rng):
    return sum(data) + rng.laplace(scale=1.0)


def test_noisy(assert_unrefuted):
    assert_unrefuted(noisy, claim="eps=1", pairs=[([0.0], [1.0])])

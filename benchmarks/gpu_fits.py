"""A default fit of a million rows on a GPU beside a logit, boosted trees and NUTS on the same model; make bench-gpu."""

import importlib.util
import time
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression

from plackett import EM, Gibbs, PlackettLuceClassifier
from plackett.directions import LearnedDirections, flights
from plackett.engines.device import gpu
from plackett.model.diagnostics import diagnose, probed

ROWS, WARM, NEW, AGREEING = 1_000_000, 60_000, 100_000, 5_000
SMALLEST = {"ROWS": 30_000, "WARM": 25_000, "NEW": 1000, "AGREEING": 500, "BOTH": (2000,), "BOTH_EM": (2000,)}
BOTH, BOTH_EM = (5_000, 20_000, 50_000), (10_000, 100_000, 1_000_000)  # rows of short runs with and without a GPU


def data(n, d=20, n_classes=4, seed=0):
    """Labels with a product and squares in their log-odds, besides what is linear."""
    slopes = np.random.default_rng(123).normal(size=(d, n_classes)) * 1.5 / np.sqrt(d)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    curved = 0.4 * X[:, :1] ** 2 * np.arange(n_classes)
    scores = X @ slopes + curved + (X[:, 1] * X[:, 2])[:, None] * (1.0 - np.arange(n_classes) % 3)
    return X, np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)


def log_loss(probability, labels):
    return float(-np.log(probability[np.arange(len(labels)), labels]).mean())


def line(name, seconds, loss, said=""):
    print(f"  {name}: {seconds:.1f} s, log-loss {loss:.4f} {said}", flush=True)


def ours(X, y, new, labels, engine="cupy", **settings):
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = PlackettLuceClassifier(engine=engine, random_state=0, **settings).fit(X, y)
    taken = time.perf_counter() - started
    started = time.perf_counter()
    probability = model.predict_proba(new)
    told = f"({len(new):,} predictions {time.perf_counter() - started:.2f} s)"
    said = " ".join(str(getattr(model, "diagnostics_", "one estimate")).split())
    line(f"plackett {engine} {settings or 'default'}, {len(X):,} rows", taken, log_loss(probability, labels),
         f"{told} {said}")  # fmt: skip
    return probability


def nuts(X, y, new, labels, warmup=150, draws=150, depth=6):
    """NumPyro on the same prior and coordinates: four chains side by side, in floats; a tree of at most 2^depth - 1."""
    import jax
    import jax.numpy as jnp
    import numpyro
    from numpyro.infer import MCMC, NUTS

    K, d = int(y.max()) + 1, X.shape[1]
    prior = LearnedDirections().prior(K, d, 0.02)
    Z, codes, shape = jnp.asarray(X, jnp.float32), jnp.asarray(y), jnp.asarray(prior.shape, jnp.float32)
    owner, steep, M = jnp.asarray(prior.owner), 1 / shape - 1, len(prior.owner)

    def model():
        u = numpyro.sample("u", numpyro.distributions.Normal(0, 1).expand([K, d]).to_event(2))
        v = numpyro.sample("v", numpyro.distributions.Normal(0, 1).expand([M, d]).to_event(2))
        spread = numpyro.distributions.Normal(0, prior.covariate_spread).expand([d]).to_event(1)
        log_s = numpyro.sample("log_s", spread)
        scales = numpyro.distributions.Normal(jnp.asarray(prior.scale_centre), jnp.asarray(prior.scale_spread))
        sigma = jnp.exp(numpyro.sample("log_sigma", scales.to_event(1)))
        flat = numpyro.distributions.ImproperUniform(numpyro.distributions.constraints.real_matrix, (), (K, M))
        t = numpyro.sample("t", flat)
        log_weights = t - steep * jax.nn.softplus(-t)
        numpyro.factor("weights", (shape * log_weights - jnp.exp(log_weights)).sum())
        numpyro.factor("coordinates", jnp.log1p(steep * jax.nn.sigmoid(-t)).sum())
        beta = numpyro.deterministic("beta", jnp.exp(log_s) * (sigma[0] * u[owner] + sigma[1] * v))
        numpyro.deterministic("log_weights", log_weights)
        numpyro.factor("rows", jnp.take_along_axis(log_probability(Z, beta, log_weights), codes[:, None], 1).sum())

    def log_probability(rows, beta, log_weights):
        scores = rows @ beta.T
        scores = jnp.exp(scores - scores.max(axis=1, keepdims=True))
        rates = jnp.log(scores @ jnp.exp(jnp.maximum(log_weights, -60.0)).T + 1e-30)
        return rates - jax.nn.logsumexp(rates, axis=1, keepdims=True)

    kernel = NUTS(model, max_tree_depth=depth, init_strategy=numpyro.infer.init_to_uniform(radius=0.3))
    mcmc = MCMC(kernel, num_warmup=warmup, num_samples=draws, num_chains=4, chain_method="vectorized",
                progress_bar=False)  # fmt: skip
    started = time.perf_counter()
    mcmc.run(jax.random.PRNGKey(0), extra_fields=("num_steps",))
    found = mcmc.get_samples(group_by_chain=True)
    jax.block_until_ready(found)
    taken = time.perf_counter() - started
    predict = jax.jit(lambda rows, beta, log_weights: jnp.exp(log_probability(rows, beta, log_weights)))
    some = np.asarray(X[probed(len(X))], np.float32)
    probes = np.array([[predict(some, b, w) for b, w in zip(bs, ws, strict=True)]
                       for bs, ws in zip(found["beta"], found["log_weights"], strict=True)])  # fmt: skip
    average = np.mean([predict(np.asarray(new, np.float32), b, w)
                       for bs, ws in zip(found["beta"], found["log_weights"], strict=True)
                       for b, w in zip(bs[::10], ws[::10], strict=True)], axis=0)  # fmt: skip
    steps = int(mcmc.get_extra_fields()["num_steps"].sum())
    said = " ".join(str(diagnose(probability=probes.astype(float))).split())
    line(f"NumPyro NUTS, {warmup} + {draws} draws of 4 chains, trees of {2**depth - 1} (with compiling)", taken,
         log_loss(average.astype(float), labels), f"{steps:,} steps after warm-up; {said}")  # fmt: skip


def agreement(n, d=4, n_classes=3):
    """On few rows, where chains converge: what two seeds on the processor differ by, and the GPU from the first."""
    X, y = data(n, d, n_classes)
    new, _ = data(20_000, d, n_classes, seed=1)
    many, found = flights.MANY, []
    for engine, seed, from_modes in (("numba", 0, False), ("numba", 1, False), ("cupy", 0, False), ("cupy", 0, True)):
        flights.MANY = 0 if from_modes else many
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = PlackettLuceClassifier(engine=engine, random_state=seed).fit(X, y)
        found.append(model.predict_proba(new))
        away = np.sqrt(((found[0] - found[-1]) ** 2).mean())
        said, told = " ".join(str(model.diagnostics_).split()), model.posterior_
        print(f"  {n:,} rows, {engine}, seed {seed}{', as if rows were many' if from_modes else ''}: probabilities "
              f"{away:.4f} (rms) from the first; mode {told.mode_weight:.3f}, power {told.power:.3f}; {said}",
              flush=True)  # fmt: skip
    flights.MANY = many


def thresholds():
    """From where on the GPU gains: the same short run on both."""
    for n in BOTH:
        X, y = data(n)
        for engine in ("numba", "cupy"):
            settings = {"inference": Gibbs(tune=30, draws=30)}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                started = time.perf_counter()
                PlackettLuceClassifier(engine=engine, random_state=0, **settings).fit(X, y)
            print(f"  {n:,} rows, 30 + 30 draws, {engine}: {time.perf_counter() - started:.2f} s", flush=True)
    for n in BOTH_EM:
        X, y = data(n)
        for engine in ("numba", "cupy"):
            started = time.perf_counter()
            model = PlackettLuceClassifier(EM(), features="exp", shape=0.5, engine=engine).fit(X, y)
            taken = time.perf_counter() - started
            sizes = f"p = {model.weights_.shape[1]}, EM, {model.n_iter_} iterations"
            print(f"  {n:,} rows, {sizes}, {engine}: {taken:.2f} s", flush=True)


def main():
    gpu()
    fits()
    agreement(AGREEING)
    thresholds()


def fits():
    """Ours beside others on the same rows."""
    warm, codes = data(WARM, seed=2)
    new, labels = data(NEW, seed=1)
    ours(warm, codes, new, labels)  # kernels are compiled
    X, y = data(ROWS)
    ours(X, y, new, labels)
    started = time.perf_counter()
    logit = LogisticRegression().fit(X, y)
    line("scikit-learn LogisticRegression", time.perf_counter() - started, log_loss(logit.predict_proba(new), labels))
    if importlib.util.find_spec("xgboost"):
        from xgboost import XGBClassifier

        started = time.perf_counter()
        trees = XGBClassifier(device="cuda").fit(X, y)
        line("XGBoost on the GPU", time.perf_counter() - started, log_loss(trees.predict_proba(new), labels))
    if importlib.util.find_spec("numpyro"):
        nuts(X, y, new, labels)

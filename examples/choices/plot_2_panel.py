"""
Customers with tastes of their own
==================================

Each of 361 customers chose up to twelve times among four offers of electricity. Customers differ: some care about the
price alone, others pay for a local supplier. Mixed logit estimates both the distribution of tastes and the tastes of
each customer.
"""

# %%
# A panel
# -------
# Offers differ in price (``pf``, cents a kWh), length of the contract in years (``cl``), local (``loc``) and well-known
# (``wk``) supplier, and rates by time of day (``tod``) and by season (``seas``).

import matplotlib.pyplot as plt
import numpy as np

from plackett import Gibbs, PlackettLuceChooser, Tastes, plots
from plackett.datasets import load

offers = load("electricity")
X, y, customer = offers.choices, offers.y, offers.groups
print(X)

# %%
# One taste for all, or tastes of their own
# -----------------------------------------
# The last two choices of each customer are held out. The model with random tastes knows the customers from their other
# choices. A short run is enough for predictions; without ``draws`` the chains continue until the coefficients can be
# read one by one.

last = np.array([np.count_nonzero(customer[t + 1 :] == customer[t]) < 2 for t in range(len(y))])
train, test = np.flatnonzero(~last), np.flatnonzero(last)
one = PlackettLuceChooser("em", features="linear").fit(X[train], y[train], groups=customer[train])
own = PlackettLuceChooser(Gibbs(draws=500, tune=500), features=Tastes(constants=False), random_state=0)
own.fit(X[train], y[train], groups=customer[train])
for name, model, known in (("one taste for all", one, {}), ("tastes of their own", own, {"groups": customer[test]})):
    print(f"{name:20} held-out log-loss {-model.log_likelihood(X[test], y[test], **known).mean():.3f}")

# %%
# The population
# --------------
# Mean and standard deviation of each coefficient over the customers, with intervals.

print(own.population().round(2).to_string())

# %%
# The customers
# -------------
# Part-worth of a local supplier for each customer, sorted, with 90 % intervals. Those above zero prefer a local
# supplier.

local = own.tastes().xs("loc", level="attribute").sort_values("mean")
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
places = np.arange(len(local))
ax.vlines(places, local["lower"], local["upper"], color=plots.style.PALETTE[0], alpha=0.3)
ax.plot(places, local["mean"], ".", color=plots.style.PALETTE[0])
ax.axhline(0, color="grey", linewidth=0.8)
ax.set(xlabel="361 customers", ylabel="part-worth of a local supplier,\n90 % intervals", xticks=[])

# %%
# Willingness to pay
# ------------------
# Cents a kWh for a local supplier: the median customer, and the range that holds most customers. The sign is negative
# because customers accept a higher price.

print(own.willingness_to_pay("loc", "pf"))

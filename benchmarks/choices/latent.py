"""Latent classes of conditional logits, by choice-learn (an optional package of its own): three classes of persons."""

import numpy as np

CLASSES = 3


def latent_classes(data, train, test, seed):
    """ln Pr of the choices of `test`; constants and persons' columns by alternative, shared attributes."""
    from choice_learn.data import ChoiceDataset
    from choice_learn.models.latent_class_mnl import LatentClassConditionalLogit

    X, K = data.X, len(data.X.alternatives)
    situation = X.situation
    attributes, there = np.zeros((len(X), K, X.values.shape[1])), np.zeros((len(X), K))
    attributes[situation, X.alternative], there[situation, X.alternative] = X.values, 1.0
    seen = X.values[np.isin(situation, train)]
    attributes = (attributes - seen.mean(axis=0)) / np.where(seen.std(axis=0) > 0, seen.std(axis=0), 1.0)
    known = X.context[train]
    person = (X.context - known.mean(axis=0)) / np.where(known.std(axis=0) > 0, known.std(axis=0), 1.0)
    chosen = X.alternative[X.chosen(data.y)]
    names = [f"x{a}" for a in range(attributes.shape[2])], [f"h{a}" for a in range(person.shape[1])]

    def dataset(rows):
        shared = {"shared_features_by_choice": (person[rows].astype(np.float32),)} if names[1] else {}
        return ChoiceDataset(
            choices=chosen[rows],
            items_features_by_choice=(attributes[rows].astype(np.float32),),
            items_features_by_choice_names=(names[0],),
            available_items_by_choice=there[rows].astype(np.float32),
            **shared,
            **({"shared_features_by_choice_names": (names[1],)} if names[1] else {}),
        )

    model = LatentClassConditionalLogit(CLASSES, fit_method="mle", optimizer="lbfgs", epochs=1000, lbfgs_tolerance=1e-5)
    for name in names[0]:
        model.add_shared_coefficient(coefficient_name=name, feature_name=name, items_indexes=list(range(K)))
    for name in ("intercept", *names[1]):
        model.add_coefficients(coefficient_name=name, feature_name=name, items_indexes=list(range(1, K)))
    model.fit(dataset(train))
    probability = np.asarray(model.predict_probas(dataset(test)))
    return np.log(np.maximum(probability[np.arange(len(test)), chosen[test]], 1e-12))

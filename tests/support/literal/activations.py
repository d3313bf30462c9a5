"""Activations, in numpy."""

import numpy as np


def relu(Z):
    return np.maximum(Z, 0)


def softmax(E):
    Z = np.exp(E - E.max())
    return Z / Z.sum()


def sigmoid(Z):
    return 1 / (1 + np.exp(-Z))


def leaky(Z):
    return np.where(Z > 0, Z, 0.1 * Z)

"""GCNII, its relatives in the same skeleton, and the shallow models."""

import numpy as np

from support.literal.activations import relu


def deep(conv):
    """The network around the convolutions: two dense layers with biases, ReLU but at the end."""

    def network(w, P, X, layers, width, dropout, **settings):
        H = H0 = relu(X @ w("dense.encode.weight").T + w("dense.encode.bias"))
        for l in range(1, layers + 1):
            H = relu(conv(lambda name, l=l: w(f"convs.{l - 1}.{name}"), P, H, H0, l=l, **settings))
        return H @ w("dense.decode.weight").T + w("dense.decode.bias")

    return network


def beta(lam, l):
    return np.log(lam / l + 1)


def gcnii(w, P, H, H0, l, alpha, lam):
    b, I = beta(lam, l), np.eye(H.shape[1])
    return ((1 - alpha) * P @ H + alpha * H0) @ ((1 - b) * I + b * w("W"))


def gcnii_star(w, P, H, H0, l, alpha, lam):
    """The authors' code: one weight on concat(P̃H, H0), not scaled by 1-α and α."""
    b = beta(lam, l)
    support = np.concatenate([P @ H, H0], 1)
    residual = (1 - alpha) * P @ H + alpha * H0
    return b * support @ np.concatenate([w("W1"), w("W2")]) + (1 - b) * residual


def gcnii_star_printed(w, P, H, H0, l, alpha, lam):
    b, I = beta(lam, l), np.eye(H.shape[1])
    return (1 - alpha) * P @ H @ ((1 - b) * I + b * w("W1")) + alpha * H0 @ (
        (1 - b) * I + b * w("W2")
    )


def gcn(w, P, H, H0, l):
    return P @ H @ w("W")


def gcn_initial(w, P, H, H0, l, alpha):
    return ((1 - alpha) * P @ H + alpha * H0) @ w("W")


def gcn_identity(w, P, H, H0, l, lam):
    return P @ H @ ((1 - beta(lam, l)) * np.eye(H.shape[1]) + beta(lam, l) * w("W"))


def plus(
    w, P, X, layers, width, alpha, lam, dropout, input_dropout, product_first, row_norm, head,
    residual,
):  # fmt: skip
    def norm(Z, place):
        if row_norm == "layer":
            centred = Z - Z.mean(1, keepdims=True)
            scaled = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
            return scaled * w(f"{place}.norm.weight") + w(f"{place}.norm.bias")
        return Z

    Z = X @ w("dense.encode.weight").T
    states = [relu(norm((P @ Z if product_first else Z) + w("dense.encode.bias"), "dense"))]
    for l in range(1, layers + 1):
        H = states[-1]
        Z = gcnii(lambda name, l=l: w(f"convs.{l - 1}.{name}"), P, H, states[0], l, alpha, lam)
        if residual:
            Z = Z + H @ w(f"convs.{l - 1}.W_skip")
        states.append(relu(norm(Z, f"convs.{l - 1}")))
    scores = states[-1] @ w("dense.decode.weight").T + w("dense.decode.bias")
    return scores + X @ w("dense.features.weight").T if head == "features" else scores


def mlp(w, P, X, width, dropout):
    H = relu(X @ w("dense.encode.weight").T + w("dense.encode.bias"))
    return H @ w("dense.decode.weight").T + w("dense.decode.bias")


def kipf(w, P, X, layers, width, dropout):
    for l in range(layers):
        X = P @ X @ w(f"convs.{l}.W") + w(f"convs.{l}.b")
        X = relu(X) if l < layers - 1 else X
    return X


def sgc(w, P, X, layers):
    return np.linalg.matrix_power(P, layers) @ X @ w("dense.decode.weight").T + w(
        "dense.decode.bias"
    )


def appnp(w, P, X, layers, width, alpha, dropout):
    Z = Z0 = mlp(w, P, X, width, dropout)
    for _ in range(layers):
        Z = (1 - alpha) * P @ Z + alpha * Z0
    return Z


def ppnp(w, P, X, width, alpha, dropout):
    return alpha * np.linalg.inv(np.eye(len(P)) - (1 - alpha) * P) @ mlp(w, P, X, width, dropout)


SKELETONS = {
    "gcnii": deep(gcnii),
    "gcnii-star": deep(gcnii_star),
    "gcnii-star-printed": deep(gcnii_star_printed),
    "gcnii-plus": plus,
    "gcnii-ppi": deep(lambda w, P, H, H0, **settings: gcnii(w, P, H, H0, **settings) + H),
    "gcnii-star-ppi": deep(lambda w, P, H, H0, **settings: gcnii_star(w, P, H, H0, **settings) + H),
    "deep-gcn": deep(gcn),
    "gcn-residual": deep(lambda w, P, H, H0, l: (P @ H + H) @ w("W")),
    "gcn-initial": deep(gcn_initial),
    "gcn-identity": deep(gcn_identity),
    "mlp": mlp,
    "gcn": kipf,
    "sgc": sgc,
    "appnp": appnp,
    "ppnp": ppnp,
}

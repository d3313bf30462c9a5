"""GraphSAGE, VR-GCN and Cluster-GCN: node by node."""

import numpy as np

from support.literal.activations import relu, sigmoid


def graphsage(aggregate):
    """A loop over the nodes; `aggregate(w, P_i, H)` is node i's, where P_i is its row of P."""

    def network(w, P, X, layers, width, dropout):
        H = X
        for l in range(layers):
            own = lambda name, l=l: w(f"convs.{l}.{name}")  # noqa: E731
            near = np.stack([aggregate(own, row, H) for row in P])
            H = relu(np.concatenate([H @ own("own"), near @ own("neighbours")], 1))
        length = np.sqrt((H**2).sum(1, keepdims=True))
        H = np.divide(H, length, out=np.zeros_like(H), where=length > 0)
        return H @ w("dense.decode.weight").T + w("dense.decode.bias")

    return network


def aggregate_by_mean(w, row, H):
    return sum((row[j] * H[j] for j in np.flatnonzero(row)), np.zeros(H.shape[1]))


def aggregate_by_pool(w, row, H):
    said = [relu(H[j] @ w("pool") + w("b")) for j in np.flatnonzero(row)]
    return np.max(said, 0) if said else np.zeros_like(w("b"))


def aggregate_by_lstm(w, row, H):
    h = c = np.zeros(len(w("U")))
    line = np.sin(np.arange(1, H.shape[1] + 1))
    for j in sorted(np.flatnonzero(row), key=lambda j: H[j] @ line)[:128]:
        i, f, g, o = np.split(H[j] @ w("W") + h @ w("U") + w("b"), 4)
        c = sigmoid(f + 1) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
    return h


def normed(w, name, H):
    rows = []
    for z in H @ w(f"{name}.W"):
        rows.append(
            (z - z.mean()) / np.sqrt(z.var() + 1e-9) * w(f"{name}.scale") + w(f"{name}.offset")
        )
    return relu(np.stack(rows))


def vr_gcn(w, P, X, layers, width, dropout):
    """Dense layers 0 and 1 after each gathering; the very last is the decoder."""
    H = X
    for l in range(layers):
        H = normed(w, f"convs.{l}.0", np.concatenate([H, P @ H], 1))
        if l < layers - 1:
            H = normed(w, f"convs.{l}.1", H)
    return H @ w("dense.decode.weight").T


def cluster_gcn(w, P, X, layers, width, dropout):
    A = (P != 0).astype(float)
    np.fill_diagonal(A, 0)
    H = np.concatenate([A @ X, X], 1)
    for l in range(layers - 1):
        H = normed(w, f"convs.{l}", H)
        H = np.concatenate([P @ H, H], 1)
    return H @ w("dense.decode.weight").T


INDUCTIVE = {
    "graphsage-mean": graphsage(aggregate_by_mean),
    "graphsage-pool": graphsage(aggregate_by_pool),
    "graphsage-lstm": graphsage(aggregate_by_lstm),
    "vr-gcn-cv": vr_gcn,
    "vr-gcn-cvd": vr_gcn,
    "cluster-gcn": cluster_gcn,
}

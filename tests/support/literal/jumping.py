"""DropEdge's GCN, JKNet and IncepGCN."""

import numpy as np

from support.literal.activations import relu


def dropedge_conv(w, P, H, self_weight=False, batch_norm=False):
    Z = P @ H @ w("W") + w("b") + (H @ w("W_self") if self_weight else 0)
    if not batch_norm:
        return Z
    mean, variance = Z.sum(0) / len(Z), ((Z - Z.mean(0)) ** 2).sum(0) / len(Z)
    return (Z - mean) / np.sqrt(variance + 1e-5) * w("norm.scale") + w("norm.shift")


def dropedge(read):
    """First convolution, the layers that `read` returns for the last one, last convolution."""

    def network(w, P, X, layers, width, dropout, **options):
        def conv(l, H, branch=None):
            def own(name):
                return w(f"convs.{l}.{name}") if branch is None else w(f"convs.{l}.{name}")[branch]

            return dropedge_conv(own, P, H, **options)

        def layer(l, H, branch=None):
            return relu(conv(l, H, branch))

        return conv(layers - 1, np.concatenate(read(layer, layer(0, X), layers - 2), 1))

    return network


def dropedge_gcn(layer, H, n):
    for l in range(1, n + 1):
        H = layer(l, H)
    return [H]


def jknet(layer, x0, n):
    x = [x0]
    for i in range(1, n + 1):
        x.append(layer(i, x[i - 1]))
    return [x[n], *x[:n]]


def incep(layer, x0, n):
    """Branch by branch; branch j is the (j - t)-th that still has a t-th convolution."""
    ends = [x0]
    for j in range(1, n + 1):
        H = x0
        for t in range(1, j + 1):
            H = layer(t, H, j - t)
        ends.append(H)
    return ends


def jumping(join):
    def network(w, P, X, layers, width, dropout):
        chain = []
        for l in range(layers):
            X = relu(P @ X @ w(f"convs.{l}.W") + w(f"convs.{l}.b"))
            chain.append(X)
        return join(w, chain) @ w("dense.decode.weight").T + w("dense.decode.bias")

    return network


def jk_attention(w, chain):
    """Node by node."""
    joined = []
    for own in np.stack(chain, 1):
        ahead, back = jumping_lstm(w, "ahead", own), jumping_lstm(w, "back", own[::-1])[::-1]
        scores = np.array(
            [np.concatenate(both) @ w("dense.attend.v") for both in zip(ahead, back, strict=True)]
        )
        weights = np.exp(scores) / np.exp(scores).sum()
        joined.append(sum(a * h for a, h in zip(weights, own, strict=True)))
    return np.stack(joined)


def jumping_lstm(w, direction, sequence):
    U, V, b = (w(f"dense.attend.{direction}.{name}") for name in "UVb")
    h = c = np.zeros(len(V))
    states = []
    for x in sequence:
        i, f, g, o = np.split(x @ U + h @ V + b, 4)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
        states.append(h)
    return states


JUMPING = {
    "dropedge-gcn": dropedge(dropedge_gcn),
    "jknet": dropedge(jknet),
    "jknet-concat": jumping(lambda w, chain: np.concatenate(chain, 1)),
    "jknet-max": jumping(lambda w, chain: np.max(chain, 0)),
    "jknet-lstm": jumping(jk_attention),
    "incep": dropedge(incep),
}

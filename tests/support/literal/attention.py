"""GAT, GaAN and GeniePath: node by node, head by head."""

import numpy as np

from support.literal.activations import leaky, sigmoid, softmax


def gathered_from(P, i):
    return np.flatnonzero(P[i])


def attention(w, P, H, heads):
    """(n, heads, width): node by node and head by head."""
    Z = (H @ w("W")).reshape(len(H), heads, -1)
    out = np.zeros_like(Z)
    for i in range(len(P)):
        near = gathered_from(P, i)
        for h in range(heads):
            e = np.array([w("a1")[h] @ Z[i, h] + w("a2")[h] @ Z[j, h] for j in near])
            alpha = softmax(np.where(e > 0, e, 0.2 * e))
            out[i, h] = sum(a * Z[j, h] for a, j in zip(alpha, near, strict=True))
    return out


def gat(w, P, X, layers, width, heads, out_heads, dropout, skip=lambda l, H: 0):
    for l in range(layers):

        def own(name, l=l):
            return w(f"convs.{l}.{name}")

        if l == layers - 1:
            return attention(own, P, X, out_heads).mean(1) + own("b") + skip(l, X)
        Z = attention(own, P, X, heads).reshape(len(X), -1) + own("b") + skip(l, X)
        X = np.where(Z > 0, Z, np.exp(np.minimum(Z, 0)) - 1)  # ELU


def gat_ppi(w, P, X, **settings):
    return gat(
        w, P, X, skip=lambda l, H: H @ w(f"dense.{l}.weight").T + w(f"dense.{l}.bias"), **settings
    )


def gaan(w, P, X, layers, width, heads, dropout):
    def dense(name, H):
        return H @ w(f"{name}.weight").T + w(f"{name}.bias")

    H = dense("dense.encode", X)
    for l in range(layers):
        layer = f"convs.{l}"
        Q, K = dense(f"{layer}.query", H), H @ w(f"{layer}.key")
        Q, K = (Z.reshape(len(H), heads, -1) / 24**0.5 for Z in (Q, K))
        V = leaky(dense(f"{layer}.value", H)).reshape(len(H), heads, -1)
        new = []
        for i in range(len(H)):
            near = [j for j in gathered_from(P, i) if j != i]
            top = dense(f"{layer}.pool", H[near]).max(0) if near else np.zeros(64)
            mean = H[near].mean(0) if near else np.zeros(H.shape[1])
            context = leaky(dense(f"{layer}.context", np.concatenate([top, mean])))
            gate = sigmoid(dense(f"{layer}.gate", context))
            each = [
                gate[h] * softmax(K[near, h] @ Q[i, h]) @ V[near, h] if near else V[i, h] * 0
                for h in range(heads)
            ]
            new.append(leaky(dense(f"{layer}.out", np.concatenate([H[i], *each]))))
        H = np.array(new)
    return dense("dense.decode", H)


def breadth(w, P, H):
    out = []
    for i in range(len(H)):
        near = gathered_from(P, i)
        alpha = softmax(
            np.array([w("v")[:, 0] @ np.tanh(H[i] @ w("W_s") + H[j] @ w("W_d")) for j in near])
        )
        out.append(np.tanh(alpha @ H[near] @ w("W")))
    return np.array(out)


def lstm(W, Z, C):
    i, f, o, c = (Z @ part.T for part in np.split(W, 4))
    C = sigmoid(f) * C + sigmoid(i) * np.tanh(c)
    return sigmoid(o) * np.tanh(C), C


def geniepath(w, P, X, layers, width):
    H = X @ w("dense.encode.weight").T + w("dense.encode.bias")
    C = np.zeros_like(H)
    for t in range(layers):
        Z = breadth(lambda name, t=t: w(f"convs.{t}.breadth.{name}"), P, H)
        H, C = lstm(w(f"convs.{t}.depth.gates.weight"), Z, C)
    return H @ w("dense.decode.weight").T + w("dense.decode.bias")


def geniepath_lazy(w, P, X, layers, width):
    M = H = X @ w("dense.encode.weight").T + w("dense.encode.bias")
    C = np.zeros_like(M)
    for t in range(layers):
        H = breadth(lambda name, t=t: w(f"convs.{t}.breadth.{name}"), P, H)
        M, C = lstm(w(f"convs.{t}.depth.gates.weight"), np.concatenate([H, M], 1), C)
    return M @ w("dense.decode.weight").T + w("dense.decode.bias")


ATTENTION = {
    "gat": gat,
    "gat-ppi": gat_ppi,
    "gaan": gaan,
    "geniepath": geniepath,
    "geniepath-lazy": geniepath_lazy,
}

"""Every model once more: dense, in numpy and float64, straight from the equations of PROTOCOL and paper.

Each takes a function `w(name)` that gives the model's weight of that name, P and X, and a model's settings.
"""

import numpy as np


def relu(Z):
    return np.maximum(Z, 0)


def deep(conv):
    """The network around the convolutions: two dense layers with biases, ReLU everywhere but at the end."""

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
    return (1 - alpha) * P @ H @ ((1 - b) * I + b * w("W1")) + alpha * H0 @ ((1 - b) * I + b * w("W2"))


def gcn(w, P, H, H0, l):
    return P @ H @ w("W")


def gcn_initial(w, P, H, H0, l, alpha):
    return ((1 - alpha) * P @ H + alpha * H0) @ w("W")


def gcn_identity(w, P, H, H0, l, lam):
    return P @ H @ ((1 - beta(lam, l)) * np.eye(H.shape[1]) + beta(lam, l) * w("W"))


def mlp(w, P, X, width, dropout):
    H = relu(X @ w("dense.encode.weight").T + w("dense.encode.bias"))
    return H @ w("dense.decode.weight").T + w("dense.decode.bias")


def kipf(w, P, X, layers, width, dropout):
    for l in range(layers):
        X = P @ X @ w(f"convs.{l}.W") + w(f"convs.{l}.b")
        X = relu(X) if l < layers - 1 else X
    return X


def sgc(w, P, X, layers):
    return np.linalg.matrix_power(P, layers) @ X @ w("dense.decode.weight").T + w("dense.decode.bias")


def appnp(w, P, X, layers, width, alpha, dropout):
    Z = Z0 = mlp(w, P, X, width, dropout)
    for _ in range(layers):
        Z = (1 - alpha) * P @ Z + alpha * Z0
    return Z


def ppnp(w, P, X, width, alpha, dropout):
    return alpha * np.linalg.inv(np.eye(len(P)) - (1 - alpha) * P) @ mlp(w, P, X, width, dropout)


def softmax(E):
    Z = np.exp(E - E.max())
    return Z / Z.sum()


def sigmoid(Z):
    return 1 / (1 + np.exp(-Z))


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
    return gat(w, P, X, skip=lambda l, H: H @ w(f"dense.{l}.weight").T + w(f"dense.{l}.bias"), **settings)


def leaky(Z):
    return np.where(Z > 0, Z, 0.1 * Z)


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
            each = [gate[h] * softmax(K[near, h] @ Q[i, h]) @ V[near, h] if near else V[i, h] * 0 for h in range(heads)]
            new.append(leaky(dense(f"{layer}.out", np.concatenate([H[i], *each]))))
        H = np.array(new)
    return dense("dense.decode", H)


def breadth(w, P, H):
    out = []
    for i in range(len(H)):
        near = gathered_from(P, i)
        alpha = softmax(np.array([w("v")[:, 0] @ np.tanh(H[i] @ w("W_s") + H[j] @ w("W_d")) for j in near]))
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


def dropedge_conv(w, P, H, self_weight=False, batch_norm=False):
    Z = P @ H @ w("W") + w("b") + (H @ w("W_self") if self_weight else 0)
    if not batch_norm:
        return Z
    mean, variance = Z.sum(0) / len(Z), ((Z - Z.mean(0)) ** 2).sum(0) / len(Z)
    return (Z - mean) / np.sqrt(variance + 1e-5) * w("norm.scale") + w("norm.shift")


def dropedge(read):
    """First convolution, what `read` gives the last one to read, last convolution."""

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
    """Branch by branch; of the t-th convolutions, branch j has number j - t, because shorter ones have ended."""
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
        scores = np.array([np.concatenate(both) @ w("dense.attend.v") for both in zip(ahead, back, strict=True)])
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


LITERAL = {
    "gcnii": deep(gcnii),
    "gcnii-star": deep(gcnii_star),
    "gcnii-star-printed": deep(gcnii_star_printed),
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
    "gat": gat,
    "gat-ppi": gat_ppi,
    "gaan": gaan,
    "geniepath": geniepath,
    "geniepath-lazy": geniepath_lazy,
    "dropedge-gcn": dropedge(dropedge_gcn),
    "jknet": dropedge(jknet),
    "jknet-concat": jumping(lambda w, chain: np.concatenate(chain, 1)),
    "jknet-max": jumping(lambda w, chain: np.max(chain, 0)),
    "jknet-lstm": jumping(jk_attention),
    "incep": dropedge(incep),
}

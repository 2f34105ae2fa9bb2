"""1-bit Adam and 1-bit LAMB of ranks, written after the papers (2102.02888, 2104.06069) in NumPy: every rank's gradients, momentum and
errors, and the compressed all-reduce between them. Nothing of ours computes here."""
import numpy as np


def tanh_gradients(weights, x, labels):
    """Of the mean cross entropy of the three layers that ranks_runs.mlp makes."""
    w0, b0, w1, b1, w2 = (weights[name] for name in ("w0", "b0", "w1", "b1", "w2"))
    h0 = np.tanh(x @ w0 + b0)
    h1 = np.tanh(h0 @ w1 + b1)
    y = h1 @ w2
    p = np.exp(y - y.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    p[np.arange(len(labels)), labels] -= 1
    p /= len(labels)
    d1 = p @ w2.T * (1 - h1 * h1)
    d0 = d1 @ w1.T * (1 - h0 * h0)
    return {"w0": x.T @ d0, "b0": d0.sum(0), "w1": h0.T @ d1, "b1": d1.sum(0), "w2": h1.T @ p}


def sign(values):
    return np.where(values >= 0, 1.0, -1.0)


class Message:
    """A space in which tensors lie at multiples of 8; ranks own equal parts of whole bytes of bits. `values` of a rank are one vector."""

    def __init__(self, sizes, ranks, feedback=True):
        self.ranks, self.sizes, self.feedback = ranks, sizes, feedback
        self.elements = sum(-(-size // 8) * 8 for size in sizes)
        self.shard = -(-self.elements // (8 * ranks)) * 8
        self.covered = np.zeros(ranks * self.shard, bool)
        self.starts, at = [], 0
        for size in sizes:
            self.covered[at:at + size] = True
            self.starts.append(at)
            at += -(-size // 8) * 8
        self.worker = np.zeros((ranks, ranks * self.shard))
        self.server = np.zeros(ranks * self.shard)

    def bytes(self):
        return 2 * (self.ranks - 1) * self.shard // 8 + 8 * (self.ranks - 1) if self.ranks > 1 else 0

    def compress(self, values, covered):
        if not covered.any():
            return np.zeros_like(values)
        scale = np.float32(np.linalg.norm(values[covered]) / np.sqrt(covered.sum()))
        return np.where(covered, scale * sign(values), 0)

    def mean(self, tensors):
        """tensors[rank][number]; the same list for all ranks."""
        if self.ranks == 1:
            return list(tensors[0])
        sent = np.zeros((self.ranks, len(self.covered)))
        for rank, own in enumerate(tensors):
            values = np.zeros(len(self.covered))
            for start, tensor in zip(self.starts, own):
                values[start:start + tensor.size] = tensor.ravel()
            values += self.worker[rank]
            sent[rank] = self.compress(values, self.covered)
            if self.feedback:
                self.worker[rank] = np.where(self.covered, values - sent[rank], 0)
        means = sent.mean(0) + self.server
        result = np.zeros_like(means)
        for owner in range(self.ranks):
            part = slice(owner * self.shard, (owner + 1) * self.shard)
            result[part] = self.compress(means[part], self.covered[part])
        if self.feedback:
            self.server = np.where(self.covered, means - result, 0)
        return [result[start:start + tensor.size].reshape(tensor.shape) for start, tensor in zip(self.starts, tensors[0])]


class OneBit:
    """What both optimizers share: gradients of ranks, clipping, messages. `groups` are lists of names, one message part each."""

    def __init__(self, weights, groups, ranks, freeze, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, decay=0.0, clip=0.0, spared=()):
        self.x = {name: np.array(value, np.float64) for name, value in weights.items()}
        self.m = {name: np.zeros_like(value) for name, value in self.x.items()}
        self.v = {name: np.zeros_like(value) for name, value in self.x.items()}
        self.ranks, self.freeze, self.lr, self.betas, self.eps, self.decay, self.clip = ranks, freeze, lr, betas, eps, decay, clip
        self.groups, self.spared, self.count, self.norms = groups, spared, 0, []
        self.messages = [Message([self.x[name].size for name in group], ranks) for group in groups]

    def decay_of(self, name):
        return 0.0 if name in self.spared else self.decay

    def factor(self, norm):
        self.norms.append(norm)
        return min(1.0, self.clip / (norm + 1e-6)) if self.clip else 1.0

    def step(self, local):
        """local[rank][name]: gradients of the rank's own samples, as if there were no other ranks."""
        if self.count < self.freeze:
            mean = {name: sum(own[name] for own in local) / self.ranks for name in self.x}
            factor = self.factor(np.sqrt(sum((g * g).sum() for g in mean.values())))
            self.warm({name: factor * g for name, g in mean.items()})
        else:
            squares = [sum((g * g).sum() for g in own.values()) for own in local]
            factor = self.factor(np.sqrt(sum(squares) / self.ranks))
            self.compressed([{name: factor * g for name, g in own.items()} for own in local])
        self.count += 1

    def averages(self, g):
        for name in self.x:
            self.m[name] = self.betas[0] * self.m[name] + (1 - self.betas[0]) * g[name]
            self.v[name] = self.betas[1] * self.v[name] + (1 - self.betas[1]) * g[name] ** 2

    def exchange(self, local, scales=None):
        """Momentum of all ranks as what the messages make of it; `scales` multiply it on its way."""
        scales = scales or {name: 1.0 for name in self.x}
        momenta = [{name: np.where(self.v[name] == 0, 0, self.betas[0] * self.m[name] + (1 - self.betas[0]) * own[name]) for name in self.x}
                   for own in local]
        result = {}
        for group, message in zip(self.groups, self.messages):
            means = message.mean([[own[name] * scales[name] for name in group] for own in momenta])
            for name, mean in zip(group, means):
                result[name] = np.where(self.v[name] == 0, 0, mean / scales[name])
        return result


class OneBitAdam(OneBit):
    def move(self):
        for name in self.x:
            self.x[name] = self.x[name] - self.lr * (self.m[name] / (np.sqrt(self.v[name]) + self.eps) + self.decay_of(name) * self.x[name])

    def warm(self, g):
        self.averages(g)
        self.move()

    def compressed(self, local):
        self.m = self.exchange(local)
        self.move()


class OneBitLamb(OneBit):
    """One message of all tensors, which have one size there; the trust ratio of the warm-up's average, times a factor."""

    def __init__(self, *arguments, trust=(0.01, 10.0), coeff_beta=0.9, factor=(0.5, 4.0), threshold=0.1, **more):
        super().__init__(*arguments, **more)
        self.trust, self.coeff_beta, self.bounds, self.threshold = trust, coeff_beta, factor, threshold
        self.average = {name: 0.0 for name in self.x}
        self.fresh = self.scales = None
        self.factors = {name: 1.0 for name in self.x}

    def direction(self, name):
        return self.m[name] / (np.sqrt(self.v[name]) + self.eps)

    def warm(self, g):
        self.averages(g)
        for name, x in self.x.items():
            update = self.direction(name) + self.decay_of(name) * x
            sizes = np.linalg.norm(x), np.linalg.norm(update)
            ratio = float(np.clip(sizes[0] / sizes[1], *self.trust)) if all(sizes) else 1.0
            if ratio != 1:
                self.average[name] = self.coeff_beta * self.average[name] + (1 - self.coeff_beta) * ratio
            self.x[name] = x - self.lr * ratio * update

    def freeze_all(self):
        self.fresh = {name: v.copy() for name, v in self.v.items()}
        sizes = {name: np.linalg.norm(m) / np.sqrt(m.size) for name, m in self.m.items()}
        mean = np.mean(list(sizes.values()))
        self.scales = {name: mean / size if size > 0 else 1.0 for name, size in sizes.items()}

    def compressed(self, local):
        if self.scales is None:
            self.freeze_all()
        before, self.m = self.m, self.exchange(local, self.scales)
        for name, x in self.x.items():
            g = (self.m[name] - self.betas[0] * before[name]) / (1 - self.betas[0])
            self.fresh[name] = self.betas[1] * self.fresh[name] + (1 - self.betas[1]) * g * g
            factor = ((np.sqrt(self.v[name]) + self.eps) / (np.sqrt(self.fresh[name]) + self.eps)).max()
            direction = self.direction(name)
            update = direction + self.decay_of(name) * x
            if self.decay_of(name) > 0:
                whole = np.linalg.norm(update)
                share = min(1.0, np.linalg.norm(direction) / whole) if whole > 0 else 1.0
                factor = factor * share + 1 - share
            last = self.factors[name]
            factor = np.clip(np.clip(factor, *self.bounds), last * (1 - self.threshold), last * (1 + self.threshold))
            self.factors[name] = float(factor)
            self.x[name] = x - self.lr * self.average[name] * factor * update

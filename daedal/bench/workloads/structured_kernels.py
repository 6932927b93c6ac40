"""Operations over graphs and triples as loops: what PyTorch has in several steps, in one.

Each is compiled by ``daedal.compile(kernel, (out, *arrays))``, and calling that with the same arguments fills ``out``.
"""

import daedal
from daedal import f32, i64

V, D, E, N, M, T = daedal.dims("V D E N M T")


@daedal.kernel
def messages(out: f32[V, D], x: f32[N, D], pointers: i64[V + 1], columns: i64[E]):
    """Message passing: rows of neighbours, weighted by their products with the node's own."""
    for v in range(V):
        row = daedal.zeros(D)
        for e in range(pointers[v], pointers[v + 1]):
            weight = daedal.dot(x[columns[e], :], x[v, :])
            for d in range(D):
                row[d] += weight * x[columns[e], d]
        for d in range(D):
            out[v, d] = row[d]


@daedal.kernel
def transe(out: f32[T], entities: f32[N, D], relations: f32[M, D], heads: i64[T], kinds: i64[T], tails: i64[T]):
    """TransE: the distance of head + relation from tail."""
    for t in range(T):
        score = 0.0
        for d in range(D):
            score += abs(entities[heads[t], d] + relations[kinds[t], d] - entities[tails[t], d])
        out[t] = score


@daedal.kernel
def distmult(out: f32[T], entities: f32[N, D], relations: f32[M, D], heads: i64[T], kinds: i64[T], tails: i64[T]):
    """DistMult: the sum of the products of head, relation and tail."""
    for t in range(T):
        score = 0.0
        for d in range(D):
            score += entities[heads[t], d] * relations[kinds[t], d] * entities[tails[t], d]
        out[t] = score

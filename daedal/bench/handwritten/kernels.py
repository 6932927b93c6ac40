"""The operations that are no layers, as loops for the compiler."""

import daedal
from daedal import f32, i32

V, D, E, N, M, P, T, Q = daedal.dims("V D E N M P T Q")


@daedal.kernel
def csr(out: f32[V, D], x: f32[N, D], pointers: i32[V + 1], columns: i32[E], values: f32[E]):
    """A sparse matrix times a dense one."""
    for v in range(V):
        row = daedal.zeros(D)
        for e in range(pointers[v], pointers[v + 1]):
            for d in range(D):
                row[d] += values[e] * x[columns[e], d]
        for d in range(D):
            out[v, d] = row[d]


@daedal.kernel
def distmult(out: f32[T], entities: f32[N, D], relations: f32[M, D], heads: i32[T], kinds: i32[T], tails: i32[T]):
    """Scores of triples by products."""
    for t in range(T):
        score = 0.0
        for d in range(D):
            score += entities[heads[t], d] * relations[kinds[t], d] * entities[tails[t], d]
        out[t] = score


@daedal.kernel
def transe(out: f32[T], entities: f32[N, D], relations: f32[M, D], heads: i32[T], kinds: i32[T], tails: i32[T]):
    """Scores of triples by distances."""
    for t in range(T):
        score = 0.0
        for d in range(D):
            score += abs(entities[heads[t], d] + relations[kinds[t], d] - entities[tails[t], d])
        out[t] = score


@daedal.kernel
def messages(out: f32[V, D], x: f32[N, D], pointers: i32[V + 1], columns: i32[E]):
    """Rows of neighbours, weighted by their products with the node's own."""
    for v in range(V):
        row = daedal.zeros(D)
        for e in range(pointers[v], pointers[v + 1]):
            s = daedal.dot(x[columns[e], :], x[v, :])
            for d in range(D):
                row[d] += s * x[columns[e], d]
        for d in range(D):
            out[v, d] = row[d]


@daedal.kernel
def gather_blocks(out: f32[P, D], table: f32[M, D], blocks: i32[P]):
    """Blocks by index."""
    for p in range(P):
        for d in range(D):
            out[p, d] = table[blocks[p], d]


@daedal.kernel
def block_scores(out: f32[E], keys: f32[E, D], queries: f32[Q, D], pointers: i32[Q + 1]):
    """Scores of queries against the keys of their blocks."""
    for q in range(Q):
        for e in range(pointers[q], pointers[q + 1]):
            out[e] = daedal.dot(keys[e, :], queries[q, :])


KERNELS = {
    "sparse x dense": csr, "DistMult": distmult, "TransE, L1": transe, "message passing": messages,
    "gather of blocks": gather_blocks, "scores of blocks": block_scores,
}  # fmt: skip
"""The loops of each operation that is no layer; arguments are the result and the data in their order."""

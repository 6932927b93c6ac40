/* The numeric contract of embedding bags in binary32, as plainly as it can be said: docs/machine/numerics.md in C.
 * Compile without contraction (-ffp-contract=off): where a fused operation is meant, it is written. */
#include <math.h>
#include <stdint.h>

enum mode { MODE_SUM, MODE_MEAN, MODE_MAX };

/* How a weighted row is added: with one rounding, or with two (with padding, or a table that is not contiguous). */
enum rounding { FUSED, TWO_ROUNDINGS };

struct bags {
  const float *table; /* rows x dim, contiguous */
  int64_t rows, dim;
  const int64_t *indices;
  int64_t count;
  const int64_t *offsets; /* bags + 1 */
  int64_t bags;
  const float *weights; /* count, or null */
  int64_t padding;      /* a row that does not take part, or -1 */
  int32_t mode, rounding;
  float *out; /* bags x dim */
};

static void add_row(const struct bags *b, float *acc, const float *row, int64_t k) {
  for (int64_t d = 0; d < b->dim; d++) {
    if (!b->weights) {
      acc[d] += row[d];
    } else if (b->rounding == FUSED) {
      acc[d] = fmaf(row[d], b->weights[k], acc[d]);
    } else {
      const float product = row[d] * b->weights[k];
      acc[d] += product;
    }
  }
}

/* The first row is taken as it is; then only what is greater: a NaN stays if it is first and is ignored later. */
static void max_row(const struct bags *b, float *acc, const float *row, int first) {
  for (int64_t d = 0; d < b->dim; d++)
    if (first || row[d] > acc[d]) acc[d] = row[d];
}

/* 0, or 1 + the position of the first index that is out of range. Offsets must be valid. */
int64_t embedding_bag(const struct bags *b) {
  for (int64_t bag = 0; bag < b->bags; bag++) {
    float *acc = b->out + bag * b->dim;
    int64_t taken = 0;
    for (int64_t d = 0; d < b->dim; d++) acc[d] = 0.0f;
    for (int64_t k = b->offsets[bag]; k < b->offsets[bag + 1]; k++) {
      const int64_t index = b->indices[k];
      if (index < 0 || index >= b->rows) return 1 + k;
      if (index == b->padding) continue;
      if (b->mode == MODE_MAX)
        max_row(b, acc, b->table + index * b->dim, taken == 0);
      else
        add_row(b, acc, b->table + index * b->dim, k);
      taken++;
    }
    if (b->mode == MODE_MEAN && taken)
      for (int64_t d = 0; d < b->dim; d++) acc[d] /= (float)taken;
  }
  return 0;
}

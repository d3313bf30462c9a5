/* All layers of GCNII on a CPU: what `forward_layer`, `backward_layer` and `weight_gradients` of
 * nn/engine/fused.py compute by torch's operations, with all that a few rows need done while they
 * are in the caches, and by threads that stay together.  `compiled.py` has the machine's compiler
 * make a library of this file.
 *
 * A matrix is given by rows: the entries of row i are rows[i] to rows[i + 1] of columns and values.
 * H, S and their like have n rows of h numbers, a multiple of 32.  What a row gets depends neither
 * on the other rows nor on the number of threads.
 */

#include <stdint.h>
#include <string.h>

#ifdef __AVX512F__
#define LANES 16
#define VECTORS 4 /* of a tile's columns; with 6 rows they fill the registers */
#else
#define LANES 8
#define VECTORS 2
#endif
#define HEIGHT 6 /* rows of a tile */
#define BLOCK 24 /* rows that a thread takes at once */
#define WIDEST 256
#define AHEAD 16 /* entries before its turn, a row to gather is asked of the memory */
#define CHUNKS 64 /* of the rows, whose parts of a gradient are added up in order */
#define SMALL (1 << 14) /* numbers of a matrix that one thread is enough for */

typedef float Floats __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t Ints __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef uint32_t Words __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

#if LANES == 16
static const Words COUNT = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static const Ints FIRST = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23};
#else
static const Words COUNT = {0, 1, 2, 3, 4, 5, 6, 7};
static const Ints FIRST = {0, 8, 1, 9, 2, 10, 3, 11};
#endif
#define SECOND (FIRST + LANES / 2)

#define LEAST(a, b) ((a) < (b) ? (a) : (b))
#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")
#define AT(pointer) (*(Floats *)(pointer))
#define OF(pointer) (*(const Floats *)(pointer))

/* sums += S M for some rows of S (row by row, h numbers each) and some columns of M (h, h). */
INLINE void multiply(int height, int vectors, int64_t h, const float *S, const float *M,
                     Floats sums[HEIGHT][VECTORS]) {
  for (int64_t k = 0; k < h; k++) {
    Floats m[VECTORS];
    UNROLL for (int j = 0; j < vectors; j++) m[j] = OF(M + k * h + j * LANES);
    UNROLL for (int i = 0; i < height; i++) {
      Floats s = S[i * h + k] - (Floats){0};
      UNROLL for (int j = 0; j < vectors; j++) sums[i][j] += s * m[j];
    }
  }
}

/* sums = Σ of a row's entries: value · row of H, in some columns. */
INLINE void gather(int vectors, int64_t h, const int32_t *row_ends, const int32_t *columns,
                   const float *values, const float *H, int64_t all, Floats *sums) {
  UNROLL for (int j = 0; j < vectors; j++) sums[j] = (Floats){0};
  for (int64_t e = row_ends[0]; e < row_ends[1]; e++) {
    const float *soon = H + (int64_t)columns[LEAST(e + AHEAD, all - 1)] * h;
    UNROLL for (int j = 0; j < vectors * LANES; j += 16) __builtin_prefetch(soon + j);
    const float *row = H + (int64_t)columns[e] * h;
    Floats value = values[e] - (Floats){0};
    UNROLL for (int j = 0; j < vectors; j++) sums[j] += value * OF(row + j * LANES);
  }
}

INLINE Words rotated(Words x, int shift) { return x ^ (x >> shift); }

/* dropout.py's `lanes_of`: which of 2 · LANES elements a mask keeps, the first being number
 * 2 · word: -1 where it is kept, else 0. */
INLINE void kept_elements(uint32_t word, const uint32_t *key, int32_t below, Ints kept[2]) {
  const uint32_t factors[2] = {0x21F0AAAD, 0x735A2D97}; /* HASH */
  Words x = rotated(word + COUNT, 16) * factors[0];
  x = rotated(x, 15) * factors[1];
  x = (rotated(x, 15) ^ key[0]) * factors[0];
  x = (rotated(x, 15) + key[1]) * factors[1];
  x = rotated(x, 15);
  Ints low = (Ints)(x << 16) >> 16 < below, high = (Ints)x >> 16 < below;
  kept[0] = __builtin_shuffle(low, high, FIRST);
  kept[1] = __builtin_shuffle(low, high, SECOND);
}

typedef struct {
  int64_t n, h, layers, replicas;
  const int32_t *rows, *columns;
  const float *values, *H, *H0, *M1, *M2; /* M1, M2 (layers, replicas, h, h), of this replica */
  const uint32_t *keys;                   /* (layers, replicas, 2); NULL: nothing is dropped */
  float *const *D, *const *S;             /* of each layer; S may be NULL */
  float alpha, skip;
  int32_t below; /* elements whose lane is below are kept */
} Forward;

typedef struct {
  const float *D, *M1, *M2;
  const uint32_t *key;
  float *H, *S;
} Layer;

static Layer layer_of(const Forward *a, int64_t l) {
  int64_t at = l * a->replicas * a->h * a->h, next = (l + 1) * a->replicas * 2;
  return (Layer){
      .D = l ? a->D[l - 1] : a->H,
      .M1 = a->M1 + at,
      .M2 = a->M2 ? a->M2 + at : NULL,
      .key = a->keys && l + 1 < a->layers ? a->keys + next : NULL,
      .H = a->D[l],
      .S = a->S ? a->S[l] : NULL,
  };
}

/* (1-α) P̃ D / keep + α H0 for one row. */
INLINE void gather_row(const Forward *a, const float *D, int vectors, int64_t i, float *S) {
  int64_t h = a->h;
  for (int64_t j = 0; j < h; j += vectors * LANES) {
    Floats sums[VECTORS];
    gather(vectors, h, a->rows + i, a->columns, a->values, D + j, a->rows[a->n], sums);
    UNROLL for (int v = 0; v < vectors; v++) {
      int64_t at = j + v * LANES;
      AT(S + at) = sums[v] + a->alpha * OF(a->H0 + i * h + at);
    }
  }
}

/* ReLU(S M1 + H0 M2 + skip D) with its mask, for some rows from i on, whose S is given. */
INLINE void finish_rows(const Forward *a, const Layer *layer, int height, int vectors, int64_t i,
                        const float *S) {
  int64_t h = a->h;
  for (int64_t j = 0; j < h; j += vectors * LANES) {
    Floats sums[HEIGHT][VECTORS] = {0};
    multiply(height, vectors, h, S, layer->M1 + j, sums);
    if (layer->M2) multiply(height, vectors, h, a->H0 + i * h, layer->M2 + j, sums);
    UNROLL for (int r = 0; r < height; r++) {
      int64_t first = (i + r) * h + j;
      UNROLL for (int v = 0; v < vectors; v += 2) {
        Ints kept[2] = {~(Ints){0}, ~(Ints){0}};
        if (layer->key) kept_elements((first + v * LANES) / 2, layer->key, a->below, kept);
        UNROLL for (int half = 0; half < 2; half++) {
          int64_t at = first + (v + half) * LANES;
          Floats z = sums[r][v + half];
          if (a->skip) z += a->skip * OF(layer->D + at);
          AT(layer->H + at) = (Floats)((Ints)z & ~(Ints)(z < 0) & kept[half]); /* NaN stays NaN */
        }
      }
    }
  }
}

INLINE void forward_block(const Forward *a, const Layer *layer, int vectors, int64_t first,
                          int64_t end) {
  float own[BLOCK * WIDEST], *S = layer->S ? layer->S + first * a->h : own;
  int64_t i = first, h = a->h;
  for (; i < end; i++) gather_row(a, layer->D, vectors, i, S + (i - first) * h);
  for (i = first; i + HEIGHT <= end; i += HEIGHT)
    finish_rows(a, layer, HEIGHT, vectors, i, S + (i - first) * h);
  for (; i < end; i++) finish_rows(a, layer, 1, vectors, i, S + (i - first) * h);
}

void forward_layers(const Forward *a, int threads) {
  int wide = a->h % (VECTORS * LANES) == 0;
#pragma omp parallel num_threads(a->n *a->h < SMALL ? 1 : threads)
  for (int64_t l = 0; l < a->layers; l++) {
    Layer layer = layer_of(a, l);
#pragma omp for schedule(dynamic, 2)
    for (int64_t first = 0; first < a->n; first += BLOCK) {
      int64_t end = LEAST(first + BLOCK, a->n);
      if (wide) forward_block(a, &layer, VECTORS, first, end);
      else forward_block(a, &layer, 2, first, end);
    }
  }
}

typedef struct {
  int64_t n, h, layers, replicas;
  const int32_t *rows, *columns; /* of P̃'s transpose */
  const float *values, *H0, *M1T, *M2T;
  const float *const *D, *const *S; /* each layer's input, none of the first; its S */
  float alpha, skip;
  float *dZ, *dS, *dH0, *parts, *dM1, *dM2; /* dZ of the last layer, then of what the first took */
} Backward;

/* dS = dZ M1ᵀ, and what reaches H0, for some rows. */
INLINE void through_weights(const Backward *a, int64_t weights, int height, int vectors, int64_t i) {
  int64_t h = a->h;
  for (int64_t j = 0; j < h; j += vectors * LANES) {
    Floats sums[HEIGHT][VECTORS] = {0}, others[HEIGHT][VECTORS] = {0};
    multiply(height, vectors, h, a->dZ + i * h, a->M1T + weights + j, sums);
    if (a->M2T) multiply(height, vectors, h, a->dZ + i * h, a->M2T + weights + j, others);
    UNROLL for (int r = 0; r < height; r++) {
      UNROLL for (int v = 0; v < vectors; v++) {
        int64_t at = (i + r) * h + j + v * LANES;
        AT(a->dS + at) = sums[r][v];
        if (a->M2T) AT(a->dH0 + at) += others[r][v];
        if (a->alpha) AT(a->dH0 + at) += a->alpha * sums[r][v];
      }
    }
  }
}

/* dZ of the layer before, zero where its output D is not positive, for one row. */
INLINE void through_matrix(const Backward *a, const float *D, int vectors, int64_t i) {
  int64_t h = a->h;
  for (int64_t j = 0; j < h; j += vectors * LANES) {
    Floats sums[VECTORS];
    gather(vectors, h, a->rows + i, a->columns, a->values, a->dS + j, a->rows[a->n], sums);
    UNROLL for (int v = 0; v < vectors; v++) {
      int64_t at = i * h + j + v * LANES;
      Floats dD = sums[v];
      if (a->skip) dD += a->skip * OF(a->dZ + at);
      if (D) dD = (Floats)((Ints)dD & ~(Ints)(OF(D + at) <= 0));
      AT(a->dZ + at) = dD;
    }
  }
}

/* out (h, h) += Sᵀ dZ over a few rows. */
INLINE void add_products(int vectors, int64_t h, int64_t count, const float *S, const float *dZ,
                         float *out) {
  for (int64_t j = 0; j < h; j += vectors * LANES) {
    for (int64_t k = 0; k < h; k += 4) {
      Floats sums[4][VECTORS];
      UNROLL for (int r = 0; r < 4; r++) UNROLL for (int v = 0; v < vectors; v++)
        sums[r][v] = OF(out + (k + r) * h + j + v * LANES);
      for (int64_t i = 0; i < count; i++) {
        UNROLL for (int r = 0; r < 4; r++) {
          Floats s = S[i * h + k + r] - (Floats){0};
          UNROLL for (int v = 0; v < vectors; v++)
            sums[r][v] += s * OF(dZ + i * h + j + v * LANES);
        }
      }
      UNROLL for (int r = 0; r < 4; r++) UNROLL for (int v = 0; v < vectors; v++)
        AT(out + (k + r) * h + j + v * LANES) = sums[r][v];
    }
  }
}

/* How many parts the rows are cut into, whatever the number of threads, for gradients of weights;
 * `parts` of Backward has room for as many (h, h), and for as many more if there is M2. */
int64_t chunks(int64_t n) { return LEAST(n / 320 + 1, CHUNKS); }

/* The share that some rows have in Sᵀ dZ. */
static void chunk_products(const Backward *a, const float *S, int64_t chunk, float *part) {
  int64_t h = a->h, count = chunks(a->n), end = a->n * (chunk + 1) / count;
  memset(part, 0, sizeof(float) * h * h);
  for (int64_t i = a->n * chunk / count; i < end; i += BLOCK) {
    int64_t few = LEAST(end - i, BLOCK);
    if (h % (VECTORS * LANES)) add_products(2, h, few, S + i * h, a->dZ + i * h, part);
    else add_products(VECTORS, h, few, S + i * h, a->dZ + i * h, part);
  }
}

static void add_parts(int64_t count, int64_t size, const float *parts, float *out, int64_t at) {
  Floats sum = OF(parts + at);
  for (int64_t c = 1; c < count; c++) sum += OF(parts + c * size + at);
  AT(out + at) = sum;
}

INLINE void weights_block(const Backward *a, int64_t weights, int vectors, int64_t first,
                          int64_t end) {
  int64_t i = first;
  for (; i + HEIGHT <= end; i += HEIGHT) through_weights(a, weights, HEIGHT, vectors, i);
  for (; i < end; i++) through_weights(a, weights, 1, vectors, i);
}

void backward_layers(const Backward *a, int threads) {
  int wide = a->h % (VECTORS * LANES) == 0;
  int64_t size = a->h * a->h, count = chunks(a->n), kinds = a->dM2 ? 2 : 1;
#pragma omp parallel num_threads(a->n *a->h < SMALL ? 1 : threads)
  for (int64_t l = a->layers - 1; l >= 0; l--) {
    int64_t weights = l * a->replicas * size;
    const float *D = l ? a->D[l - 1] : NULL;
#pragma omp for schedule(dynamic, 1) nowait
    for (int64_t c = 0; c < kinds * count; c++)
      chunk_products(a, c < count ? a->S[l] : a->H0, c % count, a->parts + c * size);
#pragma omp for schedule(dynamic, 2)
    for (int64_t first = 0; first < a->n; first += BLOCK) {
      int64_t end = LEAST(first + BLOCK, a->n);
      if (wide) weights_block(a, weights, VECTORS, first, end);
      else weights_block(a, weights, 2, first, end);
    }
#pragma omp for nowait
    for (int64_t at = 0; at < size; at += LANES) {
      add_parts(count, size, a->parts, a->dM1 + weights, at);
      if (a->dM2) add_parts(count, size, a->parts + count * size, a->dM2 + weights, at);
    }
#pragma omp for schedule(dynamic, 2 * BLOCK)
    for (int64_t i = 0; i < a->n; i++) {
      if (wide) through_matrix(a, D, VECTORS, i);
      else through_matrix(a, D, 2, i);
    }
  }
}

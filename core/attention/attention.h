/* attention.h - attention around a plugin, and positions.
**
**   row_weights  (scores (b, h, t, t), [param (h, p)], [length (b)],
**                [first_key (b, t)]) -> weights (b, h, t, t)
**                the row kernel alone, on the scores of visible keys
**   attention    (q (b, t, h*d), k (b, n + t, g*d), v (b, n + t, g*dv),
**                [param (h, p)], [length (b)], [first_key (b, t)])
**                -> (b, t, h*dv)
**                h heads share g key/value heads: head i reads key/value head
**                i / (h/g). n = virtual_keys. first_key[i]: the first key that
**                query i may see (left padding, packed documents); past i: it
**                sees none
**   gate         (o (b, t, h*d), [z (b, t, h*w) or, shared, (b, t, w)],
**                [param (h, p)], [length (b)]) -> (b, t, h*d)
**                a gate plugin on the output of the heads
**   mixer        (each input of the plugin (b, t, h*w) or, shared, (b, t, w), as
**                declared, without inputs that options leave out,
**                [param (h, p)], [length (b)]) -> (b, t, h*d_out)
**                a mixer plugin, one head at a time
**   rope         (x (b, t, h*d), [divisors (r/2)], [positions (b, t)])
**                -> (b, t, h*d)
**                x rotated by position; only x has a gradient
** Optional inputs come in this order; flags of the attributes say which ones are
** given.
** Gradients of parameters are summed over tokens, then over sequences, in
** order. */
#ifndef SL_ATTENTION_H
#define SL_ATTENTION_H
#include "attention/mechanism.h"
#include "ops/op.h"

/* Which keys a query may see. Query i (from 0) of a sequence of n valid tokens
** sees keys lo <= j < hi: causal: hi = i + 1, full: hi = n; window w > 0: keys
** nearer than w (causal: the w last keys, itself counted; full: |i - j| < w). A
** query at or past n sees nothing: its weights, output and gradients are
** zero. */
typedef struct sl_visibility {
  int causal;
  int window; /* 0: no window */
} sl_visibility;
void sl_visible (const sl_visibility *v, int i, int n, int *lo, int *hi);

/* Attributes of the four ops that call a plugin. row_weights reads mechanism,
** d_head (widths of parameters), layer, visibility and the flags, and takes heads
** from the scores; gate reads mechanism, heads, layer, has_param and has_length,
** and takes d_head from o; mixer reads the first seven, has_param and has_length.
** Tokens at or past a sequence's length give 0. */
typedef struct sl_attention_attr {
  const sl_mechanism *mechanism; /* outlives the program */
  int heads;
  int d_head;   /* width of one query and key */
  int layer;    /* from 0, given to the plugin */
  double scale; /* scores = scale * q.k; usually sl_default_scale (d_head) */
  /* A mixer that declares SL_CAUSAL_ONLY is refused with another visibility than
  ** causal without a window. */
  sl_visibility visibility;
  int has_param, has_length;
  int has_first_key; /* not with virtual keys */
  int offset;        /* row_weights only: position of query 0 to the plugin */
  /* attention only: */
  int kv_heads;
  int alibi;          /* 1: adds -slope_h * |i - j| to the scores */
  int recompute_from; /* t at or above this recomputes weights in backward
                      ** instead of saving them (0: the default, 256) */
  int block; /* queries at a time (0: by t): up to 32, or where 16 go together, up
             ** to 64 in whole blocks of 16; changes no bit */
  /* Keys before the first token, visible to every query and without ALiBi's
  ** bias; to the plugin they are earlier tokens. Not with a window. */
  int virtual_keys;
} sl_attention_attr;

/* 1 / sqrt (d_head), the scale of Vaswani et al. 2017; 1 if d_head < 1. */
double sl_default_scale (int d_head);

/* Slopes of ALiBi (Press et al. 2022) for h heads. */
void sl_alibi_slopes (int heads, double *slopes);

/* Sinusoidal positions (Vaswani et al. 2017, section 3.5), row-major
** (positions, d): table[p][2k] = sin (p / 10000^(2k/d)), table[p][2k+1] = cos
** of the same. */
void sl_sinusoidal (ptrdiff_t positions, ptrdiff_t d, double *table);

typedef enum sl_rope_pairs {
  SL_ROPE_INTERLEAVED, /* rotates (2k, 2k+1): GPT-J, GGUF llama */
  SL_ROPE_HALF         /* rotates (k, k + d/2): GPT-NeoX, Hugging Face llama */
} sl_rope_pairs;

/* Pair k at position p is rotated by p * base^(-2k/r) (Su et al. 2021), over the
** divisor of the pair where there are divisors (context extension); the first r
** numbers of a head are rotated, the others copied. */
typedef struct sl_rope_attr {
  sl_rope_pairs pairs;
  int d_head;       /* width of a head */
  double base;      /* 10000 */
  ptrdiff_t offset; /* position of the first token */
  int rotated;      /* even, the first numbers of a head; 0: all of d_head */
  double magnitude; /* factor of rotated numbers (YaRN); 0: 1 */
  int has_divisors, has_positions; /* positions: in place of 0, 1, 2, ... */
} sl_rope_attr;

/* An observer is shown the weights, a block of rows of one head of one sequence
** at a time; nothing (t, t) is kept. Called on worker threads: in a
** program for different sequences at once, in an op that runs at once for
** different heads. Rows of one (sequence, layer, head) come in order on one
** thread, in an op that runs at once those of one head of all sequences.
** Numbers are in the program's precision. */
typedef struct sl_weight_rows {
  int layer;   /* which attention node of the program, from 0 */
  long sample; /* sequence, counted over the whole batch */
  int head, kv_head;
  int t, length;    /* tokens; of them valid */
  int row, rows;    /* first query row of the block, how many */
  int virtual_keys; /* columns before that of token 0: keys that are no tokens */
  sl_dtype dtype;
  ptrdiff_t stride; /* between rows, in elements */
  const void
      *weights;       /* row r: virtual_keys + t columns; 0 where not visible */
  const void *scores; /* the same layout; undefined where not visible; a mixer:
                       ** NULL */
  const int *lo, *hi; /* visible columns of row 'row' + r */
  /* This head's values: token j at value + j * value_stride, its numbers
  ** value_step apart; NULL: a mixer without a 'v'. */
  const void *value;
  ptrdiff_t value_stride, value_step;
  int d_value;
  /* The same of its keys, as the scores see them (after rope); NULL: a mixer. */
  const void *key;
  ptrdiff_t key_stride, key_step;
  int d_key;
} sl_weight_rows;

typedef struct sl_observer {
  void (*rows) (void *context, const sl_weight_rows *rows);
  void *context;
} sl_observer;

#endif

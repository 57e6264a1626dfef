/* kernels.h - what the numeric files of the attention layer share with infer. */
#ifndef SL_KERNELS_H
#define SL_KERNELS_H
#include "attention/attention.h"

enum {
  SL_MOST_ROWS = 32,     /* query rows of a block, at most */
  SL_RECOMPUTE_FROM = 256 /* default of sl_attention_attr.recompute_from */
};

/* Sizes of an attention op, and where its buffers lie in 'scratch' (in reals, each
** 64-byte aligned). Letters: B sequences, T tokens, D width of a query and key, V
** width of a value. */
typedef struct sl_attention_plan {
  int batch, t, heads, kv_heads, d, dv, params;
  int block;     /* query rows at a time */
  int recompute; /* 1: backward computes scores and weights again */
  size_t saved;  /* reals: (B, heads, 2, T, T) scores and weights, or 0 */
  size_t scratch;
  size_t q, k, v;           /* T x D, T x D, T x V: copies of odd strides */
  size_t kt, vt;            /* D x T, V x T */
  size_t dq, dk, dv_sum;    /* gradients of one head, of one key/value head */
  size_t scores, weights;   /* block x T each */
  size_t dscores, dweights; /* block x T each */
  size_t dparam, row;       /* params; T for the plugin */
} sl_attention_plan;

/* Fill p from attributes and input shapes; -1 and a sentence if they do not fit. */
int sl_attention_plan_of (const sl_attention_attr *a, int n_in,
                          const sl_view *in, sl_attention_plan *p, sl_error *e);

int sl_attention_infer (sl_infer *q, sl_error *e);
int sl_mechanism_infer (sl_infer *q, sl_error *e);
int sl_rope_infer (sl_infer *q, sl_error *e);

/* Where row scratch and parameter gradients of the mechanism op lie, in reals. */
typedef struct sl_mechanism_plan {
  int batch, heads, t, params;
  size_t scores, dweights, dscores, dparam, row, scratch;
} sl_mechanism_plan;
int sl_mechanism_plan_of (const sl_attention_attr *a, int n_in,
                          const sl_view *in, sl_mechanism_plan *p, sl_error *e);

/* A number of valid tokens as stored in a tensor: NaN and less than 0 count as 0,
** more than t as t. */
int sl_valid_tokens (double length, int t);
#endif

/* sinks.h - attention sinks measured over a labelled batch, by watching the
** weights go by.
**
** Rows (queries) are of four classes, never averaged together: the first row
** (a causal softmax gives 1 there by construction), trigger rows, plain rows
** (all others), and empty rows (no visible key, padding included), which are
** only counted. */
#ifndef SL_SINKS_H
#define SL_SINKS_H
#include "program/program.h"

typedef struct sl_sinks_spec {
  const sl_program *program; /* forward of the model, recorded for one shard */
  /* Inputs of the program, and the tensors that feed them: the first axis of
  ** batch[i] counts all samples, of inputs[i] those of one shard, which divides
  ** them; batches may have any precision and strides. */
  int n_inputs; /* 1 or more */
  sl_tensor *const *inputs;
  const sl_tensor *const *batch;
  int layers, heads, tokens; /* attention nodes of the program, heads of each */
  /* Keys before the first token, of the attention nodes (their prefix) and of
  ** the sequences: the program has registers + tokens tokens, of which the
  ** first are no tokens of the batch. Positions and lengths count without
  ** them. */
  int prefix, registers;
  int null_mass; /* 1: what a row's weights leave is mass on nothing */
  /* Per sample a position from 0, or negative: none; NULL: no sample has
  ** one. */
  const double *trigger;
  const double *length; /* per sample; NULL: as the program says, or all */
  /* Per layer W_O (d_model, heads * d_value), columns h * d_value .. of head h;
  ** NULL: no contribution. */
  const sl_tensor *const *output;
  int maps;         /* 1: mean and std over samples of every weight */
  double threshold; /* of the sink rate: 0.3 */
} sl_sinks_spec;

/* Of one head; means are over the plain rows of all samples unless said, and
** NaN without any such row. */
typedef struct sl_head_sinks {
  /* Weight on position 1; std with n - 1. */
  double first_mean, first_min, first_std;
  double first_all;     /* the same mean over plain rows and first rows */
  double trigger_first; /* mean over trigger rows */
  double row_mass;      /* sum of a row's weights on tokens */
  double abs_mass;      /* sum of their absolute values */
  /* Sum of a row's weights on keys that are no tokens of the batch: key biases
  ** and registers; NaN without such keys. */
  double virtual_mass;
  double null_mass; /* 1 - all of a row's weights; NaN unless spec.null_mass */
  /* Weight on position 1 over (sum of |weights| + 1e-8) (Gu et al. 2025). */
  double proxy;
  double entropy;      /* nats, of |weights| / sum; 0 for an all-zero row */
  double contribution; /* || A[i,1] W_O v_1 ||_2; NaN without W_O */
  double value_norm;   /* || W_O v_1 ||_2, mean over samples; NaN without W_O */
  /* Share of samples with (1/T) sum_i A[i,1] > threshold, all rows counted, T
  ** the sample's length (Sink_1^eps, Gu et al. 2025); samples without a valid
  ** token are left out. */
  double rate;
  long plain_rows, trigger_rows, empty_rows; /* of all samples */
} sl_head_sinks;

typedef struct sl_sinks {
  int layers, heads, tokens;
  long samples;
  double threshold;
  sl_head_sinks *head; /* [layer][head] */
  /* [layer][head][query][key], zero where nothing is seen; std with n - 1, NaN
  ** for one sample. NULL unless maps. */
  double *mean, *std;
  /* [layer][head][query][extra]: the mean of what is not on tokens: first 1 -
  ** all of the row's weights, then each of the extra - 1 keys that are no
  ** tokens. NULL unless maps. */
  int extra;
  double *outside;
} sl_sinks;

/* Runs the program shard by shard on the context's pool, drawing with { 0, 0,
** index of the sample }. The same bits for every thread count. NULL and a
** sentence on failure (shapes, no weights to see, no memory) and "interrupted"
** when sl_interrupted is set. */
sl_sinks *sl_sinks_measure (sl_context *c, const sl_sinks_spec *spec,
                            sl_error *e);
void sl_sinks_free (sl_sinks *s);
#endif

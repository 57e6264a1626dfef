/* sinks.h - attention sinks measured over a labelled batch, by watching the
** weights go by.
**
** A sequence is one segment of tokens, or several when it packs documents; a
** position counts from the first token of its segment, and what is said of
** position 1 is said of that token. Rows (queries) are of classes that are
** never averaged together: see sl_row_class. */
#ifndef SL_SINKS_H
#define SL_SINKS_H
#include "program/program.h"

typedef enum sl_row_class {
  SL_ROW_PLAIN,    /* every other row that sees a key */
  SL_ROW_FIRST,    /* position 1: a causal softmax gives 1 by construction */
  SL_ROW_TRIGGER,  /* as labelled */
  SL_ROW_BOUNDARY, /* position 1 of every document but the first */
  SL_ROW_CLASSES
} sl_row_class;
/* Padded rows (outside start .. length) and masked rows (valid, but no key is
** visible) are only counted. */
extern const char *const sl_row_class_names[SL_ROW_CLASSES];

/* What is measured of a row. A is its weights. */
typedef enum sl_row_measure {
  SL_OF_FIRST,        /* A[i,1] */
  SL_OF_ROW_MASS,     /* sum of A on tokens */
  SL_OF_ABS_MASS,     /* sum of |A| on tokens */
  SL_OF_VIRTUAL_MASS, /* sum of A on keys that are no tokens of the batch */
  SL_OF_NULL_MASS,    /* 1 - sum of all A */
  SL_OF_FIRST_OVER_ROWSUM, /* A[i,1] / (sum of all |A| + 1e-8) (Gu et al. 2025) */
  SL_OF_ENTROPY,           /* nats, of |A| / sum; 0 for an all-zero row */
  SL_OF_ENTROPY_SHARE,     /* the same over log (visible keys); 0 for one key */
  SL_OF_CONTRIBUTION,      /* || A[i,1] W_O v_1 ||_2 */
  SL_OF_LARGEST_FIRST, /* 1 when no |A| on a token exceeds that on position 1 */
  SL_OF_SPARSITY,      /* share of visible tokens with |A| <= 1e-5 */
  SL_OF_SINK_LOGIT, /* score on position 1 - mean score on positions 2..i-1 */
  SL_ROW_MEASURES
} sl_row_measure;
const char *sl_row_measure_name (sl_row_measure m);

/* Groups of measures that cost more than the scan of a row. */
enum {
  SL_MEASURE_COLUMNS = 1, /* every column: Sink_k, entropy, random positions */
  SL_MEASURE_SHARE = 2,   /* the first keys in the last rows */
  SL_MEASURE_NORMS = 4,   /* of every key and value */
  SL_MEASURE_LOGITS = 8   /* SL_OF_SINK_LOGIT */
};

enum {
  SL_SHARES = 3,           /* first 1, 4 and 8 keys */
  SL_MOST_THRESHOLDS = 16, /* of a curve */
  SL_MOST_HEADS = 1 << 20  /* of all layers */
};
extern const int sl_share_keys[SL_SHARES];

/* Labels of the samples, S of them with T tokens; positions from 0. */
typedef struct sl_labels {
  /* trigger_wide 0: per sample a position, negative: none. 1: (S, T), non-zero
  ** where the row is a trigger row. NULL: no sample has one. */
  const double *trigger;
  int trigger_wide;
  const double *length;    /* (S): valid tokens end here; NULL: all */
  const double *start;     /* (S): and begin here; NULL: 0 */
  const double *documents; /* (S, T): numbers that change where a document
                           ** begins; NULL: one document */
  /* group_wide 0: (S), 1: (S, T): whole numbers from 0 to groups - 1 that
  ** classify plain rows, negative: none. */
  const double *group;
  int group_wide, groups;
} sl_labels;

/* One head to keep in full, both from 0. */
typedef struct sl_head_name {
  int layer, head;
} sl_head_name;

/* What is to be measured. Arrays are the caller's and outlive the measuring. */
typedef struct sl_measuring {
  int layers, heads, tokens;
  sl_labels labels;
  /* Per layer W_O (d_model, heads * d_value), columns h * d_value .. of head h;
  ** an entry that is NULL, or NULL for all: no contribution. */
  const sl_tensor *const *output;
  /* Keys before the first token, of the attention nodes (virtual_keys) and of
  ** the sequences: the program has registers + tokens tokens, of which the
  ** first are no tokens of the batch. Positions and lengths count without
  ** them. */
  int virtual_keys, registers;
  int null_mass; /* 1: what a row's weights leave is mass on nothing */
  unsigned measures;
  int maps;                 /* 1: mean and std over samples of every weight */
  int keeps;                /* heads to keep in full, */
  const sl_head_name *keep; /* their names; not with maps */
  double threshold;         /* eps of the sink rate */
  int thresholds;           /* of the curve, */
  const double *curve;      /* at most SL_MOST_THRESHOLDS */
  int share_rows;           /* last rows of a segment for shares */
  double dormant;           /* weight from which a row is dormant */
} sl_measuring;

typedef struct sl_sinks_spec {
  const sl_program *program; /* forward of the model, recorded for one shard */
  /* Inputs of the program, and the tensors that feed them: the first axis of
  ** batch[i] counts all samples, of inputs[i] those of one shard, which divides
  ** them; batches may have any precision and strides. */
  int n_inputs; /* 1 or more */
  sl_tensor *const *inputs;
  const sl_tensor *const *batch;
  sl_measuring measuring;
} sl_sinks_spec;

/* Rates at one threshold: shares of segments. */
typedef struct sl_rate {
  double threshold, rate, first_over_rowsum_rate;
  double null_rate; /* NaN without SL_MEASURE_COLUMNS */
} sl_rate;

/* Of one head. NaN: no such rows, or not measured. */
typedef struct sl_head_sinks {
  double mean[SL_ROW_CLASSES][SL_ROW_MEASURES]; /* over rows of all samples */
  long rows[SL_ROW_CLASSES];
  long padded_rows, masked_rows;
  long segments;               /* with a row that sees a key */
  double first_min, first_std; /* of SL_OF_FIRST over plain rows; with n - 1 */
  double first_all;            /* mean over plain, first and boundary rows */
  double value_norm;           /* || W_O v_1 ||_2, mean over segments */
  /* Sink_1^eps (Gu et al. 2025): share of segments with a_1 > threshold, a_k =
  ** mean over the rows i >= k of all classes of A[i,k]; of |A| / (sum of |A| +
  ** 1e-8). */
  double rate, first_over_rowsum_rate;
  sl_rate curve[SL_MOST_THRESHOLDS];
  /* SL_MEASURE_COLUMNS. Random positions: all k >= 2 that at least half of the
  ** segment's rows follow. */
  double null_rate;  /* share of them with a_k > threshold */
  double null_above; /* share of them with a_k >= a_1 */
  /* Largest over k of the entropy of column k over log of its rows, mean over
  ** segments. */
  double column_entropy;
  double column_weight; /* sum of column 1 / its non-zero entries */
  double peak_key;      /* position of the largest mean a_k, from 1 */
  /* SL_MEASURE_SHARE, over the plain rows among the last of each segment. */
  double share[SL_SHARES];   /* of |A| on the first keys */
  double boost[SL_SHARES];   /* over that of even attention */
  double largest[SL_SHARES]; /* share of rows whose largest |A| is on them */
  long share_rows;
  /* SL_MEASURE_NORMS: norm at position 1 over the mean norm of the others, mean
  ** over segments. */
  double first_key_norm_ratio, first_value_norm_ratio,
      first_norm_ratio; /* k, v, W_O v */
} sl_head_sinks;

/* Of one group of plain rows of one head. */
typedef struct sl_group_sinks {
  long rows;
  double first, dormant, sink_logit; /* mean, share of rows, mean */
} sl_group_sinks;

typedef struct sl_sinks {
  int layers, heads, tokens;
  long samples;
  double threshold;
  int thresholds;
  sl_head_sinks *head; /* [layer][head] */
  /* [layer][head][position]; NULL without SL_MEASURE_COLUMNS: mean a_k, the
  ** same row-normalised, Sink_k^eps of either; count: segments with a row at or
  ** past the position. */
  double *column, *column_over_rowsum, *sink, *sink_over_rowsum, *count;
  /* [layer][head][position], means over segments; NULL without
  ** SL_MEASURE_NORMS; output_norm NaN without W_O. */
  double *key_norm, *value_norm, *output_norm;
  int groups;
  sl_group_sinks *group; /* [layer][head][group]; NULL: none */
  /* Heads that are kept: all in order with maps. [kept][query][key], over the
  ** samples in which the query sees a key, zero where nothing is seen; std with
  ** n - 1, NaN for one sample. A query is a column of the batch: left padding
  ** and documents do not move it. */
  int kept;
  double *mean, *std;
  /* [kept][query][extra]: the mean of what is not on tokens: first 1 - all of
  ** the row's weights, then each of the extra - 1 keys that are no tokens. */
  int extra;
  double *outside;
} sl_sinks;

/* A sentence if the sizes, labels and thresholds are not as said above. */
int sl_measuring_check (const sl_measuring *m, long samples, sl_error *e);

/* Runs the program shard by shard on the context's pool, drawing with { 0, 0,
** index of the sample }. The same bits for every thread count. NULL and a
** sentence on failure (shapes, no weights to see, no memory) and "interrupted"
** when sl_interrupted is set. */
sl_sinks *sl_sinks_measure (sl_context *c, const sl_sinks_spec *spec,
                            sl_error *e);
void sl_sinks_free (sl_sinks *s);
#endif

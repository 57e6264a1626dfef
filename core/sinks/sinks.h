/* sinks.h - attention sinks measured over a labelled batch, by watching the
** weights go by.
**
** A sequence is one segment of tokens, or several when it packs documents; a
** position counts from the first token of its segment, which is position 1.
** Rows (queries) are of classes that are never averaged together: see
** sl_row_class. */
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

/* The measures of a row; A is its weights. The table in measures.c may have
** further rows, which nothing here names. */
typedef enum sl_row_measure {
  SL_OF_FIRST,        /* A[i,1] */
  SL_OF_ROW_MASS,     /* sum of A on tokens */
  SL_OF_ABS_MASS,     /* sum of |A| on tokens */
  SL_OF_VIRTUAL_MASS, /* sum of A on keys that are no tokens of the batch */
  SL_OF_NULL_MASS,    /* 1 - sum of all A */
  /* A[i,1] / (sum of all |A| + 1e-8) (Gu et al. 2025) */
  SL_OF_FIRST_OVER_ROWSUM,
  SL_OF_ENTROPY,       /* nats, of |A| / sum; 0 for an all-zero row */
  SL_OF_ENTROPY_SHARE, /* the same over log (visible keys); 0 for one key */
  SL_OF_CONTRIBUTION,  /* || A[i,1] W_O v_1 ||_2 */
  SL_OF_LARGEST_FIRST, /* 1 when no |A| on a token exceeds that on position 1 */
  SL_OF_SPARSITY,      /* share of visible tokens with |A| <= 1e-5 */
  SL_OF_SINK_LOGIT, /* score on position 1 - mean score on positions 2..i-1 */
  SL_ROW_MEASURES_NAMED,
  SL_MOST_ROW_MEASURES = 16
} sl_row_measure;

/* The measures of a segment; a head has the mean over its segments. a_k is
** the mean over the rows i >= k of all classes of A[i,k]. The rates come first:
** they have a threshold eps. */
typedef enum sl_segment_measure {
  SL_OF_RATE, /* Sink_1^eps (Gu et al. 2025): 1 when a_1 > eps */
  SL_OF_FIRST_OVER_ROWSUM_RATE, /* the same of |A| / (sum of |A| + 1e-8) */
  /* With SL_MEASURE_COLUMNS. Random positions: all k >= 2 that at least half of
  ** the segment's rows follow. */
  SL_OF_NULL_RATE, /* share of them with a_k > eps */
  SL_RATES,
  SL_OF_NULL_ABOVE = SL_RATES, /* share of them with a_k >= a_1 */
  /* Largest over k of the entropy of column k over log of its rows. */
  SL_OF_COLUMN_ENTROPY,
  SL_OF_COLUMN_WEIGHT, /* sum of column 1 / its non-zero entries */
  SL_OF_VALUE_NORM,    /* || W_O v_1 ||_2 */
  /* With SL_MEASURE_NORMS: norm at position 1 over the mean norm of the others,
  ** of k, v, W_O v. */
  SL_OF_FIRST_KEY_NORM_RATIO,
  SL_OF_FIRST_VALUE_NORM_RATIO,
  SL_OF_FIRST_NORM_RATIO,
  SL_SEGMENT_MEASURES_NAMED,
  SL_MOST_SEGMENT_MEASURES = 16
} sl_segment_measure;

typedef struct sl_measure {
  const char *name; /* NULL: there are no more */
  unsigned group;   /* SL_MEASURE_...; 0: always measured */
  int is_optional;  /* 1: left out of a result where it is NaN */
} sl_measure;
/* "rows" for 0, "columns", "share", "norms" or "logits". */
const char *sl_measure_group_name (unsigned group);
sl_measure sl_row_measure_of (int m);
sl_measure sl_segment_measure_of (int m);

/* Groups of measures that cost more than the scan of a row. */
enum {
  SL_MEASURE_ROWS = 0,    /* always */
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

/* The measurements to take. Arrays are the caller's and outlive the measuring. */
typedef struct sl_measuring {
  int layers, heads, tokens;
  sl_labels labels;
  /* Per layer W_O (d_model, heads * d_value), columns h * d_value .. of head h;
  ** an entry that is NULL, or NULL for all: no contribution. */
  const sl_tensor *const *output;
  /* Keys before the first token, of the attention nodes (virtual_keys) and of
  ** the sequences: the program has registers + tokens tokens; the registers
  ** come first and are no tokens of the batch. Positions and lengths count
  ** without them. */
  int virtual_keys, registers;
  int null_mass; /* 1: 1 - sum of a row's weights is mass on nothing */
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

/* Rates at one threshold. */
typedef struct sl_rate {
  double threshold, rate[SL_RATES];
} sl_rate;

/* Of one head. NaN: no such rows, or not measured. */
typedef struct sl_head_sinks {
  double mean[SL_ROW_CLASSES]
             [SL_MOST_ROW_MEASURES]; /* over rows of all samples */
  long rows[SL_ROW_CLASSES];
  long padded_rows, masked_rows;
  long segments;               /* with a row that sees a key */
  double first_min, first_std; /* of SL_OF_FIRST over plain rows; with n - 1 */
  double first_all;            /* mean over plain, first and boundary rows */
  double segment[SL_MOST_SEGMENT_MEASURES];
  sl_rate curve[SL_MOST_THRESHOLDS];
  /* SL_MEASURE_COLUMNS: position of the largest mean a_k, from 1. */
  double peak_key;
  /* SL_MEASURE_SHARE, over the plain rows among the last of each segment. */
  double share[SL_SHARES];   /* of |A| on the first keys */
  double boost[SL_SHARES];   /* over that of even attention */
  double largest[SL_SHARES]; /* share of rows whose largest |A| is on them */
  long share_rows;
} sl_head_sinks;

/* Of one group of plain rows of one head. */
typedef struct sl_group_sinks {
  long rows;
  double first, dormant, sink_logit; /* mean, share of rows, mean */
} sl_group_sinks;

/* Means over segments at each position. */
typedef enum sl_position_measure {
  /* SL_MEASURE_COLUMNS: a_k, the same of |A| / (sum of |A| + 1e-8); Sink_k^eps
  ** of either; segments with a row at or past the position (a count). */
  SL_AT_COLUMN,
  SL_AT_COLUMN_OVER_ROWSUM,
  SL_AT_SINK,
  SL_AT_SINK_OVER_ROWSUM,
  SL_AT_SEGMENTS,
  /* SL_MEASURE_NORMS: of keys, values and W_O v (NaN without W_O). */
  SL_AT_KEY_NORMS,
  SL_AT_VALUE_NORMS,
  SL_AT_OUTPUT_NORMS,
  SL_POSITION_MEASURES
} sl_position_measure;
extern const char *const sl_position_measure_names[SL_POSITION_MEASURES];

typedef struct sl_sinks {
  int layers, heads, tokens;
  long samples;
  double threshold;
  int thresholds;
  sl_head_sinks *head;              /* [layer][head] */
  double *at[SL_POSITION_MEASURES]; /* [layer][head][position]; NULL: none */
  int groups;
  sl_group_sinks *group; /* [layer][head][group]; NULL: none */
  /* Heads that are kept: all in order with maps. [kept][query][key], over the
  ** samples in which the query sees a key, zero where nothing is seen; std with
  ** n - 1, NaN for one sample. A query is a column of the batch: left padding
  ** and documents do not move it. */
  int kept;
  double *mean, *std;
  /* [kept][query][extra]: mean mass that is not on tokens: first 1 - sum of
  ** the row's weights, then each of the extra - 1 keys that are no tokens. */
  int extra;
  double *null_mass_map;
} sl_sinks;

/* class is (samples, tokens): the sl_row_class of each row; SL_ROW_CLASSES
** where the row is padding. */
void sl_row_classes (const sl_measuring *m, long samples, double *class);

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

/* hidden.h - the residual stream, given as tensors: norms, peaks, massive
** activations, outliers, secondary sinks. */
#ifndef SL_HIDDEN_H
#define SL_HIDDEN_H
#include "sinks/sinks.h"

enum { SL_TOP = 3 }; /* largest entries that are kept a layer */

typedef struct sl_hidden_spec {
  int layers, tokens; /* states are those before layer 1 and after each */
  long samples;
  sl_labels labels;  /* length, start and documents */
  double massive;    /* |a| above this: 100, and */
  double ratio;      /* at least so many medians: 1000 */
  double similar;    /* |cosine| with position 1 above this: 0.9 */
  double noise, bos; /* lifetimes over layers: up to noise (1/8) is noise, from
                     ** bos (17/32) on like position 1 */
} sl_hidden_spec;

typedef struct sl_hidden_entry {
  double value;
  long sample;
  int position, channel; /* from 1; position in its document */
} sl_hidden_entry;

/* One state; means are over sequences unless said. */
typedef struct sl_state {
  double first_norm; /* || h_1 ||, over segments */
  double other_norm; /* mean || h_i || of the others, over segments */
  double peak;       /* largest || h_i || of the others, over segments */
  double max_norm, max_norm_all; /* largest |entry|; largest of all */
  double kurtosis;               /* mean ((x - mu)^4) / (std^4 + 1e-6) */
  double channel_kurtosis; /* mean s^4 / (mean s^2)^2, s = RMS of a channel */
  double median;           /* of |entry|, the lower one */
  double massive;          /* massive entries a sequence */
  long sequences, segments, pairs; /* seen; pairs: with a second token */
  sl_hidden_entry top[SL_TOP];     /* largest |entry| first */
} sl_state;

/* A token whose state points where that of position 1 does. */
typedef struct sl_secondary {
  long sample;
  int position; /* from 1, in its document */
  int lifetime; /* layers of the window in which it does */
  int first;    /* of them, from 1 */
  int kind;     /* 0 noise, 1 secondary, 2 like position 1 */
} sl_secondary;

typedef struct sl_hidden_result {
  int layers, tokens;
  sl_state *state; /* [1 + layers] */
  double *norm;    /* [1 + layers][position], mean over segments */
  int anchor;      /* 1 or 2: position with the larger norm */
  int window_first, window_last; /* layers with a large norm there; 0: none */
  long secondaries, secondary_of_kind[3];
  sl_secondary *secondary; /* by sample and position */
} sl_hidden_result;

typedef struct sl_hidden sl_hidden;
/* NULL and a sentence when the spec is wrong or there is no memory. */
sl_hidden *sl_hidden_new (const sl_hidden_spec *spec, sl_error *e);
void sl_hidden_free (sl_hidden *h);
/* States (B, T, D) of samples first.. after 'layer' (0: before the first);
** T may be less than tokens. Every sample and layer once, in any order. */
int sl_hidden_add (sl_hidden *h, int layer, long first, const sl_tensor *x,
                   sl_error *e);
/* NULL: a layer has not been seen for all samples, no memory. */
sl_hidden_result *sl_hidden_finish (sl_hidden *h, sl_error *e);
void sl_hidden_result_free (sl_hidden_result *r);
#endif

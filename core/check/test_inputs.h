/* test_inputs.h - inputs for one call of a plugin's kernels: options, shape and
** random numbers, in double. */
#ifndef SL_TEST_INPUTS_H
#define SL_TEST_INPUTS_H
#include "attention/mechanism.h"

enum {
  SL_MOST_INPUTS = 8,
  SL_MOST_ARRAYS = SL_MOST_INPUTS + 2 /* a gate's head output, parameters */
};

/* The arrays are scores (n) for a row; o (n) and the input, if any, for a gate;
** the inputs (n, width) for a mixer, size 0 where one is left out. The last
** array holds the parameters of the head, size 0 if there are none. */
typedef struct sl_test_inputs {
  const sl_mechanism *mechanism;
  uint64_t seed;
  int n; /* row: keys; gate: numbers; mixer: tokens */
  int d_head, d_out, head, heads, layer, position, first_key, length;
  double scale;
  int *lo, *hi; /* mixer: (n) each */
  int arrays;
  const char *name[SL_MOST_ARRAYS];
  size_t size[SL_MOST_ARRAYS];
  double *value[SL_MOST_ARRAYS];
  size_t outputs; /* row, gate: n; mixer: n * d_out */
  double *cotangent;
  size_t saved, scratch, weights; /* weights: n * n if a mixer can give them */
} sl_test_inputs;

/* One choice of options, as arguments of sl_mechanism_new. */
typedef struct sl_combination {
  int n;
  sl_setting *settings;
} sl_combination;

/* The defaults first; then all combinations of choices and booleans (at most
** 64, else each value alone); then each number at its minimum and its maximum,
** the other options at their defaults. Returns their number, or -1: no memory.
** Never freed. */
int sl_combinations (const sl_loaded *l, sl_combination **list);

/* The visible keys of a mixer's queries. */
enum { SL_MASK_CAUSAL, SL_MASK_FULL, SL_MASK_WINDOW };

typedef struct sl_test_shape {
  int n, d_head; /* a gate has n = d_head */
  int position, first_key, length;
  int mask; /* mixer */
} sl_test_shape;

/* The shapes for a plugin, ended by n = 0: short and long, causal, windowed and
** full. */
const sl_test_shape *sl_test_shapes (const sl_plugin *p);

/* Inputs with random numbers, never freed. 1: the plugin's plan refuses these
** options or this shape, with its sentence; -1: no memory, or plan breaks its
** contract. */
int sl_test_inputs_new (const sl_mechanism *m, const sl_test_shape *z,
                        uint64_t seed, sl_test_inputs **in, sl_error *e);

/* Draw all numbers again, from a stream of the seed: inputs N(0, spread^2),
** cotangent N(0, 1), parameters N(initial value, 1/4). */
void sl_test_inputs_draw (sl_test_inputs *in, uint32_t stream, double spread);

/* Uniform on [0, 1) and N(0, 1): number i of a stream of the seed. */
double sl_test_uniform (uint64_t seed, uint32_t stream, uint32_t i);
double sl_test_normal (uint64_t seed, uint32_t stream, uint32_t i);

/* "n = 7, position = 6, ..., normaliser=visible": the arguments of the call. */
void sl_test_inputs_text (const sl_test_inputs *in, char *text, size_t size);

/* Append ", name=value" for each option of m to text, which is 'used' bytes
** long. */
void sl_test_options_text (const sl_mechanism *m, char *text, size_t size,
                           int used);

/* The name of element i of an array: "scores[3]", "parameter gain[0]". */
void sl_test_inputs_element (const sl_test_inputs *in, int array, size_t i,
                             char *text, size_t size);
#endif

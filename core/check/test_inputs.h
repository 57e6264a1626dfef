/* test_inputs.h - the problems that checks set: options, shapes and numbers. */
#ifndef SL_TEST_INPUTS_H
#define SL_TEST_INPUTS_H
#include "check/harness.h"

/* One choice of options: what sl_mechanism_new takes. */
typedef struct sl_combination {
  int n;
  sl_setting *settings;
} sl_combination;

/* All combinations of choices and booleans (at most 64 of them), then every
** number at its least and at its largest value, the rest at their defaults. The
** first one is all defaults. The count, or -1: no memory. Never freed. */
int sl_combinations (const sl_loaded *l, sl_combination **list);

/* Which keys the queries of a mixer see. */
enum { SL_MASK_CAUSAL, SL_MASK_FULL, SL_MASK_WINDOW };

typedef struct sl_test_shape {
  int n, d_head; /* a gate has n = d_head */
  int pos, first, length;
  int mask; /* mixer */
} sl_test_shape;

/* The shapes that a kind of plugin is tried in, ended by n = 0: short and long
** rows, causal, windowed and full. */
const sl_test_shape *sl_test_shapes (const sl_plugin *p);

/* A problem with random numbers; never freed. 1: the plugin's plan refuses
** these options or this shape, with its sentence; -1: no memory, or a plan that
** breaks its rules. */
int sl_test_inputs_new (const sl_mechanism *m, const sl_test_shape *z,
                        uint64_t seed, sl_test_inputs **problem, sl_error *e);

/* Draw its numbers anew: stream tells draws of one seed apart. Inputs and
** cotangent are N(0, 1) times 'spread' and N(0, 1); parameters lie near where
** they start. */
void sl_test_inputs_draw (sl_test_inputs *in, uint32_t stream, double spread);

/* Uniform on [0, 1) and N(0, 1): number i of a stream of the seed. */
double sl_test_uniform (uint64_t seed, uint32_t stream, uint32_t i);
double sl_test_normal (uint64_t seed, uint32_t stream, uint32_t i);

/* n numbers copied (from NULL: zeros); sl_free frees them. NULL: no memory. */
double *sl_copy_doubles (const double *from, size_t n);

/* "n = 7, pos = 6, ..., normaliser=visible": what the call was. */
void sl_test_inputs_text (const sl_test_inputs *in, char *text, size_t size);

/* What element i of an array is called: "scores[3]", "parameter gain[0]". */
void sl_test_inputs_element (const sl_test_inputs *in, int array, size_t i,
                             char *text, size_t size);
#endif

/* problem.h - the problems that checks set: options, shapes and numbers. */
#ifndef SL_PROBLEM_H
#define SL_PROBLEM_H
#include "check/stage.h"

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
enum { SL_SEE_EARLIER, SL_SEE_ALL, SL_SEE_WINDOW };

typedef struct sl_sizes {
  int n, d_head; /* a gate has n = d_head */
  int pos, first, length;
  int sight; /* mixer */
} sl_sizes;

/* The shapes that a kind of plugin is tried in, ended by n = 0: short and long
** rows, causal, windowed and full. */
const sl_sizes *sl_sizes_of (const sl_plugin *p);

/* A problem with random numbers; never freed. 1: the plugin's plan refuses
** these options or this shape, with its sentence; -1: no memory, or a plan that
** breaks its rules. */
int sl_problem_new (const sl_mechanism *m, const sl_sizes *z, uint64_t seed,
                    sl_problem **problem, sl_error *e);

/* Draw its numbers anew: stream tells draws of one seed apart. Inputs and
** cotangent are N(0, 1) times 'spread' and N(0, 1); parameters lie near where
** they start. */
void sl_problem_draw (sl_problem *p, uint32_t stream, double spread);

/* Uniform on [0, 1) and N(0, 1): number i of a stream of the seed. */
double sl_problem_uniform (uint64_t seed, uint32_t stream, uint32_t i);
double sl_problem_normal (uint64_t seed, uint32_t stream, uint32_t i);

/* n numbers copied (from NULL: zeros); forget frees them. NULL: no memory. */
double *sl_problem_copy (const double *from, size_t n);
void sl_problem_forget (double *copy);

/* "n = 7, pos = 6, ..., normaliser=visible": what the call was. */
void sl_problem_text (const sl_problem *p, char *text, size_t size);

/* What element i of an array is called: "scores[3]", "parameter gain[0]". */
void sl_problem_place (const sl_problem *p, int array, size_t i, char *text,
                       size_t size);
#endif

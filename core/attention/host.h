/* host.h - the host of a plugin: the call that its kernels get, the parameters
** of a head and their gradient, and what an observer is shown.
**
** Numeric code: include it from files that are compiled per precision. */
#ifndef SL_HOST_H
#define SL_HOST_H
#include "attention/plan.h"

extern const sl_host SL (sl_host_services);

/* The arguments that all kernel calls of a layer share: the host's services,
** options, layer, heads, d_head and scale; everything else is 0. */
sl_call SL (sl_new_call) (const sl_mechanism *m, int layer, int heads,
                          int d_head, double scale);

/* A plugin in one run of an op. */
typedef struct sl_hosted {
  const sl_run *run;
  const sl_call_plan *p;
  const sl_plugin *plugin;                   /* in this precision */
  const sl_view *param, *length, *first_key; /* inputs; NULL: not given */
  int sequence, tokens; /* set by sl_host_sequence: which, its valid tokens */
  /* length is set by sl_host_sequence, head and param by sl_host_head,
  ** position, first_key and visible_keys by the op before each kernel call. */
  sl_call call;
} sl_hosted;

/* The optional inputs are found behind the first p->inputs of the run. */
void SL (sl_host_init) (sl_hosted *h, const sl_run *r, const sl_call_plan *p);
void SL (sl_host_sequence) (sl_hosted *h, int sequence);

/* Choose a head; its parameters, a row of (heads, params), are copied to the
** scratch. */
void SL (sl_host_head) (sl_hosted *h, int head);

/* The gradient of the head's parameters, which backward kernels add to: params
** reals in the scratch, set to zero; and their addition to the gradient of the
** input. */
void SL (sl_host_clear_gradient) (const sl_hosted *h);
void SL (sl_host_add_gradient) (const sl_hosted *h);

static inline real *sl_at_scratch (const sl_run *r, size_t offset) {
  return (real *)r->scratch + offset;
}

static inline real *sl_host_dparam (const sl_hosted *h) {
  return sl_at_scratch (h->run, h->p->dparam);
}

/* Rows i .. i + n - 1 of a head's slice of (B, T, ...), whose numbers begin at
** 'first', as (n, width): in place if they are contiguous, else in 'copy'. */
static inline const real *sl_head_rows (const sl_view *v, int sequence, int i,
                                        ptrdiff_t first, int n, int width,
                                        real *copy) {
  const real *x = (const real *)v->data + sequence * v->stride[0] +
                  i * v->stride[1] + first * v->stride[2];
  if ((v->stride[2] == 1 || width == 1) && (v->stride[1] == width || n == 1))
    return x;
  for (ptrdiff_t r = 0; r < n; r++)
    for (ptrdiff_t j = 0; j < width; j++)
      copy[r * width + j] = x[r * v->stride[1] + j * v->stride[2]];
  return copy;
}

/* Add x (n, width) to the same rows of v; a v without data takes nothing. */
static inline void sl_add_head_rows (const sl_view *v, int sequence, int i,
                                     ptrdiff_t first, int n, int width,
                                     const real *x) {
  real *to = (real *)v->data;
  if (!to) return;
  to += sequence * v->stride[0] + i * v->stride[1] + first * v->stride[2];
  for (ptrdiff_t r = 0; r < n; r++)
    for (ptrdiff_t j = 0; j < width; j++)
      to[r * v->stride[1] + j * v->stride[2]] += x[r * width + j];
}

/* Query i of the sequence sees the keys lo <= j < hi: sl_visible, from its first
** key on; lo = hi = 0 if it sees none. */
void SL (sl_host_visible) (const sl_hosted *h, const sl_visibility *v, int i,
                           int *lo, int *hi);

/* Show rows of weights to the observer: layer, sample, head, kv_head, t, length
** and dtype are filled in. */
void SL (sl_host_observe) (const sl_hosted *h, int kv_head,
                           sl_weight_rows rows);
#endif

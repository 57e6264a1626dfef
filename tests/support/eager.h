/* eager.h - operations run at once on values given in double. */
#ifndef EAGER_H
#define EAGER_H
#include "program/program.h"
#include "support/variants.h"

/* for all variants (int i) and precisions (int d) that run here ... */
#define ALL_VARIANTS                     \
  for (int i = 0; i < SL_ISA_COUNT; i++) \
    if (variant_use ((sl_isa)i))         \
      for (int d = SL_F32; d <= SL_F64; d++)

/* What the test runs in: eager_start makes it with one thread. */
extern sl_context context;
extern sl_error error;
void eager_start (void);
void eager_end (void);

/* A check that shows the sentence in 'error'. */
#define OK(condition) \
  ck_assert_msg (condition, "%s:%d: %s", __FILE__, __LINE__, error.text)

/* A new tensor with these values; a call with one output. Both are the
** caller's. */
sl_tensor *tensor (sl_dtype dtype, int ndim, const ptrdiff_t *dim,
                   const double *x);
sl_tensor *call (const char *op, const void *attr, int n, sl_tensor *const *in);

/* A tensor of at most three axes. */
typedef struct given {
  int ndim;
  ptrdiff_t dim[3];
  const double *x;
} given;

/* All elements of one output of an operation. */
void values (sl_dtype dtype, const char *name, const void *attr, int n,
             const given *in, int output, double *out);

/* The gradient of 'loss' (of a program that has ended) for t, into out. */
void gradient (sl_program *p, sl_tensor *loss, sl_tensor *t, double *out);

/* 1 + unit is the next number after 1; below 'least' precision is lost. */
double unit (sl_dtype dtype);
double least (sl_dtype dtype);

/* |got - want| <= tolerance |want|, or both the same infinity or NaN. */
void near_value (double got, double want, double tolerance, const char *what,
                 int index);
#endif

/* ticks.h - ranges of axes and colours, their ticks, numbers as text.
** Labels are ASCII ("1e-7", "-0.5"); sl_pretty turns them into print. */
#ifndef SL_TICKS_H
#define SL_TICKS_H
#include "base/error.h"
#include <stddef.h>

typedef struct sl_range {
  double min, max; /* min < max; both > 0 if log */
  int log;
} sl_range;

/* Make r a usable range: its given ends (see sl_heat.min), completed by
** the data's smallest and largest value lo and hi (lo > hi: there are none).
** A range of a single value is widened around it. Fails, naming 'what', on
** min > max, on bounds that are infinite and on a logarithmic range that is
** not positive. */
int sl_range_settle (sl_range *r, double lo, double hi, const char *what,
                     sl_error *e);

/* 0 at min, 1 at max, also beyond them; -inf for x <= 0 on a log range. */
double sl_range_fraction (const sl_range *r, double x);

enum { SL_MAX_TICKS = 128, SL_TICK_BYTES = 32 };
typedef struct sl_ticks {
  int n;
  int words; /* the labels are names: drawn as they are, upright if need be */
  double at[SL_MAX_TICKS];                 /* ascending */
  char label[SL_MAX_TICKS][SL_TICK_BYTES]; /* "": a minor tick */
} sl_ticks;

/* At most 'most' >= 2 labelled ticks at 1, 2 or 5 times a power of ten (or at
** powers of ten on a log range). */
void sl_ticks_range (const sl_range *r, int most, sl_ticks *t);

/* At most 'most' >= 2 of the positions first..last: all, or every other one,
** or the first and the multiples of 5, 10, 20 ... */
void sl_ticks_positions (size_t first, size_t last, int most, sl_ticks *t);

/* A tick more, if there is room; the label is cut to fit. */
void sl_ticks_add (sl_ticks *t, double at, const char *label);

/* x in at most 'digits' significant digits, the shortest way. */
char *sl_number_text (double x, int digits, char *text, size_t size);

/* For print: a true minus sign, powers of ten as superscripts. */
char *sl_pretty (const char *label, char *text, size_t size);
#endif

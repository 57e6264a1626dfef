/* marks.h - names at places of an axis: tokens, categories, chosen ticks. */
#ifndef SL_MARKS_H
#define SL_MARKS_H
#include "plot/figure.h"
#include "plot/ticks.h"

typedef struct sl_marks_data {
  size_t n;  /* 0: none */
  int words; /* names were given: no numbers */
  double *at;
  char **name;
} sl_marks_data;

/* A copy of what was given. 'what' names it in messages; the
** places must be finite and ascend. Fails without a change. */
int sl_marks_copy (sl_marks_data *to, const sl_marks *from, const char *what,
                   sl_error *e);
void sl_marks_free (sl_marks_data *m);

/* Of the marks within the range (NULL: of all) every first, second, third ...:
** at most 'most', the first among them. */
void sl_marks_ticks (const sl_marks_data *m, const sl_range *within, int most,
                     sl_ticks *t);
#endif

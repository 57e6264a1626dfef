/* labels.h - the segment and the class of a row. */
#ifndef SL_LABELS_H
#define SL_LABELS_H
#include "sinks/sinks.h"

/* Valid tokens begin..end-1 of a sample. */
void sl_valid_range (const sl_measuring *m, long sample, int *begin, int *end);
/* The segment that holds 'query', a valid token. */
void sl_segment_of (const sl_measuring *m, long sample, int query, int *begin,
                    int *end);
sl_row_class sl_class_of (const sl_measuring *m, long sample, int query,
                          int segment_begin);
/* The group of a row; -1: none. */
int sl_group_of (const sl_measuring *m, long sample, int query);
#endif

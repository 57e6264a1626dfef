/* labels.c - the segment and the class of a row. */
#include "sinks/labels.h"
#include <math.h>

void sl_valid_range (const sl_measuring *m, long sample, int *begin, int *end) {
  const sl_labels *l = &m->labels;
  *begin = l->start ? (int)l->start[sample] : 0;
  *end = l->length ? (int)l->length[sample] : m->tokens;
}

void sl_segment_of (const sl_measuring *m, long sample, int query, int *begin,
                    int *end) {
  const double *document = m->labels.documents;
  int first, last;
  sl_valid_range (m, sample, &first, &last);
  *begin = first;
  *end = last;
  if (document == NULL) return;
  document += sample * m->tokens;
  for (*begin = query; *begin > first; --*begin)
    if (document[*begin - 1] != document[query]) break;
  for (*end = query + 1; *end < last; ++*end)
    if (document[*end] != document[query]) break;
}

static int is_trigger (const sl_measuring *m, long sample, int query) {
  const sl_labels *l = &m->labels;
  if (l->trigger == NULL) return 0;
  if (l->trigger_wide) return l->trigger[sample * m->tokens + query] != 0;
  return l->trigger[sample] == query;
}

sl_row_class sl_class_of (const sl_measuring *m, long sample, int query,
                          int segment_begin) {
  int first, last;
  if (is_trigger (m, sample, query)) return SL_ROW_TRIGGER;
  if (query != segment_begin) return SL_ROW_PLAIN;
  sl_valid_range (m, sample, &first, &last);
  return query == first ? SL_ROW_FIRST : SL_ROW_BOUNDARY;
}

int sl_group_of (const sl_measuring *m, long sample, int query) {
  const sl_labels *l = &m->labels;
  if (l->group == NULL) return -1;
  return (int)l->group[l->group_wide ? sample * m->tokens + query : sample];
}

/* ---- checks ---- */

static int check_sizes (const sl_measuring *m, sl_error *e) {
  if (m->virtual_keys < 0 || m->registers < 0 || m->virtual_keys > 1 << 16 ||
      m->registers > 1 << 16)
    return sl_fail (
        e,
        "sinks: %d keys before the tokens and %d registers, allowed "
        "is 0 to %d of each",
        m->virtual_keys, m->registers, 1 << 16);
  if (m->layers < 1 || m->heads < 1 || m->tokens < 1)
    return sl_fail (e,
                    "sinks: %d layers, %d heads, %d tokens, allowed is 1 or "
                    "more of each",
                    m->layers, m->heads, m->tokens);
  if (m->layers > SL_MOST_HEADS / m->heads)
    return sl_fail (e,
                    "sinks: %d layers of %d heads, allowed is up to %d heads "
                    "in all",
                    m->layers, m->heads, SL_MOST_HEADS);
  if (!isfinite (m->threshold))
    return sl_fail (e, "sinks: the threshold is %g, allowed is a number",
                    m->threshold);
  if (m->thresholds < 0 || m->thresholds > SL_MOST_THRESHOLDS)
    return sl_fail (e, "sinks: a curve of %d thresholds, allowed is up to %d",
                    m->thresholds, SL_MOST_THRESHOLDS);
  for (int i = 0; i < m->thresholds; i++)
    if (!isfinite (m->curve[i]))
      return sl_fail (e,
                      "sinks: threshold %d of the curve is %g, allowed is a "
                      "number",
                      i + 1, m->curve[i]);
  if (m->maps && m->keeps > 0)
    return sl_fail (e,
                    "sinks: maps of all heads, and %d heads to keep; allowed "
                    "is one of the two",
                    m->keeps);
  for (int i = 0; i < m->keeps; i++)
    if (m->keep[i].layer < 0 || m->keep[i].layer >= m->layers ||
        m->keep[i].head < 0 || m->keep[i].head >= m->heads)
      return sl_fail (e,
                      "sinks: layer %d, head %d is to be kept; there are %d "
                      "layers of %d heads",
                      m->keep[i].layer + 1, m->keep[i].head + 1, m->layers,
                      m->heads);
  return 0;
}

/* A position, or a whole number of tokens, from 'least' to 'most'. */
static int check_whole (const char *what, long sample, double x, int least,
                        int most, sl_error *e) {
  if (x >= least && x <= most && x == floor (x)) return 0;
  return sl_fail (e,
                  "sinks: the %s of sample %ld is %g, allowed is a whole "
                  "number from %d to %d",
                  what, sample + 1, x, least, most);
}

static int check_trigger (const sl_measuring *m, long sample, sl_error *e) {
  const double j = m->labels.trigger[sample];
  if (j < m->tokens && (j < 0 || j == floor (j))) return 0;
  return sl_fail (e,
                  "sinks: the trigger of sample %ld is %g, allowed is a "
                  "position from 0 to %d, or below 0 for none",
                  sample + 1, j, m->tokens - 1);
}

/* A NaN differs from itself: every token would be a document, every row a
** trigger row. */
static int check_numbers (const char *what, const double *x, long samples,
                          int tokens, sl_error *e) {
  for (long i = 0; x && i < samples * tokens; i++)
    if (isnan (x[i]))
      return sl_fail (e, "sinks: the %s of sample %ld, token %ld is NaN", what,
                      i / tokens + 1, i % tokens + 1);
  return 0;
}

static int check_groups (const sl_measuring *m, long samples, sl_error *e) {
  const sl_labels *l = &m->labels;
  const long n = l->group_wide ? samples * m->tokens : samples;
  for (long i = 0; l->group && i < n; i++)
    if (!(l->group[i] < l->groups) ||
        (l->group[i] >= 0 && l->group[i] != floor (l->group[i])))
      return sl_fail (e,
                      "sinks: a group of sample %ld is %g, allowed is a whole "
                      "number from 0 to %d, or below 0 for none",
                      (l->group_wide ? i / m->tokens : i) + 1, l->group[i],
                      l->groups - 1);
  return 0;
}

int sl_measuring_check (const sl_measuring *m, long samples, sl_error *e) {
  const sl_labels *l = &m->labels;
  if (check_sizes (m, e) < 0) return -1;
  for (long i = 0; i < samples; i++) {
    const int most = l->length ? m->tokens : 0;
    if (l->trigger && !l->trigger_wide && check_trigger (m, i, e) < 0)
      return -1;
    if (l->length && check_whole ("length", i, l->length[i], 0, most, e) < 0)
      return -1;
    if (l->start &&
        check_whole ("start", i, l->start[i], 0,
                     l->length ? (int)l->length[i] : m->tokens, e) < 0)
      return -1;
  }
  if (check_numbers ("document", l->documents, samples, m->tokens, e) < 0 ||
      (l->trigger_wide &&
       check_numbers ("trigger", l->trigger, samples, m->tokens, e) < 0))
    return -1;
  return check_groups (m, samples, e);
}

void sl_row_classes (const sl_measuring *m, long samples, double *class) {
  for (long s = 0; s < samples; s++) {
    int first, last, begin = 0, end = 0;
    sl_valid_range (m, s, &first, &last);
    for (int i = 0; i < m->tokens; i++, class ++) {
      *class = SL_ROW_CLASSES;
      if (i < first || i >= last) continue;
      if (i >= end) sl_segment_of (m, s, i, &begin, &end);
      *class = sl_class_of (m, s, i, begin);
    }
  }
}

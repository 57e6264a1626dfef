/* label.c - the text of a layout: wrapped, measured, placed; ticks that fit. */
#include "base/memory.h"
#include "plot/compose.h"
#include <math.h>
#include <string.h>

/* ---- text: wrapping, measuring, placing ---- */

/* The line that text begins with, in *n bytes and *wide points: as many
** words as fit in 'width', at least one. Returns where the next line begins,
** or NULL. */
static const char *next_line (sl_work *w, sl_role role, const char *text,
                              double width, size_t *n, double *wide) {
  *n = 0, *wide = 0;
  for (size_t i = 0;; i++) {
    double x;
    if (text[i] && text[i] != ' ' && text[i] != '\n') continue;
    x = sl_font_width (&w->font, role, text, i);
    if (x > width && *n > 0) break;
    *n = i, *wide = x;
    if (text[i] != ' ') break;
  }
  return text[*n] ? text + *n + 1 : NULL;
}

sl_box sl_block_size (sl_work *w, sl_role role, const char *text,
                      double width) {
  sl_box b = { 0, 0, 0, 0 };
  size_t n;
  double wide;
  if (!*text) return b;
  while (text) {
    text = next_line (w, role, text, width, &n, &wide);
    b.w = fmax (b.w, wide);
    b.h += w->font.height[role];
  }
  return b;
}

void sl_add_label (sl_work *w, sl_role role, int vertical, const char *text,
                   size_t n, sl_box box) {
  sl_layout *l = w->l;
  char *copy;
  if (n == 0 || w->failed) return;
  if (l->n_labels == l->room) {
    size_t room = l->room ? 2 * l->room : 64;
    sl_label *more = sl_alloc (room, sizeof *more);
    if (!more) {
      w->failed = 1;
      return;
    }
    if (l->label) memcpy (more, l->label, l->n_labels * sizeof *more);
    sl_free (l->label);
    l->label = more, l->room = room;
  }
  copy = sl_alloc_text (text, n);
  if (!copy) {
    w->failed = 1;
    return;
  }
  l->label[l->n_labels++] = (sl_label){ copy, role, vertical, box };
}

void sl_put_text (sl_work *w, sl_role role, int vertical, const char *text,
                  double width, double x, double y) {
  double wide, high = w->font.height[role];
  if (!*text) return;
  while (text) {
    const char *line = text;
    size_t n;
    text = next_line (w, role, text, width, &n, &wide);
    sl_add_label (w, role, vertical, line, n,
                  vertical ? (sl_box){ x, y - wide / 2, high, wide }
                           : (sl_box){ x - wide / 2, y, wide, high });
    *(vertical ? &x : &y) += high;
  }
}

/* The label of tick i as it is drawn. */
static const char *drawn (const sl_ticks *t, int i, char *text, size_t size) {
  return t->words ? t->label[i] : sl_pretty (t->label[i], text, size);
}

double sl_tick_width (sl_work *w, const sl_ticks *t, int i) {
  char space[64];
  const char *text = drawn (t, i, space, sizeof space);
  return sl_font_width (&w->font, SL_TICK_LABEL, text, strlen (text));
}

double sl_widest_tick (sl_work *w, const sl_ticks *t) {
  double most = 0;
  for (int i = 0; i < t->n; i++) most = fmax (most, sl_tick_width (w, t, i));
  return most;
}

void sl_put_tick (sl_work *w, const sl_ticks *t, int i, int upright, double x,
                  double y) {
  char space[64];
  const char *text = drawn (t, i, space, sizeof space);
  double wide = sl_tick_width (w, t, i), high = w->font.height[SL_TICK_LABEL];
  sl_box box = { x, y, upright ? high : wide, upright ? wide : high };
  sl_add_label (w, SL_TICK_LABEL, upright, text, strlen (text), box);
}

/* ---- ticks that fit ---- */

double sl_tick_at (const sl_panel *p, const sl_bar *bar, sl_axis axis,
                   const sl_ticks *t, int i, double length) {
  return length * (p ? p->kind->along (p, axis, t->at[i])
                     : 1 - sl_range_fraction (&bar->heat->range, t->at[i]));
}

/* An axis whose labels must not overlap. */
typedef struct line {
  const sl_panel *panel;
  const sl_bar *bar;
  sl_axis axis;
  double length;
  int upright;
} line;

/* Labels that come too near to the one before are removed if 'thin'; otherwise
** returns 0 if there is one. */
static int labels_fit (sl_work *w, const line *l, sl_ticks *t, int thin) {
  double high = w->font.height[SL_TICK_LABEL], last_at = 0, last_extent = -1;
  int across = l->axis == SL_X && !l->upright;
  for (int i = 0; i < t->n; i++) {
    double at, extent, gap = across ? 3 : t->words ? 0 : 1;
    if (!t->label[i][0]) continue;
    at = sl_tick_at (l->panel, l->bar, l->axis, t, i, l->length);
    extent = across ? sl_tick_width (w, t, i) : high;
    if (last_extent >= 0 &&
        fabs (at - last_at) < (extent + last_extent) / 2 + gap) {
      if (!thin) return 0;
      t->label[i][0] = 0;
      continue;
    }
    last_at = at, last_extent = extent;
  }
  return 1;
}

void sl_fit_ticks (sl_work *w, const sl_panel *p, const sl_bar *bar,
                   sl_axis axis, double length, sl_ticks *t, int *upright) {
  line l = { p, bar, axis, length, 0 };
  for (int most = p ? SL_MAX_TICKS : 6; most >= 2; most--) {
    if (p)
      p->kind->ticks (p, axis, most, t);
    else
      sl_ticks_range (&bar->heat->range, most, t);
    if (most > 32 && !t->words) most = 32;
    if (labels_fit (w, &l, t, 0)) break;
    if (t->words && upright) l.upright = 1;
    if (l.upright && labels_fit (w, &l, t, 0)) break;
  }
  labels_fit (w, &l, t, 1);
  if (upright) *upright = l.upright;
}

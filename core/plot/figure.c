/* figure.c - making a figure and its panels; the notes below it. */
#include "plot/figure.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/utf8.h"
#include "plot/panel.h"
#include <math.h>
#include <string.h>

/* Bytes of the character at s, or 0 if it is no character that Cairo takes. */
static int character (const char *s, size_t n) {
  const int length = sl_utf8_length (s, n);
  const uint32_t c = sl_utf8_code (s, length);
  return (c >= 0xfdd0 && c < 0xfdf0) || (c & 0xfffe) == 0xfffe ? 0 : length;
}

char *sl_text_copy (const char *text, const char *def, const char *what,
                    sl_error *e) {
  const char *from = text ? text : def;
  size_t n = strlen (from);
  char *copy;
  if (n > 4000) {
    sl_fail (e, "%s has %zu bytes; 4000 are allowed", what, n);
    return NULL;
  }
  copy = sl_alloc_text (from, n);
  if (!copy) {
    sl_fail (e, "no memory for %s", what);
    return NULL;
  }
  for (size_t i = 0; i < n;) {
    int bytes = character (copy + i, n - i);
    if (!bytes) {
      sl_fail (e, "%s is not UTF-8 text: byte %zu is 0x%02x", what, i + 1,
               (unsigned char)copy[i]);
      sl_free (copy);
      return NULL;
    }
    if (bytes == 1 && ((unsigned char)copy[i] < 32 || copy[i] == 127) &&
        copy[i] != '\n')
      copy[i] = ' ';
    i += (size_t)bytes;
  }
  return copy;
}

sl_figure *sl_figure_new (const sl_figure_spec *spec, sl_error *e) {
  int rows = spec->rows ? spec->rows : 1;
  int columns = spec->columns ? spec->columns : 1;
  int dpi = spec->dpi ? spec->dpi : SL_DEFAULT_DPI;
  sl_figure *f;
  if (rows < 1 || columns < 1 || rows > SL_MAX_PANELS / columns) {
    sl_fail (e, "a figure of %d x %d panels: 1 to %d are allowed", rows,
             columns, SL_MAX_PANELS);
    return NULL;
  }
  if (dpi < 72 || dpi > 600) {
    sl_fail (e, "figure.dpi is %d: 72 to 600 are allowed", dpi);
    return NULL;
  }
  if (spec->size != 0 && !(spec->size >= 0.3 && spec->size <= 20)) {
    sl_fail (e, "figure.size is %g: 0.3 to 20 inches are allowed", spec->size);
    return NULL;
  }
  f = sl_alloc (1, sizeof *f);
  if (!f) {
    sl_fail (e, "no memory for a figure");
    return NULL;
  }
  f->rows = rows, f->columns = columns, f->dpi = dpi;
  f->shared = spec->shared, f->size = spec->size;
  f->panel = sl_alloc ((size_t)rows * (size_t)columns, sizeof *f->panel);
  if (!f->panel) {
    sl_fail (e, "no memory for %d x %d panels", rows, columns);
    sl_figure_free (f);
    return NULL;
  }
  f->title = sl_text_copy (spec->title, "", "the figure's title", e);
  if (f->title)
    f->caption = sl_text_copy (spec->caption, "", "the figure's caption", e);
  if (!f->title || !f->caption) {
    sl_figure_free (f);
    return NULL;
  }
  return f;
}

static void drop_panel (sl_panel *p) {
  p->kind->drop (p);
  sl_free (p->title);
  sl_free (p->side);
  sl_free (p->xlabel);
  sl_free (p->ylabel);
  memset (p, 0, sizeof *p);
}

void sl_figure_free (sl_figure *f) {
  if (!f) return;
  for (int i = 0; i < f->n; i++) drop_panel (&f->panel[i]);
  sl_free (f->panel);
  sl_free (f->title);
  sl_free (f->caption);
  sl_free (f);
}

/* The next free panel, with its texts. */
static sl_panel *next_panel (sl_figure *f, const sl_panel_kind *kind,
                             const char *title, const char *side,
                             const char *xlabel, const char *ylabel,
                             sl_error *e) {
  sl_panel *p;
  if (f->n == f->rows * f->columns) {
    sl_fail (e, "all %d x %d panels of the figure are taken", f->rows,
             f->columns);
    return NULL;
  }
  p = &f->panel[f->n];
  p->kind = kind;
  p->title = sl_text_copy (title, "", "the panel's title", e);
  if (p->title) p->side = sl_text_copy (side, "", "the panel's side title", e);
  if (p->side) p->xlabel = sl_text_copy (xlabel, "", "the x label", e);
  if (p->xlabel) p->ylabel = sl_text_copy (ylabel, "", "the y label", e);
  if (p->ylabel) return p;
  drop_panel (p);
  return NULL;
}

static int keep (sl_figure *f, sl_panel *p, int status) {
  if (status)
    drop_panel (p);
  else
    f->n++;
  return status;
}

/* The new panel, number f->n, joins those before it. */
static int join (sl_figure *f, sl_panel *p, int status, sl_error *e) {
  if (!status && f->shared && p->kind != f->panel[0].kind)
    status = sl_fail (e,
                      "panel %d is %s, but panel 1 is %s: panels that share "
                      "a range are of one kind",
                      f->n + 1, p->kind->name, f->panel[0].kind->name);
  if (!status && f->shared) status = p->kind->share (f, f->n + 1, e);
  return keep (f, p, status);
}

int sl_figure_heat (sl_figure *f, const sl_heat *heat, sl_error *e) {
  int most = sl_max_int (f->rows, f->columns);
  size_t limit = most > 16 ? 128 : most > 1 ? (size_t)(2048 / most) : 1024;
  sl_panel *p = next_panel (f, &sl_heat_kind, heat->title, heat->side,
                            heat->xlabel ? heat->xlabel : "key position",
                            heat->ylabel ? heat->ylabel : "query position", e);
  return p ? join (f, p, sl_heat_fill (p, heat, limit, e), e) : -1;
}

int sl_figure_lines (sl_figure *f, const sl_lines *lines, sl_error *e) {
  sl_panel *p = next_panel (f, &sl_lines_kind, lines->title, lines->side,
                            lines->xlabel, lines->ylabel, e);
  return p ? join (f, p, sl_lines_fill (p, lines, e), e) : -1;
}

int sl_figure_bars (sl_figure *f, const sl_bars *bars, sl_error *e) {
  sl_panel *p = next_panel (f, &sl_bars_kind, bars->title, bars->side,
                            bars->xlabel, bars->ylabel, e);
  return p ? join (f, p, sl_bars_fill (p, bars, e), e) : -1;
}

/* The notes so far, with a space behind the last one. */
static sl_bytes *next_note (sl_bytes *out) {
  if (out->n && out->data[out->n - 1] != '\n') sl_bytes_put (out, " ");
  return out;
}

void sl_figure_notes (const sl_figure *f, int coarse, sl_bytes *out) {
  size_t rows = 1, cols = 1, left_out = 0;
  size_t skipped = 0;
  int differ = 0, nan = 0, masked = 0, heats = 0;
  for (int i = 0; i < f->n; i++) {
    const sl_panel *p = &f->panel[i];
    if (p->kind == &sl_heat_kind) {
      const sl_heat_data *h = &p->heat;
      size_t c = (size_t)coarse;
      size_t r = h->block_rows * (h->n_rows > 1 ? c : 1),
             k = h->block_cols * (h->n_cols > 1 ? c : 1);
      if (heats++ && (r != rows || k != cols)) differ = 1;
      if (r > rows) rows = r;
      if (k > cols) cols = k;
      nan |= h->any_nan;
      masked |= h->mask_upper;
      if (h->first_key > 1) skipped = h->first_key - 1;
    } else
      left_out += p->axes.left_out;
  }
  if (rows > 1 || cols > 1)
    sl_bytes_format (next_note (out),
                     "Each colour is the largest of %s%zu x %zu cells.",
                     differ ? "up to " : "", rows, cols);
  if (skipped == 1) sl_bytes_format (next_note (out), "Key 1 is left out.");
  if (skipped > 1)
    sl_bytes_format (next_note (out), "Keys 1 to %zu are left out.", skipped);
  if (nan) sl_bytes_format (next_note (out), "Grey: no value.");
  if (masked)
    sl_bytes_format (next_note (out), "Light grey: keys after the query.");
  if (left_out)
    sl_bytes_format (
        next_note (out),
        "Not shown: %zu point%s that a logarithmic axis or infinity excludes.",
        left_out, left_out == 1 ? "" : "s");
}

/* cairo.c - figures as PNG, SVG and PDF files by way of Cairo.
**
** The same figure gives the same bytes: dates and Cairo's counters of the
** process are replaced. */
#include "base/file.h"
#include "plot/layout.h"
#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <math.h>
#include <string.h>
#include <zlib.h>

/* A file that grows beyond this is drawn again with coarser heat maps. */
enum { LARGE_FILE = 200 * 1000, MOST_PIXELS = 32767, MOST_PATHS = 320 };

static cairo_status_t take (void *out, const unsigned char *data, unsigned n) {
  sl_bytes *b = out;
  sl_bytes_add (b, data, n);
  return b->failed ? CAIRO_STATUS_NO_MEMORY : CAIRO_STATUS_SUCCESS;
}

/* Draws the page, then calls 'finish' on the surface. */
static int draw_on (cairo_surface_t *s, double scale, const sl_layout *l,
                    const sl_render *r,
                    cairo_status_t (*finish) (cairo_surface_t *, sl_bytes *),
                    sl_bytes *out, sl_error *e) {
  cairo_t *cr = cairo_create (s);
  cairo_status_t status;
  cairo_scale (cr, scale, scale);
  sl_layout_draw (l, cr, r);
  status = cairo_status (cr);
  cairo_destroy (cr);
  if (!status) status = finish (s, out);
  if (!status) status = cairo_surface_status (s);
  cairo_surface_destroy (s);
  return status ? sl_fail (e, "cannot draw the figure: %s",
                           cairo_status_to_string (status))
                : 0;
}

static cairo_status_t close_surface (cairo_surface_t *s, sl_bytes *out) {
  (void)out;
  cairo_surface_finish (s);
  return cairo_surface_status (s);
}

/* ---- PNG ---- */

static cairo_status_t write_png (cairo_surface_t *s, sl_bytes *out) {
  return cairo_surface_write_to_png_stream (s, take, out);
}

static void big_endian (unsigned char *to, unsigned x) {
  for (int i = 0; i < 4; i++) to[i] = (unsigned char)(x >> (24 - 8 * i) & 255);
}

/* Cairo leaves the resolution out: a pHYs chunk goes behind the header,
** which is always 33 bytes long. */
static int png_bytes (const sl_layout *l, const sl_render *r, sl_bytes *out,
                      sl_error *e) {
  double scale = r->dpi / 72.0;
  unsigned per_metre = (unsigned)(r->dpi / 0.0254 + 0.5);
  unsigned char chunk[21] = { 0, 0, 0, 9, 'p', 'H', 'Y', 's' };
  sl_bytes plain = { 0 };
  cairo_surface_t *s = cairo_image_surface_create (
      CAIRO_FORMAT_RGB24, (int)floor (l->width * scale + 0.5),
      (int)floor (l->height * scale + 0.5));
  if (draw_on (s, scale, l, r, write_png, &plain, e)) {
    sl_bytes_free (&plain);
    return -1;
  }
  big_endian (chunk + 8, per_metre);
  big_endian (chunk + 12, per_metre);
  chunk[16] = 1;
  big_endian (chunk + 17, (unsigned)crc32 (0, chunk + 4, 13));
  sl_bytes_add (out, plain.data, 33);
  sl_bytes_add (out, chunk, sizeof chunk);
  sl_bytes_add (out, plain.data + 33, plain.n - 33);
  sl_bytes_free (&plain);
  return 0;
}

/* ---- SVG ---- */

static int digit (char c) {
  return c >= '0' && c <= '9';
}

/* Length of a name such as "surface12" at text, its digits counted in
** *digits; 0 if there is none. */
static size_t counted_name (const char *text, size_t n, size_t *digits) {
  static const char *const names[] = { "surface", "image",  "source", "mask",
                                       "pattern", "linear", "filter", "clip" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    size_t length = strlen (names[i]), end = length;
    if (length >= n || memcmp (text, names[i], length)) continue;
    while (end < n && digit (text[end])) end++;
    *digits = end - length;
    if (*digits) return end;
  }
  return 0;
}

/* Cairo numbers the surfaces of the whole process: here they are numbered in the
** order of their first appearance. Names follow a quote or '#'. */
static void renumber (const sl_bytes *in, sl_bytes *out) {
  struct seen {
    const char *name;
    size_t n;
  };
  sl_bytes names = { 0 }; /* an array of struct seen */
  size_t from = 0;
  for (size_t i = 1; i < in->n && !names.failed; i++) {
    const struct seen *seen = (const void *)names.data;
    size_t digits, length, k = 0, n_seen = names.n / sizeof *seen;
    const char *name = in->data + i;
    if (name[-1] != '"' && name[-1] != '#') continue;
    length = counted_name (name, in->n - i, &digits);
    if (!length) continue;
    while (k < n_seen &&
           (seen[k].n != length || memcmp (seen[k].name, name, length)))
      k++;
    if (k == n_seen)
      sl_bytes_add (&names, &(struct seen){ name, length }, sizeof *seen);
    sl_bytes_add (out, in->data + from, i - from);
    sl_bytes_add (out, name, length - digits);
    sl_bytes_format (out, "%zu", k + 1);
    i += length - 1;
    from = i + 1;
  }
  sl_bytes_add (out, in->data + from, in->n - from);
  out->failed |= names.failed;
  sl_bytes_free (&names);
}

static int svg_bytes (const sl_layout *l, const sl_render *r, sl_bytes *out,
                      sl_error *e) {
  sl_bytes plain = { 0 };
  cairo_surface_t *s =
      cairo_svg_surface_create_for_stream (take, &plain, l->width, l->height);
  int status = draw_on (s, 1, l, r, close_surface, out, e);
  if (!status) renumber (&plain, out);
  sl_bytes_free (&plain);
  return status;
}

/* ---- PDF ---- */

static int pdf_bytes (const sl_layout *l, const sl_render *r, sl_bytes *out,
                      sl_error *e) {
  cairo_surface_t *s =
      cairo_pdf_surface_create_for_stream (take, out, l->width, l->height);
#if CAIRO_VERSION >= CAIRO_VERSION_ENCODE(1, 15, 10)
  cairo_pdf_surface_set_metadata (s, CAIRO_PDF_METADATA_TITLE,
                                  l->figure->title);
  cairo_pdf_surface_set_metadata (s, CAIRO_PDF_METADATA_CREATOR,
                                  "sinklab " SINKLAB_VERSION);
  /* A fixed day instead of today. */
  cairo_pdf_surface_set_metadata (s, CAIRO_PDF_METADATA_CREATE_DATE,
                                  "2000-01-01T00:00:00Z");
#endif
  return draw_on (s, 1, l, r, close_surface, out, e);
}

/* ---- formats ---- */

static const struct format {
  const char *name;
  int vector;
  int (*bytes) (const sl_layout *l, const sl_render *r, sl_bytes *out,
                sl_error *e);
} formats[] = { { "png", 0, png_bytes },
                { "svg", 1, svg_bytes },
                { "pdf", 1, pdf_bytes } };
enum { N_FORMATS = sizeof formats / sizeof *formats };

static const struct format *find_format (const char *name, const char *where,
                                         sl_error *e) {
  const char *names[N_FORMATS];
  for (int i = 0; i < N_FORMATS; i++) {
    names[i] = formats[i].name;
    if (!strcmp (name, names[i])) return &formats[i];
  }
  sl_fail_not_one_of (e, name, N_FORMATS, names,
                      "%s: figures have no format '%.32s'", where, name);
  return NULL;
}

/* Whether halving the heat maps' resolution once more would show less than 128
** values the long way, or there is nothing to halve. */
static int coarsest (const sl_figure *f, int coarse) {
  for (int i = 0; i < f->n; i++) {
    const sl_heat_data *h = &f->panel[i].heat;
    if (f->panel[i].kind != &sl_heat_kind) continue;
    if ((h->n_rows > h->n_cols ? h->n_rows : h->n_cols) >=
        128 * ((size_t)coarse + 1))
      return 0;
  }
  return 1;
}

/* Bytes fall with the square of the resolution, roughly. */
static int coarser (int coarse, double excess) {
  int guess = (int)(coarse * sqrt (excess) * 0.8);
  return guess > coarse ? guess : coarse + 1;
}

static int few_paths (const sl_figure *f) {
  size_t paths = 0;
  for (int i = 0; i < f->n; i++) {
    const sl_heat_data *h = &f->panel[i].heat;
    if (f->panel[i].kind != &sl_heat_kind) continue;
    if (h->n_rows * h->n_cols > 100 * (size_t)MOST_PATHS) return 0;
    paths += sl_heat_runs (h);
  }
  return paths <= MOST_PATHS;
}

static int render (const sl_figure *f, const struct format *format,
                   sl_bytes *out, sl_error *e) {
  sl_render r = { f->dpi, format->vector, 1, 0 };
  r.cells = format->vector && few_paths (f);
  for (;;) {
    sl_layout *l = sl_layout_new (f, r.coarse, e);
    int status;
    if (!l) return -1;
    if (fmax (l->width, l->height) / 72 * f->dpi > MOST_PIXELS)
      status = sl_fail (e,
                        "the figure measures %.0f x %.0f pixels at %d dpi; %d "
                        "each way are allowed",
                        l->width / 72 * f->dpi, l->height / 72 * f->dpi, f->dpi,
                        MOST_PIXELS);
    else
      status = format->bytes (l, &r, out, e);
    sl_layout_free (l);
    if (!status && out->failed)
      status = sl_fail (e, "no memory for the figure's %s file", format->name);
    if (status) return -1;
    if (out->n <= LARGE_FILE || coarsest (f, r.coarse)) return 0;
    r.coarse = coarser (r.coarse, (double)out->n / LARGE_FILE);
    sl_bytes_free (out);
  }
}

char *sl_figure_bytes (const sl_figure *f, const char *format, size_t *n,
                       sl_error *e) {
  const struct format *found = find_format (format, "figure", e);
  sl_bytes out = { 0 };
  if (!found) return NULL;
  if (render (f, found, &out, e)) {
    sl_bytes_free (&out);
    return NULL;
  }
  *n = out.n;
  return out.data;
}

static const struct format *format_of (const char *path, sl_error *e) {
  const char *dot = strrchr (path, '.'), *slash = strrchr (path, '/');
  if (dot && (!slash || slash < dot)) return find_format (dot + 1, path, e);
  sl_fail (e, "%s: a figure's file needs the extension .png, .svg or .pdf",
           path);
  return NULL;
}

int sl_figure_check_path (const char *path, sl_error *e) {
  return format_of (path, e) ? 0 : -1;
}

int sl_figure_save (const sl_figure *f, const char *path, sl_error *e) {
  const struct format *format = format_of (path, e);
  sl_bytes out = { 0 };
  int status;
  if (!format) return -1;
  status = render (f, format, &out, e);
  if (status)
    sl_fail_within (e, "%s", path);
  else
    status = sl_file_write (path, out.data, out.n, e);
  sl_bytes_free (&out);
  return status;
}

/* text.c - figures as text: the terminal, pieces of lines, panels side by
** side. */
#include "base/escape.h"
#include "plot/panel.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- the terminal ---- */

static const char *variable (const char *name) {
  const char *value = getenv (name);
  return value ? value : "";
}

static int allowed_columns (long n) {
  return n < SL_LEAST_COLUMNS  ? SL_LEAST_COLUMNS
         : n > SL_MOST_COLUMNS ? SL_MOST_COLUMNS
                               : (int)n;
}

sl_text_style sl_text_style_for (int fd) {
  static const char *const locale[] = { "LC_ALL", "LC_CTYPE", "LANG" };
  sl_text_style s = { SL_TEXT_PLAIN, 0, 80 };
  const char *term = variable ("TERM"), *depth = variable ("COLORTERM");
  struct winsize size;
  long columns = strtol (variable ("COLUMNS"), NULL, 10);
  for (int i = 0; i < 3; i++) {
    const char *value = variable (locale[i]);
    if (!*value) continue;
    s.utf8 = strcasestr (value, "utf-8") || strcasestr (value, "utf8");
    break;
  }
  if (isatty (fd) && !*variable ("NO_COLOR") && *term && strcmp (term, "dumb"))
    s.colours = !strcmp (depth, "truecolor") || !strcmp (depth, "24bit")
                    ? SL_TEXT_TRUE
                    : SL_TEXT_256;
  if (isatty (fd) && !ioctl (fd, TIOCGWINSZ, &size) && size.ws_col > 0)
    columns = size.ws_col;
  if (columns > 0) s.columns = allowed_columns (columns);
  return s;
}

/* ---- pieces of lines ---- */

static int continues (char c) {
  return ((unsigned char)c & 0xc0) == 0x80;
}

/* Columns that n bytes take: characters, without the terminal's colour
** codes. */
static int display_width (const char *text, size_t n) {
  int width = 0;
  for (size_t i = 0; i < n; i++) {
    if (text[i] == '\033')
      while (i < n && text[i] != 'm') i++;
    else
      width += !continues (text[i]);
  }
  return width;
}

int sl_text_width (const char *text) {
  return display_width (text, strlen (text));
}

void sl_put_spaces (sl_bytes *out, int n) {
  while (n-- > 0) sl_bytes_put (out, " ");
}

static void put_character (sl_bytes *out, const sl_text_style *style, char c) {
  if (style->utf8 || !(c & 0x80))
    sl_bytes_add (out, &c, 1);
  else if (!continues (c))
    sl_bytes_put (out, "?");
}

/* The n bytes at text, which begin with a character: shown or escaped. */
static void put_escaped (sl_bytes *out, const sl_text_style *style,
                         const char *text, size_t n) {
  for (size_t taken; n > 0; text += taken, n -= taken) {
    sl_shown_part part;
    taken = sl_show_next (text, n, 0, &part);
    for (size_t i = 0; i < part.n; i++)
      put_character (out, style, part.text[i]);
  }
}

void sl_put_wrapped (sl_bytes *out, const sl_text_style *style, int columns,
                     const char *text) {
  while (*text) {
    size_t n = 0, end = 0;
    int width = 0;
    for (; text[n] && text[n] != '\n'; n++) {
      if (!continues (text[n]) && ++width > columns) break;
      if (text[n] == ' ') end = n;
    }
    if (!text[n] || text[n] == '\n' || text[n] == ' ' || end == 0) end = n;
    put_escaped (out, style, text, end);
    sl_bytes_put (out, "\n");
    text += end;
    if (*text == ' ' || *text == '\n') text++;
  }
}

int sl_put_fit (sl_bytes *out, const sl_text_style *style, int columns,
                const char *text) {
  int width = 0;
  for (size_t n = strcspn (text, "\n"), taken; n > 0;
       text += taken, n -= taken) {
    sl_shown_part part;
    taken = sl_show_next (text, n, 0, &part);
    for (size_t i = 0; i < part.n; i++) {
      if (!continues (part.text[i]) && ++width > columns) return columns;
      put_character (out, style, part.text[i]);
    }
  }
  return width;
}

void sl_put_colour (sl_bytes *out, const sl_text_style *style, int ground,
                    sl_rgb c) {
  if (style->colours == SL_TEXT_PLAIN) return;
  if (style->colours == SL_TEXT_TRUE)
    sl_bytes_format (out, "\033[%d;2;%d;%d;%dm", ground, c.r, c.g, c.b);
  else
    sl_bytes_format (out, "\033[%d;5;%dm", ground, sl_terminal_colour (c));
}

void sl_put_uncolour (sl_bytes *out, const sl_text_style *style) {
  if (style->colours != SL_TEXT_PLAIN) sl_bytes_put (out, "\033[0m");
}

const char sl_ramp_marks[] = ".:-=+*#%@";

char sl_ramp (double t) {
  t = t > 0 ? t < 1 ? t : 1 : 0;
  return sl_ramp_marks[(int)(t * (sizeof sl_ramp_marks - 2) + 0.5)];
}

/* ---- the grid ---- */

/* The next line of a block, without its end; NULL behind the last. */
static const char *take_line (const char **text, size_t *n) {
  const char *line = *text, *end = line ? strchr (line, '\n') : NULL;
  if (!end) return NULL;
  *n = (size_t)(end - line);
  *text = end + 1;
  return line;
}

enum { LEAST_COLUMNS = 24, MOST_BESIDE = 16 };

/* Panels first..first + n - 1 side by side, each 'columns' wide. */
static void put_beside (const sl_figure *f, int first, int n, int columns,
                        const sl_text_style *style, sl_bytes *out) {
  sl_bytes block[MOST_BESIDE] = { { 0 } };
  const char *next[MOST_BESIDE];
  int more = 1;
  for (int i = 0; i < n; i++) {
    const sl_panel *p = &f->panel[first + i];
    p->kind->text (p, style, columns, &block[i]);
    out->failed |= block[i].failed;
    next[i] = block[i].data;
  }
  while (more && !out->failed) {
    int pending = 0;
    more = 0;
    for (int i = 0; i < n; i++) {
      size_t bytes = 0;
      const char *line = take_line (&next[i], &bytes);
      if (line) {
        if (bytes) {
          sl_put_spaces (out, pending);
          sl_bytes_add (out, line, bytes);
          pending = 0;
        }
        more = 1;
      }
      pending += columns + 2 - (line ? display_width (line, bytes) : 0);
    }
    if (more) sl_bytes_put (out, "\n");
  }
  for (int i = 0; i < n; i++) sl_bytes_free (&block[i]);
}

char *sl_figure_text (const sl_figure *f, sl_text_style style, sl_error *e) {
  sl_bytes out = { 0 }, notes = { 0 };
  int beside, columns;
  if (f->n == 0) {
    sl_fail (e, "the figure has no panels");
    return NULL;
  }
  style.columns = allowed_columns (style.columns);
  beside = (style.columns + 2) / (LEAST_COLUMNS + 2);
  if (beside < 1) beside = 1;
  if (beside > MOST_BESIDE) beside = MOST_BESIDE;
  if (beside > f->columns) beside = f->columns;
  columns = (style.columns + 2) / beside - 2;
  sl_put_wrapped (&out, &style, style.columns, f->title);
  for (int row = 0; row < f->n; row += f->columns)
    for (int c = 0; c < f->columns && row + c < f->n; c += beside) {
      int n = beside;
      if (c + n > f->columns) n = f->columns - c;
      if (row + c + n > f->n) n = f->n - row - c;
      if (row + c > 0) sl_bytes_put (&out, "\n");
      if (c == 0)
        sl_put_wrapped (&out, &style, style.columns, f->panel[row].side);
      put_beside (f, row + c, n, columns, &style, &out);
    }
  sl_put_wrapped (&out, &style, style.columns, f->caption);
  sl_figure_notes (f, 1, &notes);
  if (notes.n) sl_put_wrapped (&out, &style, style.columns, notes.data);
  sl_bytes_free (&notes);
  if (!out.failed) return out.data;
  sl_bytes_free (&out);
  sl_fail (e, "no memory for the figure's text");
  return NULL;
}

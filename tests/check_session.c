/* check_session.c - the sessions on pages of docs/, typed again and compared
** with what the pages show; SINKLAB_RECORD=1 writes their outputs anew.
**
** Numbers and the marks of maps and curves may differ from machine to machine:
** they are compared as what they are, not digit by digit. */
#include "base/file.h"
#include "base/memory.h"
#include "support/suite.h"
#include "support/terminal.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DOCS SINKLAB_TEST_SOURCE "/../docs/"

enum { LINE = 4096 };

/* Everything that may differ becomes '~': runs of digits with their dots, signs
** and exponents, of the marks of maps, and of blanks around them. */
static void mask (const char *line, char *out) {
  size_t n = 0;
  for (const char *p = line; *p && n < LINE - 1; p++) {
    int varies = isdigit ((unsigned char)*p) || strchr (".:=+*#%@-_ ", *p);
    if (isdigit ((unsigned char)*p) && (p[1] == 'e' || p[1] == 'E')) p++;
    if (!varies)
      out[n++] = *p;
    else if (n == 0 || out[n - 1] != '~')
      out[n++] = '~';
  }
  while (n > 0 && out[n - 1] == '~') n--;
  out[n] = '\0';
}

/* The next line of *text, without its end, which moves on; NULL at the end. */
static char *next_line (char **text) {
  char *line = *text, *end;
  if (!*line) return NULL;
  end = strchr (line, '\n');
  *text = end ? end + 1 : line + strlen (line);
  if (end) *end = '\0';
  return line;
}

/* What a terminal would still show of a line: what follows the last return of
** the carriage. */
static char *visible (char *line) {
  size_t n = strlen (line);
  char *last;
  while (n > 0 && line[n - 1] == '\r') line[--n] = '\0';
  last = strrchr (line, '\r');
  return last ? last + 1 : line;
}

/* Where training stands, every few seconds: on a slow machine only. */
static int is_progress (const char *line) {
  const char *left = strstr (line, " left");
  return strstr (line, " steps/s ") && left && strcmp (left, " left") == 0;
}

static int is_fence (const char *line) {
  return strncmp (line, "```", 3) == 0;
}

static int is_input (const char *line) {
  return strncmp (line, "> ", 2) == 0 || strncmp (line, ">> ", 3) == 0;
}

/* Types an input of the page; what the screen shows between its echo and the
** next prompt, which begins a line. */
static const char *answer (const char *input) {
  const char *shown, *end;
  terminal_ready ();
  terminal_type (strchr (input, ' ') + 1);
  terminal_type ("\n");
  shown = terminal_until ("\n>");
  end = strchr (shown, '\n');
  return end ? end + 1 : "";
}

/* The page with outputs anew in 'page', or compared with what is there. */
static void replay (char *text, int record, FILE *page) {
  char *line, *rest = text, *expected[512];
  int n_expected = 0, inside = 0, typed = 0;
  const char *shown = NULL;
  char copy[1 << 16];
  while ((line = next_line (&rest)) != NULL || shown) {
    int ends = !line || is_input (line) || (inside && is_fence (line));
    if (inside && ends && shown) { /* compare the answer before */
      char *s = copy, *got;
      int i = 0;
      snprintf (copy, sizeof copy, "%s", shown);
      shown = NULL;
      while ((got = next_line (&s)) != NULL) {
        char a[LINE], b[LINE];
        got = visible (got);
        if (is_progress (got)) continue;
        if (record) {
          fprintf (page, "%s\n", got);
          continue;
        }
        ck_assert_msg (i < n_expected, "the page has no line \"%s\"", got);
        mask (got, a);
        mask (expected[i], b);
        ck_assert_msg (strcmp (a, b) == 0, "got  \"%s\"\nwant \"%s\"", got,
                       expected[i]);
        i++;
      }
      if (!record)
        ck_assert_msg (i == n_expected, "not shown: \"%s\"", expected[i]);
      n_expected = 0;
    }
    if (!line) break;
    if (!inside || ends) {
      if (page) fprintf (page, "%s\n", line);
    } else
      expected[n_expected++] = line;
    ck_assert_int_lt (n_expected, 512);
    if (strcmp (line, "```repl") == 0)
      inside = 1;
    else if (inside && is_fence (line))
      inside = 0;
    else if (inside && is_input (line)) {
      shown = answer (line);
      typed++;
    }
  }
  ck_assert_int_ge (typed, 10);
}

static void check_page (const char *path) {
  const char *record = getenv ("SINKLAB_RECORD");
  char folder[] = "/tmp/sinklab-session-XXXXXX";
  FILE *page = NULL;
  char *text;
  size_t n;
  sl_error e;
  ck_assert_ptr_nonnull (mkdtemp (folder));
  text = sl_file_read (path, 0, &n, &e);
  ck_assert_msg (text != NULL, "%s", e.text);
  if (record) {
    page = fopen (path, "w");
    ck_assert_ptr_nonnull (page);
  }
  terminal_start (SINKLAB_BINARY, "dumb", folder);
  terminal_expect ("\n>");
  replay (text, record != NULL, page);
  if (page) fclose (page);
  sl_free (text);
  terminal_ready (); /* a Ctrl-D before the prompt reads keys would be lost */
  terminal_type ("\004");
  terminal_wait ();
}

START_TEST (session) {
  check_page (DOCS "session.md");
}
END_TEST

START_TEST (tutorial) {
  check_page (DOCS "tutorial.md");
}
END_TEST

SUITE_MAIN ("session", session, tutorial)

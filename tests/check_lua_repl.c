/* check_lua_repl.c - the prompt on a terminal: a pseudo-terminal, typed
** into. */
#include "base/file.h"
#include "base/memory.h"
#include "support/suite.h"
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { SECONDS = 30, SCREEN = 1 << 16 };

static struct {
  int fd;
  pid_t pid;
  char text[SCREEN]; /* since the last 'expect' */
  size_t n;
} screen;

static char state[] = "/tmp/sinklab-repl-XXXXXX"; /* of one test: it forks */

/* sinklab in a terminal of 80 columns, its history in a folder of its own. */
static void start_in (const char *terminal) {
  struct winsize size = { .ws_row = 24, .ws_col = 80 };
  ck_assert_ptr_nonnull (mkdtemp (state));
  screen.pid = forkpty (&screen.fd, NULL, NULL, &size);
  ck_assert_int_ge (screen.pid, 0);
  if (screen.pid == 0) {
    setenv ("TERM", terminal, 1);
    setenv ("LC_ALL", "C.UTF-8", 1);
    setenv ("XDG_STATE_HOME", state, 1);
    setenv ("HOME", state, 1);
    execl (SINKLAB_BINARY, "sinklab", "--threads=1", (char *)NULL);
    _exit (127);
  }
}

static void start (void) {
  start_in ("dumb");
}

static void type (const char *keys) {
  ck_assert_int_eq (write (screen.fd, keys, strlen (keys)),
                    (ssize_t)strlen (keys));
}

/* Wait until the screen shows 'part' and forget what came before its end. */
static void expect (const char *part) {
  for (int tenths = 0; tenths < SECONDS * 10;) {
    struct pollfd wait = { .fd = screen.fd, .events = POLLIN };
    char *found = strstr (screen.text, part);
    if (found) {
      size_t used = (size_t)(found - screen.text) + strlen (part);
      memmove (screen.text, screen.text + used, screen.n - used + 1);
      screen.n -= used;
      return;
    }
    if (poll (&wait, 1, 100) == 0) {
      tenths++;
      continue;
    }
    ssize_t n = read (screen.fd, screen.text + screen.n,
                      sizeof screen.text - 1 - screen.n);
    if (n <= 0) break;
    screen.n += (size_t)n;
    screen.text[screen.n] = '\0';
  }
  ck_abort_msg ("the screen shows no \"%s\" but \"%s\"", part, screen.text);
}

/* Type control keys at the next prompt. The prompt is shown an instant before
** the editor takes the terminal over; until then Ctrl-D would be the terminal's
** own. */
static void press (const char *prompt, const char *keys) {
  struct termios mode;
  expect (prompt);
  for (int i = 0; i < SECONDS * 1000; i++) {
    ck_assert_int_eq (tcgetattr (screen.fd, &mode), 0);
    if (!(mode.c_lflag & ICANON)) {
      type (keys);
      return;
    }
    usleep (1000);
  }
  ck_abort_msg ("the editor never took the terminal over");
}

static int leave (void) {
  char rest[512];
  struct pollfd wait = { .fd = screen.fd, .events = POLLIN };
  int status;
  press ("> ", "\004");
  while (poll (&wait, 1, SECONDS * 1000) > 0)
    if (read (screen.fd, rest, sizeof rest) <= 0) break;
  ck_assert_int_eq (waitpid (screen.pid, &status, 0), screen.pid);
  ck_assert_msg (WIFEXITED (status), "ended by signal %d", WTERMSIG (status));
  return WEXITSTATUS (status);
}

START_TEST (results_print) {
  start ();
  expect ("> ");
  type ("1 + 41\n");
  expect ("\n42");
  type ("x = { b = 2, a = 'q' }\nx\n");
  expect ("{ a = \"q\", b = 2 }");
  type ("1000 + 1;\n_ + 1\n"); /* silent, but remembered */
  expect ("\n1002");
  type ("for i = 1, 2 do\nprint(i * 100)\nend\n");
  expect (">> ");
  expect ("\n200");
  type ("#'\u00e9\u20ac'\n"); /* five bytes of UTF-8 */
  expect ("\n5");
  type ("lab.threads()\n");
  expect ("\n1");
  ck_assert_int_eq (leave (), 0);
}
END_TEST

/* The README's session: its lines are typed, the rest is what must be shown. */
START_TEST (readme_session) {
  char *text, *line, *end, *rest;
  size_t n;
  int typed = 0;
  sl_error e;
  text = sl_file_read (SINKLAB_TEST_SOURCE "/../README.md", 0, &n, &e);
  ck_assert_msg (text != NULL, "%s", e.text);
  line = strstr (text, "```repl\n");
  ck_assert_ptr_nonnull (line);
  end = strstr (line + 3, "```");
  ck_assert_ptr_nonnull (end);
  *end = '\0';
  start ();
  for (line = strtok_r (line + 8, "\n", &rest); line != NULL;
       line = strtok_r (NULL, "\n", &rest))
    if (strncmp (line, "> ", 2) == 0) {
      expect ("> ");
      type (line + 2);
      type ("\n");
      expect ("\n");
      typed++;
    } else
      expect (line);
  sl_free (text);
  ck_assert_int_ge (typed, 3);
  ck_assert_int_eq (leave (), 0);
}
END_TEST

START_TEST (errors_go_on) {
  start ();
  type ("nil + 1\n");
  expect ("stdin:1: attempt to perform arithmetic on a nil value");
  type ("x = = 1\n");
  expect ("stdin:1: unexpected symbol");
  type ("lab.optionss\n");
  expect ("did you mean lab.options?");
  type ("'still' .. ' here'\n");
  expect ("\nstill here");
  ck_assert_int_eq (leave (), 0);
}
END_TEST

/* ThreadSanitizer keeps a signal until the program calls the C library. */
#ifdef __SANITIZE_THREAD__
#define ENDLESS "while true do io.write '' end"
#else
#define ENDLESS "while true do end"
#endif

START_TEST (control_c) {
  start ();
  expect ("> ");
  type ("print('go'); " ENDLESS "\n");
  expect ("\ngo");
  type ("\003");
  expect ("interrupted");
  press ("> ", "abc + \003"); /* at the prompt: the line is dropped */
  expect ("^C");
  press ("> ", "(\n");
  press (">> ", "\003");
  press ("> ", "2 * 21\n");
  expect ("\n42");
  ck_assert_int_eq (leave (), 0);
}
END_TEST

/* An endless loop in a coroutine and around pcall; and pressed twice. */
START_TEST (control_c_anywhere) {
  start ();
  expect ("> ");
  type ("coroutine.wrap(function() print('go') " ENDLESS " end)()\n");
  expect ("\ngo");
  type ("\003");
  expect ("interrupted");
  press ("> ",
         "print('on') while true do pcall(function() " ENDLESS " end) end\n");
  expect ("\non");
  type ("\003");
  expect ("interrupted");
  press ("> ", "print('pressed') lab.clock() " ENDLESS "\n");
  expect ("\npressed");
  type ("\003\003");
  expect ("interrupted");
  press ("> ", "6 * 7\n");
  expect ("\n42");
  ck_assert_int_eq (leave (), 0);
}
END_TEST

START_TEST (tab_completes) {
  start ();
  press ("> ", "lab.opti\t"); /* optim or options: what they share */
  expect ("lab.opti");
  type ("\t"); /* both are listed, and the line is back */
  expect ("optim    options");
  expect ("> lab.opti");
  type ("o\t.x\b\b == lab.options\n");
  expect ("\ntrue");
  press ("> ", "x = lab.tensor { 1, 2 };\n");
  press ("> ", "x:cums\t():get(2)\n");
  expect ("\n3");
  press ("> ", "lab.optim.adam { clip\t2 }.clip_norm\n");
  expect ("clip_norm = 2");
  expect ("\n2");
  press ("> ", "lab.mechanism('softpi\t').name\n");
  expect ("\nsoftpick");
  press ("> ", "do\n");
  press (">> ", "\tprint 'in'\n"); /* a blank line is indented */
  press (">> ", "end\n");
  expect ("\nin");
  ck_assert_int_eq (leave (), 0);
}
END_TEST

START_TEST (questions_and_commands) {
  start ();
  press ("> ", "?lab.sha256\n");
  expect ("The SHA-256 of a file.");
  press ("> ", "?lab.sha25\n");
  expect ("did you mean 'lab.sha256'?");
  press ("> ", "%time 1 + 1\n");
  expect ("on the clock");
  expect ("\n2");
  press ("> ", "local a = 1\n");
  expect ("note: the local 'a' is gone");
  press ("> ", "%nothing\n");
  expect ("no command '%nothing'");
  press ("> ", "quit\n");
  expect ("Ctrl-D leaves");
  ck_assert_int_eq (leave (), 0);
}
END_TEST

/* A terminal that can move its cursor, and what it shows of a model. */
START_TEST (rich_terminal) {
  start_in ("xterm");
  press ("> ",
         "lab.model.attention_only { task = lab.task.trigger_mean {} }\n");
  expect ("\u2514\u2500 layer1");
  expect ("\u251c\u2500 w_q");
  press ("> ", "for i = 1, 2 do\n");
  press (">> ", "print(i * 100)\n");
  press (">> ", "end\n");
  expect ("\n200");
  press ("> ", "\020"); /* the whole of it comes back, and runs again */
  expect ("print(i * 100)");
  expect ("end");
  type ("\n");
  expect ("\n200");
  ck_assert_int_eq (leave (), 0);
}
END_TEST

START_TEST (training_stops) {
  start ();
  type ("t = lab.task.trigger_mean { d_model = 8, seq_len = 6 }\n"
        "m = lab.model.attention_only { task = t,\n"
        "attention = { map = 'softmax' } };\n"
        "log = lab.train(m, t, { steps = 10^9 })\n");
  expect ("steps/s");
  type ("\003");
  expect ("stopped by interrupted");
  press ("> ", "log.stopped_by\n");
  expect ("\ninterrupted");
  /* The model can be trained on. */
  type ("lab.train(m, t, { steps = 20 }).stopped_by\n");
  expect ("\nsteps");
  ck_assert_int_eq (leave (), 0);
}
END_TEST

START_TEST (history_is_kept) {
  char path[256];
  char *text;
  size_t n;
  sl_error e;
  start ();
  expect ("> ");
  type ("11 * 11\n");
  expect ("\n121");
  press ("> ", "\020\n"); /* Ctrl-P: the line before */
  expect ("\n121");
  ck_assert_int_eq (leave (), 0);
  snprintf (path, sizeof path, "%s/sinklab/history", state);
  text = sl_file_read (path, 0, &n, &e);
  ck_assert_msg (text != NULL, "%s", e.text);
  ck_assert_ptr_nonnull (strstr (text, "11"));
  sl_free (text);
}
END_TEST

START_TEST (sigterm_ends_it) {
  int status;
  start ();
  expect ("> ");
  kill (screen.pid, SIGTERM);
  ck_assert_int_eq (waitpid (screen.pid, &status, 0), screen.pid);
  ck_assert_msg (WIFSIGNALED (status) && WTERMSIG (status) == SIGTERM,
                 "status %d", status);
}
END_TEST

SUITE_MAIN ("lua_repl", results_print, readme_session, errors_go_on, control_c,
            control_c_anywhere, tab_completes, questions_and_commands,
            rich_terminal, training_stops, history_is_kept, sigterm_ends_it)

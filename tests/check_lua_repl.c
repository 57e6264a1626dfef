/* check_lua_repl.c - the prompt on a terminal: a pseudo-terminal, typed
** into. */
#include "base/file.h"
#include "base/memory.h"
#include "support/suite.h"
#include "support/terminal.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void start (void) {
  terminal_start (SINKLAB_BINARY, "dumb", NULL);
}

START_TEST (results_print) {
  start ();
  terminal_expect ("> ");
  terminal_type ("1 + 41\n");
  terminal_expect ("\n42");
  terminal_type ("x = { b = 2, a = 'q' }\nx\n");
  terminal_expect ("{ a = \"q\", b = 2 }");
  terminal_type ("1000 + 1;\n_ + 1\n"); /* silent, but remembered */
  terminal_expect ("\n1002");
  terminal_type ("for i = 1, 2 do\nprint(i * 100)\nend\n");
  terminal_expect (">> ");
  terminal_expect ("\n200");
  terminal_type ("#'\u00e9\u20ac'\n"); /* five bytes of UTF-8 */
  terminal_expect ("\n5");
  terminal_type ("lab.threads()\n");
  terminal_expect ("\n1");
  ck_assert_int_eq (terminal_leave (), 0);
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
      terminal_expect ("> ");
      terminal_type (line + 2);
      terminal_type ("\n");
      terminal_expect ("\n");
      typed++;
    } else
      terminal_expect (line);
  sl_free (text);
  ck_assert_int_ge (typed, 3);
  ck_assert_int_eq (terminal_leave (), 0);
}
END_TEST

START_TEST (errors_go_on) {
  start ();
  terminal_type ("nil + 1\n");
  terminal_expect ("stdin:1: attempt to perform arithmetic on a nil value");
  terminal_type ("x = = 1\n");
  terminal_expect ("stdin:1: unexpected symbol");
  terminal_type ("lab.optionss\n");
  terminal_expect ("did you mean lab.options?");
  terminal_type ("'still' .. ' here'\n");
  terminal_expect ("\nstill here");
  ck_assert_int_eq (terminal_leave (), 0);
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
  terminal_expect ("> ");
  terminal_type ("print('go'); " ENDLESS "\n");
  terminal_expect ("\ngo");
  terminal_type ("\003");
  terminal_expect ("interrupted");
  terminal_press ("> ", "abc + \003"); /* at the prompt: the line is dropped */
  terminal_expect ("^C");
  terminal_press ("> ", "(\n");
  terminal_press (">> ", "\003");
  terminal_press ("> ", "2 * 21\n");
  terminal_expect ("\n42");
  ck_assert_int_eq (terminal_leave (), 0);
}
END_TEST

/* An endless loop in a coroutine and around pcall; and pressed twice. */
START_TEST (control_c_anywhere) {
  start ();
  terminal_expect ("> ");
  terminal_type ("coroutine.wrap(function() print('go') " ENDLESS " end)()\n");
  terminal_expect ("\ngo");
  terminal_type ("\003");
  terminal_expect ("interrupted");
  terminal_press ("> ", "print('on') while true do pcall(function() " ENDLESS
                        " end) end\n");
  terminal_expect ("\non");
  terminal_type ("\003");
  terminal_expect ("interrupted");
  terminal_press ("> ", "print('pressed') lab.clock() " ENDLESS "\n");
  terminal_expect ("\npressed");
  terminal_type ("\003\003");
  terminal_expect ("interrupted");
  terminal_press ("> ", "6 * 7\n");
  terminal_expect ("\n42");
  ck_assert_int_eq (terminal_leave (), 0);
}
END_TEST

START_TEST (tab_completes) {
  start ();
  terminal_press ("> ", "lab.opti\t"); /* optim or options: what they share */
  terminal_expect ("lab.opti");
  terminal_type ("\t"); /* both are listed, and the line is back */
  terminal_expect ("optim    options");
  terminal_expect ("> lab.opti");
  terminal_type ("o\t.x\b\b == lab.options\n");
  terminal_expect ("\ntrue");
  terminal_press ("> ", "x = lab.tensor { 1, 2 };\n");
  terminal_press ("> ", "x:cums\t():get(2)\n");
  terminal_expect ("\n3");
  terminal_press ("> ", "lab.optim.adam { clip\t2 }.clip_norm\n");
  terminal_expect ("clip_norm = 2");
  terminal_expect ("\n2");
  terminal_press ("> ", "lab.mechanism('softpi\t').name\n");
  terminal_expect ("\nsoftpick");
  terminal_press ("> ", "do\n");
  terminal_press (">> ", "\tprint 'in'\n"); /* a blank line is indented */
  terminal_press (">> ", "end\n");
  terminal_expect ("\nin");
  ck_assert_int_eq (terminal_leave (), 0);
}
END_TEST

START_TEST (questions_and_commands) {
  start ();
  terminal_press ("> ", "?lab.sha256\n");
  terminal_expect ("The SHA-256 of a file.");
  terminal_press ("> ", "?lab.sha25\n");
  terminal_expect ("did you mean 'lab.sha256'?");
  terminal_press ("> ", "%time 1 + 1\n");
  terminal_expect ("on the clock");
  terminal_expect ("\n2");
  terminal_press ("> ", "local a = 1\n");
  terminal_expect ("note: the local 'a' is gone");
  terminal_press ("> ", "%nothing\n");
  terminal_expect ("no command '%nothing'");
  terminal_press ("> ", "help\n");
  terminal_expect ("? alone lists all names");
  terminal_press ("> ", "quit\n");
  terminal_expect ("Ctrl-D leaves");
  ck_assert_int_eq (terminal_leave (), 0);
}
END_TEST

/* A terminal that can move its cursor, and what it shows of a model. */
START_TEST (rich_terminal) {
  terminal_start (SINKLAB_BINARY, "xterm", NULL);
  terminal_press (
      "> ", "lab.model.attention_only { task = lab.task.trigger_mean {} }\n");
  terminal_expect ("\u2514\u2500 layer1");
  terminal_expect ("\u251c\u2500 w_q");
  terminal_press ("> ", "for i = 1, 2 do\n");
  terminal_press (">> ", "print(i * 100)\n");
  terminal_press (">> ", "end\n");
  terminal_expect ("\n200");
  terminal_press ("> ",
                  "\020"); /* the whole of it comes back, and runs again */
  terminal_expect ("print(i * 100)");
  terminal_expect ("end");
  terminal_type ("\n");
  terminal_expect ("\n200");
  ck_assert_int_eq (terminal_leave (), 0);
}
END_TEST

START_TEST (training_stops) {
  start ();
  terminal_type ("t = lab.task.trigger_mean { d_model = 8, seq_len = 6 }\n"
                 "m = lab.model.attention_only { task = t,\n"
                 "attention = { mechanism = 'softmax' } };\n"
                 "log = lab.train(m, t, { steps = 10^9 })\n");
  terminal_expect ("steps/s");
  terminal_type ("\003");
  terminal_expect ("stopped by interrupted");
  terminal_press ("> ", "log.stopped_by\n");
  terminal_expect ("\ninterrupted");
  /* The model can be trained on. */
  terminal_type ("lab.train(m, t, { steps = 20 }).stopped_by\n");
  terminal_expect ("\nsteps");
  ck_assert_int_eq (terminal_leave (), 0);
}
END_TEST

/* The workers have the terminal's Ctrl-C as well. */
START_TEST (sweep_stops) {
  start ();
  terminal_press ("> ", "function forever(p)\n");
  terminal_press (">> ", "io.stderr:write('go', 'ing\\n')\n");
  terminal_press (">> ", ENDLESS "\n");
  terminal_press (">> ", "end\n");
  terminal_press ("> ", "lab.sweep { grid = { n = { 1 } }, run = forever };\n");
  terminal_expect ("going");
  terminal_type ("\003");
  terminal_press ("> ", "6 * 7\n");
  terminal_expect ("\n42");
  ck_assert_int_eq (terminal_leave (), 0);
}
END_TEST

START_TEST (history_is_kept) {
  char path[256];
  char *text;
  size_t n;
  sl_error e;
  start ();
  terminal_expect ("> ");
  terminal_type ("11 * 11\n");
  terminal_expect ("\n121");
  terminal_press ("> ", "\020\n"); /* Ctrl-P: the line before */
  terminal_expect ("\n121");
  ck_assert_int_eq (terminal_leave (), 0);
  snprintf (path, sizeof path, "%s/sinklab/history", terminal_state ());
  text = sl_file_read (path, 0, &n, &e);
  ck_assert_msg (text != NULL, "%s", e.text);
  ck_assert_ptr_nonnull (strstr (text, "11"));
  sl_free (text);
}
END_TEST

START_TEST (sigterm_ends_it) {
  int status;
  start ();
  terminal_expect ("> ");
  terminal_signal (SIGTERM);
  status = terminal_wait ();
  ck_assert_msg (WIFEXITED (status) && WEXITSTATUS (status) == 128 + SIGTERM,
                 "status %d", status);
}
END_TEST

SUITE_MAIN ("lua_repl", results_print, readme_session, errors_go_on, control_c,
            control_c_anywhere, tab_completes, questions_and_commands,
            rich_terminal, training_stops, sweep_stops, history_is_kept,
            sigterm_ends_it)

/* check_process.c - messages to and from fresh processes, and their ends. The
** children are shells, which echo what they get or end in several ways. */
#include "base/memory_test.h"
#include "base/process.h"
#include "support/suite.h"
#include <signal.h>
#include <string.h>
#include <unistd.h>

static sl_error error;

static sl_process *shell (const char *command) {
  char text[256], sh[] = "/bin/sh", c[] = "-c", *argv[] = { sh, c, text, NULL };
  strcpy (text, command);
  sl_process *p = sl_process_start (argv, &error);
  if (p == NULL) ck_abort_msg ("%s", error.text);
  return p;
}

/* The next message, waited for. */
static char *next (sl_process *p, size_t *n) {
  char *data;
  int got;
  do {
    ck_assert_int_eq (sl_process_wait (&p, 1, 10), 0);
    got = sl_process_receive (p, &data, n, &error);
  } while (got == 0);
  ck_assert_msg (got == 1, "%s", error.text);
  return data;
}

START_TEST (messages_arrive_whole_and_in_order) {
  static const size_t sizes[] = { 5, 0, 1, 300000, 8 };
  char how[64], *big = sl_alloc (300000, 1);
  sl_process *p = shell ("exec cat <&0 >&0");
  for (size_t i = 0; i < 300000; i++) big[i] = (char)(i * i >> 3);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    size_t n;
    char *data;
    ck_assert_int_eq (sl_process_send (p, big, sizes[i], &error), 0);
    data = next (p, &n);
    ck_assert_uint_eq (n, sizes[i]);
    ck_assert_int_eq (memcmp (data, big, n), 0);
    ck_assert_int_eq (data[n], 0);
    sl_free (data);
  }
  sl_process_stop (p, how, sizeof how);
  ck_assert_str_eq (how, "ended with status 0");
  sl_free (big);
  ck_assert_uint_eq (sl_alloc_live (), 0);
}
END_TEST

START_TEST (of_several_the_ready_one_is_found) {
  char how[64], *data;
  size_t n;
  sl_process *p[3];
  for (int i = 0; i < 3; i++) p[i] = shell ("exec cat <&0 >&0");
  ck_assert_int_eq (sl_process_wait (p, 3, 0.01), -1);
  ck_assert_int_eq (sl_process_receive (p[1], &data, &n, &error), 0);
  sl_process_send (p[2], "x", 1, &error);
  ck_assert_int_eq (sl_process_wait (p, 3, 10), 2);
  for (int i = 0; i < 3; i++) sl_process_stop (p[i], how, sizeof how);
}
END_TEST

START_TEST (ends_are_told_apart) {
  static const struct {
    const char *command, *how;
  } end[] = { { "exit 3", "ended with status 3" },
              { "kill -KILL $$", "was killed by signal 9 (Killed)" },
              { "exec sleep 100", "was killed by signal 15 (Terminated)" } };
  for (size_t i = 0; i < sizeof end / sizeof *end; i++) {
    char how[64], *data;
    size_t n;
    sl_process *p = shell (end[i].command);
    if (i < 2) {
      ck_assert_int_eq (sl_process_wait (&p, 1, 10), 0);
      ck_assert_int_eq (sl_process_receive (p, &data, &n, &error), -1);
      ck_assert (strstr (error.text, "has ended"));
      ck_assert_int_eq (sl_process_send (p, "x", 1, &error), -1);
      ck_assert (strstr (error.text, "does not listen"));
    }
    sl_process_stop (p, how, sizeof how);
    ck_assert_str_eq (how, end[i].how);
  }
}
END_TEST

START_TEST (a_length_out_of_reason_is_refused) {
  char how[64], *data;
  size_t n;
  sl_process *p =
      shell ("printf '\\377\\377\\377\\377\\377\\377\\377\\377' >&0");
  int got;
  do {
    ck_assert_int_eq (sl_process_wait (&p, 1, 10), 0);
    got = sl_process_receive (p, &data, &n, &error);
  } while (got == 0);
  ck_assert_int_eq (got, -1);
  ck_assert_str_eq (error.text,
                    "no memory for a message of 18446744073709551615 bytes");
  sl_process_stop (p, how, sizeof how);
}
END_TEST

START_TEST (a_program_that_is_not_there) {
  char name[] = "/nowhere/program", *argv[] = { name, NULL };
  ck_assert_ptr_null (sl_process_start (argv, &error));
  ck_assert_str_eq (
      error.text,
      "/nowhere/program: cannot be started: No such file or directory");
  sl_process_stop (NULL, NULL, 0);
}
END_TEST

START_TEST (who_was_not_started_so_has_no_parent_to_talk_to) {
  ck_assert_int_eq (sl_parent_begin (&error), -1);
  ck_assert_str_eq (error.text,
                    "standard input is not a socket of a sinklab process");
}
END_TEST

SUITE_MAIN ("process", messages_arrive_whole_and_in_order,
            of_several_the_ready_one_is_found, ends_are_told_apart,
            a_length_out_of_reason_is_refused, a_program_that_is_not_there,
            who_was_not_started_so_has_no_parent_to_talk_to)

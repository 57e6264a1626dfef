/* check_folder.c - folders are removed without following links; the lock of a
** folder is held by one descriptor and ends with its process. */
#include "base/file.h"
#include "base/folder.h"
#include "base/memory.h"
#include "support/files.h"
#include "support/suite.h"
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[OWN_PATH];
static sl_error e;

static const char *in (const char *name) {
  static char paths[4][PATH_MAX + OWN_PATH];
  static int turn;
  char *path = paths[turn++ % 4];
  snprintf (path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

static void ok (int status) {
  ck_assert_msg (status == 0, "%s", e.text);
}

START_TEST (links_are_removed_and_not_followed) {
  own_folder (folder);
  ok (sl_make_folders (in ("kept"), &e));
  ok (sl_file_write (in ("kept/x"), "x", 1, &e));
  ok (sl_make_folders (in ("run/a/b"), &e));
  ok (sl_file_write (in ("run/a/b/y"), "y", 1, &e));
  ok (symlink (in ("kept"), in ("run/a/link")));
  ok (symlink ("..", in ("run/a/b/up")));
  ok (symlink ("nowhere", in ("run/broken")));
  ok (mkfifo (in ("run/pipe"), 0600));
  ok (sl_remove_tree (in ("run"), &e));
  ck_assert_int_eq (sl_folder_exists (in ("run")), 0);
  ck_assert_int_eq (sl_file_exists (in ("kept/x")), 1);
  /* the path itself may be a link, or missing */
  ok (symlink (in ("kept"), in ("alias")));
  ok (sl_remove_tree (in ("alias"), &e));
  ok (sl_remove_tree (in ("alias"), &e));
  ck_assert_int_eq (sl_file_exists (in ("kept/x")), 1);
  own_remove (folder);
}
END_TEST

START_TEST (an_entry_that_cannot_be_removed_is_named) {
  pid_t child;
  int status;
  own_folder (folder);
  ok (sl_make_folders (in ("run/shut"), &e));
  ok (sl_file_write (in ("run/shut/x"), "x", 1, &e));
  ok (chmod (in ("run/shut"), 0500));
  ok (chmod (folder, 0755));
  child = fork ();
  if (child == 0) { /* root may remove everything: as somebody else */
    const char *said = e.text;
    if (getuid () == 0 && setuid (65534) != 0) _exit (2);
    if (sl_remove_tree (in ("run"), &e) == 0) _exit (3);
    _exit (strstr (said, "shut") != NULL ? 0 : 4);
  }
  ck_assert_int_eq (waitpid (child, &status, 0), child);
  ck_assert_int_eq (WEXITSTATUS (status), 0);
  ck_assert_int_eq (sl_file_exists (in ("run/shut/x")), 1);
  ok (chmod (in ("run/shut"), 0700));
  own_remove (folder);
}
END_TEST

START_TEST (folders_nested_too_deep_are_refused) {
  char path[PATH_MAX] = "";
  own_folder (folder);
  for (int i = 0; i < 220; i++) strcat (path, "/d");
  ok (sl_make_folders (in (path + 1), &e));
  ck_assert_int_eq (sl_remove_tree (in ("d"), &e), -1);
  ck_assert_ptr_nonnull (strstr (e.text, "nested deeper than 200"));
  ok (sl_remove_tree (in ("d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d"),
                      &e));
  ok (sl_remove_tree (in ("d"), &e));
  own_remove (folder);
}
END_TEST

START_TEST (one_descriptor_holds_the_lock) {
  int held = 0, lock, second;
  own_folder (folder);
  ck_assert_int_eq (sl_folder_locked (folder), 0);
  lock = sl_folder_lock (folder, &held, &e);
  ck_assert_msg (lock >= 0, "%s", e.text);
  ck_assert_int_eq (sl_folder_locked (folder), 1);
  second = sl_folder_lock (folder, &held, &e);
  ck_assert_int_eq (second, -1);
  ck_assert_int_eq (held, 1);
  ck_assert_ptr_nonnull (strstr (e.text, "in use"));
  sl_folder_unlock (folder, lock);
  ck_assert_int_eq (sl_folder_locked (folder), 0);
  ck_assert_int_eq (sl_file_exists (in (SL_LOCK_FILE)), 0);
  ck_assert_int_eq (sl_folder_lock (in ("none"), &held, &e), -1);
  ck_assert_int_eq (held, 0);
  own_remove (folder);
}
END_TEST

START_TEST (the_lock_ends_with_its_process) {
  int held, lock, ready[2], status;
  pid_t child;
  char c;
  own_folder (folder);
  ok (pipe (ready));
  child = fork ();
  if (child == 0) {
    if (sl_folder_lock (folder, &held, &e) < 0) _exit (1);
    if (write (ready[1], "x", 1) != 1) _exit (1);
    pause ();
  }
  ck_assert_int_eq (read (ready[0], &c, 1), 1);
  ck_assert_int_eq (sl_folder_locked (folder), 1);
  kill (child, SIGKILL);
  ck_assert_int_eq (waitpid (child, &status, 0), child);
  ck_assert_int_eq (sl_folder_locked (folder), 0);
  lock = sl_folder_lock (folder, &held, &e);
  ck_assert_msg (lock >= 0, "%s", e.text);
  sl_folder_unlock (folder, lock);
  own_remove (folder);
}
END_TEST

/* Processes that take, hold and release the lock in turn: a counter file that
** each reads and writes under the lock loses no step. */
START_TEST (taken_by_many_it_is_held_by_one) {
  enum { PROCESSES = 8, TURNS = 50 };
  char *text;
  size_t n;
  own_folder (folder);
  ok (sl_file_write (in ("count"), "0", 1, &e));
  for (int i = 0; i < PROCESSES; i++)
    if (fork () == 0) {
      for (int turn = 0; turn < TURNS;) {
        int held, lock = sl_folder_lock (folder, &held, &e);
        char number[32];
        if (lock < 0) continue;
        text = sl_file_read (in ("count"), 0, &n, &e);
        if (!text) _exit (1);
        snprintf (number, sizeof number, "%d", atoi (text) + 1);
        sl_free (text);
        if (sl_file_write (in ("count"), number, strlen (number), &e) != 0)
          _exit (1);
        sl_folder_unlock (folder, lock);
        turn++;
      }
      _exit (0);
    }
  for (int i = 0; i < PROCESSES; i++) {
    int status;
    ck_assert_int_gt (wait (&status), 0);
    ck_assert_int_eq (status, 0);
  }
  text = sl_file_read (in ("count"), 0, &n, &e);
  ck_assert_msg (text != NULL, "%s", e.text);
  ck_assert_int_eq (atoi (text), PROCESSES * TURNS);
  sl_free (text);
  own_remove (folder);
}
END_TEST

SUITE_MAIN ("folder", links_are_removed_and_not_followed,
            an_entry_that_cannot_be_removed_is_named,
            folders_nested_too_deep_are_refused, one_descriptor_holds_the_lock,
            the_lock_ends_with_its_process, taken_by_many_it_is_held_by_one)

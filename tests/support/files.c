/* files.c - a file or a folder of a test's own. */
#include "support/files.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void own_file (char path[OWN_PATH]) {
  int file;
  strcpy (path, "/tmp/sinklab-check-XXXXXX");
  file = mkstemp (path);
  ck_assert_int_ge (file, 0);
  close (file);
}

void own_folder (char path[OWN_PATH]) {
  strcpy (path, "/tmp/sinklab-check-XXXXXX");
  ck_assert_ptr_nonnull (mkdtemp (path));
}

void own_remove (const char *path) {
  char command[OWN_PATH + 16];
  snprintf (command, sizeof command, "rm -rf '%s'", path);
  ck_assert_int_eq (access (path, F_OK), 0);
  ck_assert_int_eq (system (command), 0);
}

void says_of_file (const char *said, const char *path, const char *why) {
  const size_t n = strlen (path);
  ck_assert_msg (strncmp (said, path, n) == 0 &&
                     strncmp (said + n, ": ", 2) == 0 &&
                     strcmp (said + n + 2, why) == 0,
                 "got '%s', expected '%s: %s'", said, path, why);
}

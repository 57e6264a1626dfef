/* check_file.c - whole files, folders, hashes and places, and their
** failures. */
#include "base/file.h"
#include "base/memory_test.h"
#include "support/files.h"
#include "support/suite.h"
#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[OWN_PATH];
static sl_error e;

/* A path inside this test's own folder. */
static const char *in (const char *name) {
  static char paths[4][PATH_MAX];
  static int turn;
  char *path = paths[turn++ % 4];
  snprintf (path, PATH_MAX, "%s/%s", folder, name);
  return path;
}

static int entries (void) {
  DIR *d = opendir (folder);
  int n = 0;
  while (readdir (d)) n++;
  closedir (d);
  return n - 2;
}

static void ok (int status) {
  ck_assert_msg (status == 0, "%s", e.text);
}

START_TEST (what_is_written_is_read) {
  static const char data[] = "one\0two\n";
  char *back;
  size_t n = 0;
  own_folder (folder);
  ok (sl_file_write (in ("a"), data, sizeof data, &e));
  back = sl_file_read (in ("a"), 0, &n, &e);
  ck_assert_msg (back != NULL, "%s", e.text);
  ck_assert_uint_eq (n, sizeof data);
  ck_assert_mem_eq (back, data, n);
  ck_assert_int_eq (back[n], 0);
  sl_free (back);
  ok (sl_file_write (in ("a"), NULL, 0, &e)); /* replaced by nothing */
  back = sl_file_read (in ("a"), 1, &n, &e);
  ck_assert_msg (back != NULL, "%s", e.text);
  ck_assert_uint_eq (n, 0);
  ck_assert_str_eq (back, "");
  sl_free (back);
  ck_assert_int_eq (entries (), 1);
  own_remove (folder);
}
END_TEST

START_TEST (the_umask_decides_the_mode) {
  struct stat info;
  own_folder (folder);
  umask (027);
  ok (sl_file_write (in ("a"), "x", 1, &e));
  ck_assert_int_eq (stat (in ("a"), &info), 0);
  ck_assert_int_eq (info.st_mode & 0777, 0640);
  own_remove (folder);
}
END_TEST

START_TEST (a_failed_write_changes_nothing) {
  const struct rlimit small = { 1000, RLIM_INFINITY };
  char *data = sl_alloc (5000, 1), *back;
  size_t n;
  own_folder (folder);
  ok (sl_file_write (in ("a"), "old", 3, &e));
  signal (SIGXFSZ, SIG_IGN);
  ck_assert_int_eq (setrlimit (RLIMIT_FSIZE, &small), 0);
  ck_assert_int_eq (sl_file_write (in ("a"), data, 5000, &e), -1);
  ck_assert_ptr_nonnull (strstr (e.text, "/a: cannot write 5000 bytes: "));
  back = sl_file_read (in ("a"), 0, &n, &e);
  ck_assert_ptr_nonnull (back);
  ck_assert_str_eq (back, "old");
  ck_assert_int_eq (entries (), 1);
  sl_free (back);
  sl_free (data);
  own_remove (folder);
}
END_TEST

START_TEST (what_is_no_file_is_not_replaced) {
  own_folder (folder);
  ck_assert_int_eq (sl_file_write (folder, "x", 1, &e), -1);
  ck_assert_ptr_nonnull (strstr (e.text, "cannot write: it is a folder"));
  ck_assert_int_eq (mkfifo (in ("pipe"), 0600), 0);
  ck_assert_int_eq (sl_file_write (in ("pipe"), "x", 1, &e), -1);
  ck_assert_ptr_nonnull (strstr (e.text, "cannot write: it is not a file"));
  ck_assert_int_eq (sl_file_write (in ("no/a"), "x", 1, &e), -1);
  ck_assert_ptr_nonnull (strstr (e.text, "/no/a: cannot write: No such file"));
  ck_assert_int_eq (entries (), 1);
  own_remove (folder);
}
END_TEST

START_TEST (reading_keeps_to_the_limit) {
  size_t n = 99;
  char *back;
  own_folder (folder);
  ok (sl_file_write (in ("a"), "12345", 5, &e));
  ck_assert_ptr_null (sl_file_read (in ("a"), 4, &n, &e));
  ck_assert_ptr_nonnull (strstr (e.text, "it has more than 4 bytes"));
  back = sl_file_read (in ("a"), 5, &n, &e);
  ck_assert_msg (back != NULL, "%s", e.text);
  ck_assert_uint_eq (n, 5);
  sl_free (back);
  ck_assert_ptr_null (sl_stream_read ("/dev/zero", 100000, &n, &e));
  ck_assert_ptr_nonnull (strstr (e.text, "it has more than 100000 bytes"));
  ck_assert_ptr_null (sl_file_read (folder, 0, &n, &e));
  ck_assert_ptr_nonnull (strstr (e.text, "cannot read: it is a folder"));
  ck_assert_ptr_null (sl_file_read (in ("no"), 0, &n, &e));
  ck_assert_ptr_nonnull (strstr (e.text, "/no: cannot read: No such file"));
  own_remove (folder);
}
END_TEST

/* A pipe does not say how long it is. */
START_TEST (a_pipe_is_read_to_its_end) {
  enum { N = 300000 };
  char *data = sl_alloc (N, 1), *back;
  size_t n;
  FILE *from;
  char path[64];
  own_folder (folder);
  for (int i = 0; i < N; i++) data[i] = (char)(i % 251);
  ok (sl_file_write (in ("a"), data, N, &e));
  snprintf (path, sizeof path, "cat %.50s/a", folder);
  from = popen (path, "r");
  snprintf (path, sizeof path, "/dev/fd/%d", fileno (from));
  ck_assert_ptr_null (sl_file_read (path, 0, &n, &e));
  ck_assert_ptr_nonnull (strstr (e.text, "cannot read: it is not a file"));
  back = sl_stream_read (path, 0, &n, &e);
  ck_assert_msg (back != NULL, "%s", e.text);
  ck_assert_uint_eq (n, N);
  ck_assert_mem_eq (back, data, N);
  pclose (from);
  sl_free (back);
  sl_free (data);
  own_remove (folder);
}
END_TEST

START_TEST (what_is_no_file_is_refused_at_once) {
  char digits[65];
  size_t n;
  own_folder (folder);
  ok (mkfifo (in ("pipe"), 0600)); /* nobody will write to it */
  ok (symlink ("/dev/zero", in ("zeros")));
  for (int i = 0; i < 3; i++) {
    const char *path = i == 0 ? in ("pipe") : i == 1 ? in ("zeros") : folder;
    ck_assert_ptr_null (sl_file_read (path, 0, &n, &e));
    ck_assert_ptr_nonnull (
        strstr (e.text, i < 2 ? "it is not a file" : "it is a folder"));
    ck_assert_int_eq (sl_file_sha256 (path, digits, &e), -1);
  }
  own_remove (folder);
}
END_TEST

START_TEST (no_memory_is_an_error) {
  size_t n, live;
  own_folder (folder);
  ok (sl_file_write (in ("a"), "12345", 5, &e));
  live = sl_alloc_live ();
  sl_alloc_fail_after (0);
  ck_assert_ptr_null (sl_file_read (in ("a"), 0, &n, &e));
  ck_assert_ptr_nonnull (strstr (e.text, "no memory"));
  sl_alloc_fail_after (2);
  ck_assert_ptr_null (sl_stream_read ("/dev/zero", 0, &n, &e));
  ck_assert_ptr_nonnull (strstr (e.text, "no memory"));
  sl_alloc_fail_after (-1);
  ck_assert_uint_eq (sl_alloc_live (), live);
  own_remove (folder);
}
END_TEST

START_TEST (folders_are_made_with_their_parents) {
  own_folder (folder);
  ok (sl_make_folders (in ("a/b//c/"), &e));
  ck_assert (sl_folder_exists (in ("a/b/c")));
  ck_assert (!sl_file_exists (in ("a/b/c")));
  ok (sl_make_folders (in ("a/b"), &e));
  ok (sl_file_write (in ("f"), "x", 1, &e));
  ck_assert (sl_file_exists (in ("f")));
  ck_assert (!sl_folder_exists (in ("f")));
  ck_assert_int_eq (sl_make_folders (in ("f/g"), &e), -1);
  ck_assert_ptr_nonnull (strstr (e.text, "/f/g: cannot make the folder "));
  ck_assert_int_eq (sl_make_folders (in ("f"), &e), -1);
  ck_assert_int_eq (sl_make_folders ("", &e), -1);
  /* why it cannot be made, not why it is no folder */
  ck_assert_int_eq (symlink (in ("nowhere"), in ("link")), 0);
  ck_assert_int_eq (sl_make_folders (in ("link"), &e), -1);
  ck_assert_ptr_nonnull (strstr (e.text, "/link: File exists"));
  ck_assert_int_eq (chdir (folder), 0);
  ok (sl_make_folders ("r/s", &e));
  ck_assert (sl_folder_exists (in ("r/s")));
  own_remove (folder);
}
END_TEST

/* FIPS 180-4, one block and two; and more than one part of the reader. */
START_TEST (hashes_are_the_published_ones) {
  static const struct {
    const char *text, *want;
  } cases[] = {
    { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
    { "abc",
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
  };
  char digits[65], *million = sl_alloc (1000000, 1);
  own_folder (folder);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ok (sl_file_write (in ("a"), cases[i].text, strlen (cases[i].text), &e));
    ok (sl_file_sha256 (in ("a"), digits, &e));
    ck_assert_str_eq (digits, cases[i].want);
  }
  memset (million, 'a', 1000000);
  ok (sl_file_write (in ("a"), million, 1000000, &e));
  ok (sl_file_sha256 (in ("a"), digits, &e));
  ck_assert_str_eq (
      digits,
      "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  ck_assert_int_eq (sl_file_sha256 (in ("no"), digits, &e), -1);
  ck_assert_int_eq (sl_file_sha256 (folder, digits, &e), -1);
  sl_free (million);
  own_remove (folder);
}
END_TEST

START_TEST (places_are_found) {
  char here[PATH_MAX], path[PATH_MAX], want[PATH_MAX];
  ok (sl_executable_folder (here, sizeof here, &e));
  snprintf (path, sizeof path, "%.4000s/check_file", here);
  ck_assert (sl_file_exists (path));
  ck_assert_int_eq (sl_executable_folder (path, 3, &e), -1);
  ck_assert_ptr_nonnull (strstr (e.text, "longer than 3 bytes"));
  ok (sl_plugin_folder (path, sizeof path, &e));
  *strrchr (here, '/') = '\0';
  snprintf (want, sizeof want, "%.4000s/lib/sinklab/plugins", here);
  ck_assert_str_eq (path, want);
}
END_TEST

START_TEST (the_environment_moves_the_scripts) {
  char path[PATH_MAX];
  own_folder (folder);
  setenv ("SINKLAB_SCRIPTS", folder, 1);
  ok (sl_data_folder (path, sizeof path, &e));
  ck_assert_str_eq (path, folder);
  setenv ("SINKLAB_SCRIPTS", in ("no"), 1);
  ck_assert_int_eq (sl_data_folder (path, sizeof path, &e), -1);
  ck_assert_ptr_nonnull (strstr (e.text, "/no: no such folder"));
  unsetenv ("SINKLAB_SCRIPTS");
  if (sl_folder_exists (SINKLAB_TEST_SOURCE "/../scripts")) {
    ok (sl_data_folder (path, sizeof path, &e));
    ck_assert_ptr_nonnull (strstr (path, "/scripts"));
    ck_assert (sl_folder_exists (path));
  }
  own_remove (folder);
}
END_TEST

SUITE_MAIN ("file", what_is_written_is_read, the_umask_decides_the_mode,
            a_failed_write_changes_nothing, what_is_no_file_is_not_replaced,
            reading_keeps_to_the_limit, a_pipe_is_read_to_its_end,
            what_is_no_file_is_refused_at_once, no_memory_is_an_error,
            folders_are_made_with_their_parents, hashes_are_the_published_ones,
            places_are_found, the_environment_moves_the_scripts)

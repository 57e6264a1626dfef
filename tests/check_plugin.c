/* check_plugin.c - finding, loading and refusing plugins. */
#include "attention/mechanism.h"
#include "base/file.h"
#include "base/memory.h"
#include "support/files.h"
#include "support/suite.h"
#ifdef __ELF__
#include <link.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BAD SINKLAB_TEST_BUILD "/tests/bad/"
#define GOOD SINKLAB_TEST_BUILD "/tests/good/"
#define BUILT SINKLAB_TEST_BUILD "/plugins"

/* The plugin as a path or name, which must load. */
static const sl_loaded *load (const char *name) {
  sl_error e = { "" };
  const sl_loaded *l = sl_plugin_load (name, &e);
  ck_assert_msg (l != NULL, "%s: %s", name, e.text);
  return l;
}

/* The sentence with which 'name' is refused. */
static const char *refused (const char *name) {
  static sl_error e;
  e.text[0] = '\0';
  ck_assert_msg (sl_plugin_load (name, &e) == NULL, "%s was loaded", name);
  return e.text;
}

static void expect (const char *got, const char *part) {
  ck_assert_msg (strstr (got, part) != NULL, "got '%s', want '%s' in it", got,
                 part);
}

static void search_in (const char *path) {
  setenv ("SINKLAB_PLUGIN_PATH", path, 1);
}

/* A fresh folder to stand in, so that ./plugins is ours alone. */
static const char *fresh_folder (void) {
  static char folder[OWN_PATH];
  own_folder (folder);
  ck_assert (chdir (folder) == 0);
  return folder;
}

static void remove_folder (const char *folder) {
  ck_assert (chdir ("/") == 0);
  own_remove (folder);
}

static void copy (const char *from, const char *to, size_t most) {
  size_t n;
  sl_error e = { "" };
  char *text = sl_file_read (from, 0, &n, &e);
  ck_assert_msg (text != NULL, "%s", e.text);
  ck_assert (sl_file_write (to, text, n < most ? n : most, &e) == 0);
  sl_free (text);
}

START_TEST (loads_in_both_precisions) {
  const sl_loaded *l = load (BUILT "/softmax.so");
  ck_assert_str_eq (l->name, "softmax");
  ck_assert_str_eq (l->plugin[SL_F32]->name, "softmax");
  ck_assert_str_eq (l->plugin[SL_F64]->name, "softmax");
  ck_assert (l->plugin[SL_F32] != l->plugin[SL_F64]);
  ck_assert (l->plugin[SL_F64]->row != NULL);
  ck_assert_int_eq (l->path[0], '/');
}
END_TEST

START_TEST (hash_is_that_of_the_file) {
  char digits[65];
  sl_error e = { "" };
  const sl_loaded *l = load (BUILT "/relu.so");
  ck_assert (sl_file_sha256 (BUILT "/relu.so", digits, &e) == 0);
  ck_assert_str_eq (l->hash, digits);
}
END_TEST

START_TEST (twice_is_the_same_handle) {
  const sl_loaded *l = load (BUILT "/softmax.so");
  ck_assert (load (BUILT "/../plugins/softmax.so") == l);
  search_in (BUILT);
  ck_assert (load ("softmax") == l);
}
END_TEST

START_TEST (finds_along_the_path) {
  const char *folder = fresh_folder ();
  char path[256], want[256];
  sl_error e = { "" };
  ck_assert (sl_make_folders ("plugins", &e) == 0);
  ck_assert (sl_make_folders ("later", &e) == 0);
  copy (BUILT "/softmax.so", "later/softmax.so", (size_t)-1);
  copy (BUILT "/relu.so", "later/relu.so", (size_t)-1);
  copy (BUILT "/relu.so", "plugins/relu.so", (size_t)-1);
  snprintf (path, sizeof path, "%s/nowhere::%s/later", folder, folder);
  search_in (path);
  snprintf (want, sizeof want, "%s/later/softmax.so", folder);
  ck_assert_str_eq (load ("softmax")->path, want);
  snprintf (want, sizeof want, "%s/plugins/relu.so", folder);
  ck_assert_str_eq (load ("relu")->path, want); /* ./plugins comes first */
  remove_folder (folder);
}
END_TEST

START_TEST (lists_in_search_order) {
  const char *folder = fresh_folder ();
  char path[256];
  sl_found *found;
  sl_error e = { "" };
  int n, later_relu = 0;
  ck_assert (sl_make_folders ("plugins", &e) == 0);
  ck_assert (sl_make_folders ("later", &e) == 0);
  ck_assert (sl_make_folders ("later/folder.so", &e) == 0);
  copy (BUILT "/softmax.so", "plugins/softmax.so", (size_t)-1);
  copy (BUILT "/relu.so", "plugins/relu.so", (size_t)-1);
  copy (BUILT "/relu.so", "later/relu.so", (size_t)-1);
  ck_assert (sl_file_write ("later/notes.txt", "x", 1, &e) == 0);
  snprintf (path, sizeof path, "%s/later:%s/plugins", folder, folder);
  search_in (path);
  n = sl_plugin_list (&found, &e);
  ck_assert_msg (n >= 3, "%d plugins: %s", n, e.text);
  ck_assert_str_eq (found[0].name, "relu");
  ck_assert_str_eq (found[1].name, "softmax");
  ck_assert (!found[0].shadowed && !found[1].shadowed);
  ck_assert_str_eq (found[2].name, "relu");
  ck_assert (found[2].shadowed);
  for (int i = 0; i < n; i++) {
    later_relu += strstr (found[i].path, "later/relu.so") != NULL;
    ck_assert_str_ne (found[i].name, "folder");
    ck_assert_str_ne (found[i].name, "notes");
  }
  ck_assert_int_eq (later_relu, 1);
  sl_free (found);
  remove_folder (folder);
}
END_TEST

START_TEST (unknown_name_gets_nearest) {
  const char *text;
  search_in (BUILT);
  text = refused ("rleu");
  expect (text,
          "no plugin 'rleu' (did you mean 'relu'?); looked for rleu.so in "
          "./plugins, " BUILT);
  text = refused ("zzzzzzzzzzzz");
  ck_assert_msg (strstr (text, "did you mean") == NULL, "%s", text);
}
END_TEST

START_TEST (bad_names) {
  char name[2000];
  memset (name, 'x', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  expect (refused (""), "the name of a plugin is empty");
  expect (refused (name), "is longer than 1023 bytes");
  name[200] = '\0';
  expect (refused (name), "no plugin 'xxx");
  expect (refused ("/nonexistent/x.so"), "/nonexistent/x.so: no such plugin");
  expect (refused ("/tmp/"), "not a file");
}
END_TEST

START_TEST (file_name_must_be_the_name) {
  const char *folder = fresh_folder ();
  copy (BUILT "/relu.so", "other.so", (size_t)-1);
  expect (refused ("./other.so"),
          "other.so: calls itself 'relu'; expected 'other', like the file");
  remove_folder (folder);
}
END_TEST

/* Every prefix of a plugin is refused, and does not kill the process. */
START_TEST (truncated) {
  const char *folder = fresh_folder ();
  static const size_t sizes[] = { 0, 1, 4, 63, 64, 200, 1000, 5000, 12000 };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    char name[32];
    snprintf (name, sizeof name, "./cut%zu.so", sizes[i]);
    copy (BUILT "/relu.so", name, sizes[i]);
    expect (refused (name), name + 2);
  }
  remove_folder (folder);
}
END_TEST

#ifdef __ELF__
/* A whole file whose tables point nowhere kills no process but a child's. */
START_TEST (damaged) {
  const char *folder = fresh_folder ();
  sl_error e = { "" };
  ElfW (Ehdr) header;
  size_t size, tables = 0;
  char *text = sl_file_read (BUILT "/relu.so", 0, &size, &e);
  ck_assert_msg (text != NULL, "%s", e.text);
  memcpy (&header, text, sizeof header);
  for (size_t i = 0; i < header.e_phnum; i++) {
    ElfW (Phdr) segment;
    memcpy (&segment, text + header.e_phoff + i * sizeof segment,
            sizeof segment);
    if (segment.p_type != PT_DYNAMIC) continue;
    for (size_t k = 0; k < segment.p_filesz / sizeof (ElfW (Dyn)); k++) {
      char *at = text + segment.p_offset + k * sizeof (ElfW (Dyn));
      ElfW (Dyn) entry;
      memcpy (&entry, at, sizeof entry);
      if (entry.d_tag != DT_STRTAB && entry.d_tag != DT_SYMTAB) continue;
      entry.d_un.d_ptr = (ElfW (Addr))1 << (sizeof entry.d_tag * 8 - 18);
      memcpy (at, &entry, sizeof entry);
      tables++;
    }
  }
  ck_assert_uint_eq (tables, 2);
  ck_assert (sl_file_write ("relu.so", text, size, &e) == 0);
  expect (refused ("./relu.so"), "relu.so: ");
  expect (refused ("./relu.so"), "loading it ends the process");
  sl_free (text);
  remove_folder (folder);
}
END_TEST
#endif

START_TEST (not_a_plugin) {
  const char *folder = fresh_folder ();
  sl_error e = { "" };
  ck_assert (sl_file_write ("text.so", "hello", 5, &e) == 0);
  expect (refused ("./text.so"), "text.so: not a shared object");
  remove_folder (folder);
}
END_TEST

/* Turn the bits of the last byte, where it lies. */
static void turn_last_byte (const char *path) {
  FILE *f = fopen (path, "r+b");
  int c;
  ck_assert (f != NULL && fseek (f, -1, SEEK_END) == 0);
  c = fgetc (f);
  ck_assert (fseek (f, -1, SEEK_END) == 0 && fputc (c ^ 255, f) != EOF);
  ck_assert (fclose (f) == 0);
}

START_TEST (changed_on_disk) {
  const char *folder = fresh_folder ();
  const sl_loaded *l;
  size_t n;
  sl_error e = { "" };
  char *text;
  copy (BUILT "/relu.so", "relu.so", (size_t)-1);
  l = load ("./relu.so");
  turn_last_byte ("relu.so"); /* as long, as old to the second */
  expect (refused ("./relu.so"), "changed since it was loaded");
  turn_last_byte ("relu.so");
  ck_assert (load ("./relu.so") == l);
  copy (BUILT "/relu.so", "relu.so", (size_t)-1); /* the same bytes */
  ck_assert (load ("./relu.so") == l);
  text = sl_file_read ("relu.so", 0, &n, &e);
  ck_assert (text != NULL);
  ck_assert (sl_file_write ("relu.so", text, n - 1, &e) == 0);
  sl_free (text);
  expect (refused ("./relu.so"), "changed since it was loaded");
  ck_assert (unlink ("relu.so") == 0);
  ck_assert (mkdir ("relu.so", 0700) == 0);
  expect (refused ("./relu.so"), "it is not a file");
  ck_assert (rmdir ("relu.so") == 0);
  remove_folder (folder);
}
END_TEST

START_TEST (gate_and_mix_load) {
  ck_assert (load (GOOD "gate_shape.so")->plugin[SL_F64]->gate != NULL);
  ck_assert (load (GOOD "mixer_shape.so")->plugin[SL_F64]->mixer != NULL);
}
END_TEST

static const struct {
  const char *file, *sentence;
} bad[] = {
  { "major", "major.so: built for ABI 2.0, this sinklab speaks 1.0" },
  { "minor", "minor.so: built for ABI 1.1, this sinklab speaks 1.0" },
  { "size", "size.so: its sl_plugin has 112 bytes, that of ABI 1.0 has 120" },
  { "other_name", "calls itself 'another'; expected 'other_name'" },
  { "no_name", "no_name.so: its name is NULL" },
  { "no_doc", "no_doc.so: its doc is NULL" },
  { "properties", "declares properties 0x40, which ABI 1.0 does not define" },
  { "causal_only", "a row declares SL_CAUSAL_ONLY, which is for a mixer" },
  { "no_shape",
    "has 0 of the shapes row, gate and mixer; expected exactly one" },
  { "two_shapes", "has 2 of the shapes" },
  { "half_row", "half_row.so: its row has no forward or backward" },
  { "half_block", "half_block.so: its block has no forward or backward" },
  { "block_alone", "block_alone.so: a gate with a block; only a row has one" },
  { "row_input", "row_input.so: a row with 1 inputs; expected none" },
  { "option_name", "option 1 has the name '9x'; expected a letter" },
  { "option_twice", "two options are called 'whole'" },
  { "option_type", "option 'whole' has the unknown type 4" },
  { "option_outside", "option 'whole' lies at offset 16, outside its config" },
  { "option_aligned",
    "option 'number' lies at offset 4, which is not aligned" },
  { "option_overlap", "options 'whole' and 'other' lie on one another" },
  { "option_default", "option 'whole' has the default 10, outside 0..9" },
  { "option_fraction", "has the default 0.5, not a whole number" },
  { "option_range", "option 'number' has the empty range 9..0" },
  { "option_int_range", "option 'whole' ranges over 0..1e+12, which no int" },
  { "option_no_choices", "option 'whole' has no choices" },
  { "option_choice_default", "option 'whole' has the default 2, outside 0..1" },
  { "option_endless", "more than 256 options; is the list ended by {0}?" },
  { "config_size", "its config has 1048576 bytes; at most 65536 are allowed" },
  { "param_width", "parameter 'p' has the width 0 * d_head + 0" },
  { "param_init", "parameter 'p' has the unknown init 4" },
  { "param_scale", "parameter 'p' has the scale -1" },
  { "param_twice", "two parameters are called 'p'" },
  { "differ_version", "its two precisions differ in 'version'" },
  { "differ_option", "its two precisions differ in 'whole'" },
  { "only_f32", "only_f32.so: has no symbol sinklab_plugin_f64" },
  { "only_f64", "only_f64.so: has no symbol sinklab_plugin_f32" },
};

START_TEST (refuses) {
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char path[512];
    snprintf (path, sizeof path, BAD "%s.so", bad[i].file);
    expect (refused (path), bad[i].sentence);
  }
}
END_TEST

#ifdef __ELF__
#define DAMAGED damaged,
#else
#define DAMAGED
#endif
SUITE_MAIN ("plugin", loads_in_both_precisions, hash_is_that_of_the_file,
            twice_is_the_same_handle, finds_along_the_path,
            lists_in_search_order, unknown_name_gets_nearest, bad_names,
            file_name_must_be_the_name, truncated, DAMAGED not_a_plugin,
            changed_on_disk, gate_and_mix_load, refuses)

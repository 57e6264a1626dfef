/* replay.c - a fuzz target run over the files of folders, without a fuzzer:
** what once was found stays mended. */
#include "base/file.h"
#include "base/memory.h"
#include "fuzz/fuzz.h"
#include <dirent.h>
#include <stdio.h>

/* Every file of a folder, in memory of its own size; returns how many. */
static int replay (const char *folder) {
  DIR *list = opendir (folder);
  const struct dirent *entry;
  int files = 0;
  while (list != NULL && (entry = readdir (list)) != NULL) {
    char path[4096];
    size_t n;
    char *data;
    sl_error e;
    if (*entry->d_name == '.') continue;
    snprintf (path, sizeof path, "%s/%s", folder, entry->d_name);
    data = sl_file_read (path, 0, &n, &e);
    if (data == NULL) {
      fprintf (stderr, "%s\n", e.text);
      continue;
    }
    printf ("%s\n", path);
    fflush (stdout); /* the last line names the one that fails */
    LLVMFuzzerTestOneInput ((const uint8_t *)data, n);
    sl_free (data);
    files++;
  }
  if (list != NULL) closedir (list);
  return files;
}

int main (int argc, char **argv) {
  int files = 0;
  for (int i = 1; i < argc; i++) files += replay (argv[i]);
  printf ("%d files\n", files);
  return files > 0 ? 0 : 1;
}

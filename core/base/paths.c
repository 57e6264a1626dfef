/* paths.c - folders of the executable, its scripts and its plugins. */
#include "base/file.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

/* Copy 'from' to path; -1 and a sentence about 'what' if it does not fit. */
static int put (char *path, size_t size, const char *from, const char *what,
                sl_error *e) {
  size_t n = strlen (from);
  if (n >= size)
    return sl_fail (e, "%s: the path is longer than %zu bytes", what, size);
  memcpy (path, from, n + 1);
  return 0;
}

/* The file name of the executable, links resolved, in a buffer of PATH_MAX. */
static int executable (char *file, sl_error *e) {
#ifdef __APPLE__
  char raw[PATH_MAX];
  uint32_t size = sizeof raw;
  if (_NSGetExecutablePath (raw, &size) == 0 && realpath (raw, file)) return 0;
#else
  if (realpath ("/proc/self/exe", file)) return 0;
#endif
  return sl_fail (e, "cannot tell where this program is: %s", strerror (errno));
}

/* Set by sl_set_program_folder; empty: the executable's. */
static char program_folder[PATH_MAX];

int sl_set_program_folder (const char *folder, sl_error *e) {
  return put (program_folder, sizeof program_folder, folder,
              "folder of the program", e);
}

int sl_executable_file (char *path, size_t size, sl_error *e) {
  char file[PATH_MAX];
  if (*program_folder) {
    if ((size_t)snprintf (path, size, "%s/sinklab", program_folder) < size)
      return 0;
    return sl_fail (e, "path of the program: longer than %zu bytes", size);
  }
  if (executable (file, e)) return -1;
  return put (path, size, file, "path of the program", e);
}

int sl_executable_folder (char *path, size_t size, sl_error *e) {
  char file[PATH_MAX];
  if (*program_folder)
    return put (path, size, program_folder, "folder of the program", e);
  if (executable (file, e)) return -1;
  *strrchr (file, '/') = '\0';
  return put (path, size, file, "folder of the program", e);
}

/* <folder above the executable's>/tail */
static int beside_bin (char *path, size_t size, const char *tail, sl_error *e) {
  char folder[PATH_MAX], whole[PATH_MAX + 64];
  if (sl_executable_folder (folder, sizeof folder, e)) return -1;
  if (*folder) *strrchr (folder, '/') = '\0';
  snprintf (whole, sizeof whole, "%s/%s", folder, tail);
  return put (path, size, whole, tail, e);
}

int sl_data_folder (char *path, size_t size, sl_error *e) {
  const char *said = getenv ("SINKLAB_SCRIPTS");
  if (said && *said) {
    if (!sl_folder_exists (said))
      return sl_fail (e, "SINKLAB_SCRIPTS=%s: no such folder", said);
    return put (path, size, said, "SINKLAB_SCRIPTS", e);
  }
  if (beside_bin (path, size, "share/sinklab/scripts", e)) return -1;
  if (sl_folder_exists (path)) return 0;
  if (sl_folder_exists (SINKLAB_SOURCE_DIR "/scripts"))
    return put (path, size, SINKLAB_SOURCE_DIR "/scripts", "scripts", e);
  return sl_fail (e,
                  "the folder of scripts is neither %s nor %s; "
                  "try: SINKLAB_SCRIPTS=FOLDER",
                  path, SINKLAB_SOURCE_DIR "/scripts");
}

int sl_plugin_folder (char *path, size_t size, sl_error *e) {
  return beside_bin (path, size, "lib/sinklab/plugins", e);
}

/* file.h - files that are written whole or not at all; folders; hashes. */
#ifndef SL_FILE_H
#define SL_FILE_H
#include "base/error.h"
#include <stddef.h>

/* Write n bytes to 'path' by way of a temporary file beside it, fsync and rename:
** a reader sees the old content or the new, never a part. */
int sl_file_write (const char *path, const void *data, size_t n, sl_error *e);

/* The whole file in memory with a NUL after its last byte (free with sl_free),
** its size in *n. Refuses folders and files over 'limit' bytes (0: no limit). */
char *sl_file_read (const char *path, size_t limit, size_t *n, sl_error *e);

/* Make a folder and its parents; an existing folder is no error. */
int sl_make_folders (const char *path, sl_error *e);

int sl_file_exists (const char *path);

/* The folder of the running executable, without a slash at its end. */
int sl_executable_folder (char *path, size_t size, sl_error *e);

/* SHA-256 of a file as 64 lower-case hexadecimal digits and a NUL. */
int sl_file_sha256 (const char *path, char digits[65], sl_error *e);
#endif

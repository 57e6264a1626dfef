/* file.h - files that are written whole or not at all; folders; hashes. */
#ifndef SL_FILE_H
#define SL_FILE_H
#include "base/error.h"
#include <stddef.h>

/* Write n bytes to 'path' by way of a temporary file beside it, fsync and
** rename: a reader sees the old content or the new, never a part, also after a
** crash. The mode is 0666 without the umask. Refuses to replace anything but a
** file (a folder, a device). On failure 'path' is as before and nothing is left
** beside. */
int sl_file_write (const char *path, const void *data, size_t n, sl_error *e);

/* For a library that writes files by their names: an empty file beside 'path',
** its name in 'name'; and its content moved to 'path', durably. When either
** fails nothing is left beside 'path', which is as before. */
int sl_file_beside (const char *path, char *name, size_t size, sl_error *e);
int sl_file_replace (const char *name, const char *path, sl_error *e);

/* Open a regular file for reading: its descriptor, its size in *size. -1 and a
** sentence for anything else, without waiting for the writer of a pipe. */
int sl_open_to_read (const char *path, size_t *size, sl_error *e);

/* The whole file in memory with a NUL after its last byte (free with sl_free),
** its size in *n. Refuses anything but regular files, and files over 'limit' bytes
** (0: no limit). */
char *sl_file_read (const char *path, size_t limit, size_t *n, sl_error *e);

/* The same, also of a pipe or a device, to its end. */
char *sl_stream_read (const char *path, size_t limit, size_t *n, sl_error *e);

/* Make a folder and its parents; an existing folder is no error. */
int sl_make_folders (const char *path, sl_error *e);

/* Make one folder: 1 if it is new, 0 if there is something of this name
** already, -1 and a sentence otherwise. Of several that ask for the same name
** one gets 1. */
int sl_make_folder (const char *path, sl_error *e);

/* A text that changes when the file is written again (size, inode, time of
** change), of at most 'size' bytes (80 suffice). -1 and a sentence if it is no
** regular file. */
int sl_file_stamp (const char *path, char *stamp, size_t size, sl_error *e);

/* 1 or 0, links followed: path exists and is no folder; is a folder. */
int sl_file_exists (const char *path);
int sl_folder_exists (const char *path);

/* The sinklab executable, links resolved: the running one, or that in the
** folder given to sl_set_program_folder. */
int sl_executable_file (char *path, size_t size, sl_error *e);

/* Its folder, without a slash at its end. */
int sl_executable_folder (char *path, size_t size, sl_error *e);

/* From now on 'folder' is the executable's: for sinklab inside another program.
** Call before threads start. */
int sl_set_program_folder (const char *folder, sl_error *e);

/* The folder of the Lua files: the environment variable SINKLAB_SCRIPTS if it
** is set, else ../share/sinklab/scripts seen from the executable (installed),
** else scripts/ of the source tree that this was built from. -1 if none
** exists. */
int sl_data_folder (char *path, size_t size, sl_error *e);

/* The folder of installed plugins: ../lib/sinklab/plugins seen from the
** executable. It need not exist. */
int sl_plugin_folder (char *path, size_t size, sl_error *e);

/* SHA-256 of n bytes, or of a file, as 64 lower-case hexadecimal digits and a
** NUL. */
void sl_sha256 (const void *data, size_t n, char digits[65]);
int sl_file_sha256 (const char *path, char digits[65], sl_error *e);
#endif

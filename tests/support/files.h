/* files.h - a file or a folder of a test's own. */
#ifndef FILES_H
#define FILES_H

enum { OWN_PATH = 64 };

/* A new empty file, or folder, below /tmp; its path into 'path'. */
void own_file (char path[OWN_PATH]);
void own_folder (char path[OWN_PATH]);

/* Remove it, which must still be there, with all that is in it. */
void own_remove (const char *path);

/* 'said' must be "PATH: WHY". */
void says_of_file (const char *said, const char *path, const char *why);
#endif

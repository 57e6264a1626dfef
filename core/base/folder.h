/* folder.h - folders that are removed whole, and locks that tell whether a
** process still works in one. */
#ifndef SL_FOLDER_H
#define SL_FOLDER_H
#include "base/error.h"

/* Remove a file, or a folder with everything in it. Symbolic links are removed
** and never followed, also where somebody puts one in place of a folder
** meanwhile: every step goes by the descriptor of the folder above, except for
** 'path' itself, whose own folder is looked up by name. A missing 'path' is no
** error. On failure what is left stays, and the sentence names the first entry
** that could not be removed. */
int sl_remove_tree (const char *path, sl_error *e);

/* The lock of a folder is an flock on the file .lock in it, which the system
** releases when the process ends, however it ends. */
#define SL_LOCK_FILE ".lock"

/* Take the lock of a folder: its descriptor, for sl_folder_unlock. -1 and a
** sentence if it cannot be taken; then *held is 1 if another descriptor, of
** this process or another, has it, else 0. Children of this process do not
** inherit the descriptor through exec. */
int sl_folder_lock (const char *folder, int *held, sl_error *e);

/* Release the lock and remove its file. */
void sl_folder_unlock (const char *folder, int lock);

/* 1 if somebody, this process included, has the lock of the folder, else 0. */
int sl_folder_locked (const char *folder);
#endif

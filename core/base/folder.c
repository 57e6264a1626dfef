/* folder.c - removing folders without following links; locks of folders. */
#include "base/folder.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Folders in folders that are entered: each level holds a descriptor open. */
enum { DEEPEST = 200 };

static int cannot_remove (const char *name, sl_error *e) {
  return sl_fail (e, "cannot remove %s: %s", name, strerror (errno));
}

static int remove_entry (int parent, const char *name, int level, sl_error *e);

/* Remove the entries of the descriptor's folder; the descriptor is closed. */
static int remove_content (int file, const char *name, int level, sl_error *e) {
  DIR *folder = fdopendir (file);
  const struct dirent *entry;
  int status = 0;
  if (!folder) {
    cannot_remove (name, e);
    close (file);
    return -1;
  }
  while (status == 0 && (errno = 0, entry = readdir (folder)))
    if (strcmp (entry->d_name, ".") != 0 && strcmp (entry->d_name, "..") != 0)
      status = remove_entry (dirfd (folder), entry->d_name, level + 1, e);
  if (status == 0 && errno) status = cannot_remove (name, e);
  closedir (folder);
  return status;
}

static int remove_entry (int parent, const char *name, int level, sl_error *e) {
  struct stat info;
  int file;
  if (fstatat (parent, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT ? 0 : cannot_remove (name, e);
  if (!S_ISDIR (info.st_mode)) {
    if (unlinkat (parent, name, 0) == 0 || errno == ENOENT) return 0;
    return cannot_remove (name, e);
  }
  if (level > DEEPEST)
    return sl_fail (e, "cannot remove %s: folders nested deeper than %d", name,
                    DEEPEST);
  file = openat (parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) return cannot_remove (name, e);
  if (remove_content (file, name, level, e) != 0)
    return sl_fail_within (e, "%s", name);
  if (unlinkat (parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return 0;
  return cannot_remove (name, e);
}

int sl_remove_tree (const char *path, sl_error *e) {
  return remove_entry (AT_FDCWD, path, 0, e);
}

/* Locks. */

static int lock_path (char *path, size_t size, const char *folder) {
  int n = snprintf (path, size, "%s/" SL_LOCK_FILE, folder);
  return n >= 0 && (size_t)n < size;
}

/* Whether the descriptor is of the file that the path names now: its former
** holder removes the file with the lock. */
static int is_current (int file, const char *path) {
  struct stat mine, named;
  return fstat (file, &mine) == 0 && lstat (path, &named) == 0 &&
         mine.st_dev == named.st_dev && mine.st_ino == named.st_ino;
}

int sl_folder_lock (const char *folder, int *held, sl_error *e) {
  const struct timespec pause = { .tv_nsec = 5000000 };
  char path[PATH_MAX];
  *held = 0;
  if (!lock_path (path, sizeof path, folder))
    return sl_fail (e, "%.200s: the path is too long", folder);
  /* sl_folder_locked holds the lock of a dead run for microseconds. */
  for (int tries = 0; tries < 20; tries++) {
    int file = open (path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file < 0) return sl_fail (e, "%s: %s", path, strerror (errno));
    if (flock (file, LOCK_EX | LOCK_NB) == 0) {
      if (is_current (file, path)) return file;
    } else if (errno != EWOULDBLOCK && errno != EINTR) {
      sl_fail (e, "%s: cannot lock: %s", path, strerror (errno));
      close (file);
      return -1;
    } else
      nanosleep (&pause, NULL);
    close (file);
  }
  *held = 1;
  return sl_fail (e, "%s: in use by another process", folder);
}

void sl_folder_unlock (const char *folder, int lock) {
  char path[PATH_MAX];
  if (lock < 0) return;
  if (lock_path (path, sizeof path, folder) && is_current (lock, path))
    unlink (path);
  close (lock);
}

int sl_folder_locked (const char *folder) {
  char path[PATH_MAX];
  int file, locked;
  if (!lock_path (path, sizeof path, folder)) return 0;
  file = open (path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return 0;
  locked = flock (file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close (file);
  return locked;
}

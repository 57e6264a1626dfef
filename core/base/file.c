/* file.c - reading and writing whole files, making folders, SHA-256. */
#include "base/file.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <nettle/sha2.h>
#include <nettle/version.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_all (int file, const char *data, size_t n) {
  while (n > 0) {
    ssize_t wrote = write (file, data, n);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return -1;
    data += wrote;
    n -= (size_t)wrote;
  }
  return 0;
}

/* read () that is not stopped by a signal. */
static ssize_t read_some (int file, void *data, size_t n) {
  ssize_t got;
  do got = read (file, data, n);
  while (got < 0 && errno == EINTR);
  return got;
}

/* A new file beside 'path' that nobody else has, its name in 'name'; -1 with
** errno set. open () with 0666 lets the umask decide about the mode, which
** mkstemp () does not. */
static int open_beside (const char *path, char *name, size_t size) {
  for (unsigned i = 0; i < 1000; i++) {
    int n = snprintf (name, size, "%s.%ld-%u.tmp", path, (long)getpid (), i);
    int file;
    if (n < 0 || (size_t)n >= size) {
      errno = ENAMETOOLONG;
      return -1;
    }
    file = open (name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

/* Make the new name durable, where the file system can. */
static void sync_folder (const char *path) {
  char folder[PATH_MAX];
  const char *slash = strrchr (path, '/');
  size_t n = slash ? (size_t)(slash - path) + 1 : 0;
  int file;
  if (n >= sizeof folder) return;
  memcpy (folder, path, n);
  folder[n] = '\0';
  file = open (n ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return;
  fsync (file);
  close (file);
}

/* The descriptor of a new file beside 'path', which is a file or nothing. */
static int begin_beside (const char *path, char *name, size_t size,
                         sl_error *e) {
  struct stat info;
  int file;
  if (stat (path, &info) == 0 && !S_ISREG (info.st_mode))
    return sl_fail (e, "%s: cannot write: it is %s", path,
                    S_ISDIR (info.st_mode) ? "a folder" : "not a file");
  file = open_beside (path, name, size);
  if (file < 0)
    return sl_fail (e, "%s: cannot write: %s", path, strerror (errno));
  return file;
}

int sl_file_beside (const char *path, char *name, size_t size, sl_error *e) {
  int file = begin_beside (path, name, size, e);
  if (file < 0) return -1;
  close (file);
  return 0;
}

int sl_file_replace (const char *name, const char *path, sl_error *e) {
  int file = open (name, O_RDONLY | O_CLOEXEC);
  int bad = file < 0 || fsync (file);
  if (file >= 0 && close (file)) bad = 1;
  if (bad || rename (name, path)) {
    sl_fail (e, "%s: cannot write: %s", path, strerror (errno));
    unlink (name);
    return -1;
  }
  sync_folder (path);
  return 0;
}

int sl_file_write (const char *path, const void *data, size_t n, sl_error *e) {
  char name[PATH_MAX];
  int file = begin_beside (path, name, sizeof name, e), bad;
  if (file < 0) return -1;
  bad = write_all (file, data, n) || fsync (file);
  if (bad) goto failed;
  bad = close (file);
  file = -1;
  if (bad || rename (name, path)) goto failed;
  sync_folder (path);
  return 0;
failed:
  sl_fail (e, "%s: cannot write %zu bytes: %s", path, n, strerror (errno));
  if (file >= 0) close (file);
  unlink (name);
  return -1;
}

/* sl_open_to_read; with 'streams' a pipe or a device will do (size 0). */
static int open_any (const char *path, int streams, size_t *size, sl_error *e) {
  struct stat info;
  int file = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0 || fstat (file, &info) != 0) {
    sl_fail (e, "%s: cannot read: %s", path, strerror (errno));
    if (file >= 0) close (file);
    return -1;
  }
  if (S_ISDIR (info.st_mode) || (!streams && !S_ISREG (info.st_mode))) {
    close (file);
    return sl_fail (e, "%s: cannot read: it is %s", path,
                    S_ISDIR (info.st_mode) ? "a folder" : "not a file");
  }
  *size = S_ISREG (info.st_mode) ? (size_t)info.st_size : 0;
  return file;
}

int sl_open_to_read (const char *path, size_t *size, sl_error *e) {
  return open_any (path, 0, size, e);
}

/* A block of 'size' bytes and one more with the n bytes of the old one, which
** is freed; NULL (and the old one freed) if there is no memory. */
static char *grow (char *old, size_t n, size_t size) {
  char *p = size < SSIZE_MAX ? sl_alloc (size + 1, 1) : NULL;
  if (p && n) memcpy (p, old, n);
  sl_free (old);
  return p;
}

static char *read_all (const char *path, int streams, size_t limit, size_t *n,
                       sl_error *e) {
  size_t size = 0, used = 0;
  char *data = NULL;
  ssize_t got = 0;
  int file = open_any (path, streams, &size, e);
  if (file < 0) return NULL;
  /* Read to the end rather than 'size' bytes: the file may be growing. */
  do {
    used += (size_t)got;
    if (limit && (used > limit || (!data && size > limit))) {
      sl_fail (e, "%s: cannot read: it has more than %zu bytes", path, limit);
      goto failed;
    }
    if (!data || used == size) {
      size = data ? 2 * size + 4096 : size + 1;
      data = grow (data, used, size);
      if (!data) {
        sl_fail (e, "%s: cannot read: no memory for %zu bytes", path, size);
        goto failed;
      }
    }
    do { /* a pipe may have no writer yet */
      if (streams && !sl_wait_to_read (file)) {
        sl_fail (e, "%s: cannot read: interrupted", path);
        goto failed;
      }
      got = read_some (file, data + used, size - used);
    } while (got < 0 && streams && errno == EAGAIN);
  } while (got > 0);
  if (got < 0) {
    sl_fail (e, "%s: cannot read: %s", path, strerror (errno));
    goto failed;
  }
  close (file);
  data[used] = '\0';
  *n = used;
  return data;
failed:
  sl_free (data);
  close (file);
  return NULL;
}

char *sl_file_read (const char *path, size_t limit, size_t *n, sl_error *e) {
  return read_all (path, 0, limit, n, e);
}

char *sl_stream_read (const char *path, size_t limit, size_t *n, sl_error *e) {
  return read_all (path, 1, limit, n, e);
}

int sl_make_folders (const char *path, sl_error *e) {
  char part[PATH_MAX];
  size_t n = strlen (path);
  if (n == 0 || n >= sizeof part)
    return sl_fail (e, "%.200s: cannot make the folder: %s", path,
                    strerror (n ? ENAMETOOLONG : ENOENT));
  memcpy (part, path, n + 1);
  for (size_t i = 1; i <= n; i++) {
    if (path[i] != '/' && path[i] != '\0') continue;
    part[i] = '\0';
    if (mkdir (part, 0777)) {
      const int code = errno; /* looking for the folder sets it again */
      if (!sl_folder_exists (part))
        return sl_fail (e, "%s: cannot make the folder %s: %s", path, part,
                        strerror (code));
    }
    part[i] = path[i];
  }
  return 0;
}

int sl_make_folder (const char *path, sl_error *e) {
  if (mkdir (path, 0777) == 0) return 1;
  if (errno == EEXIST) return 0;
  return sl_fail (e, "%s: cannot make the folder: %s", path, strerror (errno));
}

#ifdef __APPLE__
#define CHANGED st_mtimespec
#else
#define CHANGED st_mtim
#endif

int sl_file_stamp (const char *path, char *stamp, size_t size, sl_error *e) {
  struct stat info;
  if (stat (path, &info) != 0)
    return sl_fail (e, "%s: %s", path, strerror (errno));
  if (!S_ISREG (info.st_mode)) /* a pipe would hold whoever reads it */
    return sl_fail (e, "%s: it is not a file", path);
  snprintf (stamp, size, "%lld.%09ld %lld %llu", (long long)info.CHANGED.tv_sec,
            info.CHANGED.tv_nsec, (long long)info.st_size,
            (unsigned long long)info.st_ino);
  return 0;
}

int sl_file_exists (const char *path) {
  struct stat info;
  return stat (path, &info) == 0 && !S_ISDIR (info.st_mode);
}

int sl_folder_exists (const char *path) {
  struct stat info;
  return stat (path, &info) == 0 && S_ISDIR (info.st_mode);
}

static void digits_of (struct sha256_ctx *state, char digits[65]) {
  uint8_t digest[SHA256_DIGEST_SIZE];
#if NETTLE_VERSION_MAJOR >= 4
  sha256_digest (state, digest);
#else
  sha256_digest (state, sizeof digest, digest);
#endif
  for (size_t i = 0; i < sizeof digest; i++)
    snprintf (digits + 2 * i, 3, "%02x", digest[i]);
}

void sl_sha256 (const void *data, size_t n, char digits[65]) {
  struct sha256_ctx state;
  sha256_init (&state);
  sha256_update (&state, n, data);
  digits_of (&state, digits);
}

int sl_file_sha256 (const char *path, char digits[65], sl_error *e) {
  struct sha256_ctx state;
  uint8_t part[16384];
  ssize_t got;
  size_t size;
  int file = sl_open_to_read (path, &size, e);
  if (file < 0) return -1;
  sha256_init (&state);
  while ((got = read_some (file, part, sizeof part)) > 0)
    sha256_update (&state, (size_t)got, part);
  if (got < 0) sl_fail (e, "%s: cannot read: %s", path, strerror (errno));
  close (file);
  if (got < 0) return -1;
  digits_of (&state, digits);
  return 0;
}

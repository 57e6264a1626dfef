/* search.c - where plugins are looked for, and what lies there. */
#include "attention/plugins.h"
#include "base/file.h"
#include "base/memory.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct folder {
  char path[SL_PATH_SIZE];
  int shipped; /* its plugins come with sinklab */
} folder;

/* Whether two paths name the same folder. */
static int are_one (const char *one, const char *other) {
  struct stat a, b;
  return stat (one, &a) == 0 && stat (other, &b) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

/* Append a folder unless it was listed before, perhaps by another path: the
** same file must not shadow itself. Folders that do not exist stay, for
** messages. */
static int add_folder (folder *f, int *n, const char *path, size_t length,
                       int shipped, sl_error *e) {
  if (length == 0) return 0;
  if (length >= SL_PATH_SIZE)
    return sl_fail (e, "plugin folder '%.60s...' is longer than %d bytes", path,
                    SL_PATH_SIZE - 1);
  memcpy (f[*n].path, path, length);
  f[*n].path[length] = '\0';
  f[*n].shipped = shipped;
  for (int i = 0; i < *n; i++)
    if (are_one (f[i].path, f[*n].path)) {
      f[i].shipped |= shipped;
      return 0;
    }
  *n += 1;
  return 0;
}

/* The search path, in order, allocated; the caller frees. */
static folder *search_path (int *n, sl_error *e) {
  const char *list = getenv ("SINKLAB_PLUGIN_PATH");
  size_t count = 4;
  char beside[SL_PATH_SIZE], installed[SL_PATH_SIZE];
  folder *f;
  *n = 0;
  if (!list) list = "";
  for (const char *p = list; *p; p++) count += *p == ':';
  f = sl_alloc (count, sizeof *f);
  if (!f) {
    sl_fail (e, "no memory for the list of plugin folders");
    return NULL;
  }
  if (add_folder (f, n, "./plugins", 9, 0, e)) goto failed;
  while (*list) {
    size_t length = strcspn (list, ":");
    if (add_folder (f, n, list, length, 0, e)) goto failed;
    list += length + (list[length] == ':');
  }
  if (sl_executable_folder (beside, sizeof beside - 8, e)) goto failed;
  strcat (beside, "/plugins");
  if (add_folder (f, n, beside, strlen (beside), 1, e)) goto failed;
  if (sl_plugin_folder (installed, sizeof installed, e) ||
      add_folder (f, n, installed, strlen (installed), 1, e))
    goto failed;
  return f;
failed:
  sl_free (f);
  return NULL;
}

/* Any entry but a folder is found; the loader refuses it if it is no file. */
static int is_found (const char *path) {
  struct stat s;
  return stat (path, &s) == 0 && !S_ISDIR (s.st_mode);
}

/* Fill e for a name that no folder has. */
static int not_found (const char *name, const folder *f, int n, sl_error *e) {
  sl_found *found = NULL;
  const char **names = NULL;
  char where[640] = "";
  size_t used = 0;
  int count = sl_plugin_list (&found, NULL);
  if (count > 0) names = sl_alloc ((size_t)count, sizeof *names);
  for (int i = 0; names && i < count; i++) names[i] = found[i].name;
  for (int i = 0; i < n && used < sizeof where; i++)
    used += (size_t)snprintf (where + used, sizeof where - used, "%s%s",
                              i ? ", " : "", f[i].path);
  sl_fail_unknown (e, name, names ? (size_t)count : 0, names, "no plugin '%s'",
                   name);
  if (e) sl_fail (e, "%s; looked for %s.so in %s", e->text, name, where);
  sl_free (names);
  sl_free (found);
  return -1;
}

int sl_plugin_search (const char *name, char path[SL_PATH_SIZE],
                      char shadows[SL_PATH_SIZE], sl_error *e) {
  int n, found = -1;
  folder *f = search_path (&n, e);
  *path = *shadows = '\0';
  if (!f) return -1;
  for (int i = 0; i < n; i++) {
    char *to = found < 0 ? path : shadows;
    if (found >= 0 && !f[i].shipped) continue;
    if (snprintf (to, SL_PATH_SIZE, "%s/%s.so", f[i].path, name) <
            SL_PATH_SIZE &&
        is_found (to)) {
      if (found >= 0 || f[i].shipped) break;
      found = i;
    } else {
      *to = '\0';
    }
  }
  if (!*path) not_found (name, f, n, e);
  sl_free (f);
  return *path ? 0 : -1;
}

int sl_plugin_shipped (const char *path) {
  const char *slash = strrchr (path, '/');
  char home[SL_PATH_SIZE] = ".";
  int n, found = 0;
  folder *f = search_path (&n, NULL);
  if (!f) return 0;
  if (slash) snprintf (home, sizeof home, "%.*s", (int)(slash - path), path);
  for (int i = 0; i < n && !found; i++)
    found = f[i].shipped && are_one (f[i].path, home);
  sl_free (f);
  return found;
}

/* A list of found plugins that grows. */
typedef struct listing {
  sl_found *found;
  size_t count, room;
} listing;

static int append (listing *l, const char *path, const char *file) {
  size_t stem = strlen (file) - 3;
  sl_found *f;
  char *full;
  if (l->count == l->room) {
    size_t room = l->room ? 2 * l->room : 16;
    sl_found *wider = sl_alloc (room, sizeof *wider);
    if (!wider) return -1;
    if (l->count) memcpy (wider, l->found, l->count * sizeof *wider);
    sl_free (l->found);
    l->found = wider;
    l->room = room;
  }
  f = &l->found[l->count];
  memcpy (f->name, file, stem);
  f->name[stem] = '\0';
  if (snprintf (f->path, sizeof f->path, "%s/%s", path, file) >=
      (int)sizeof f->path)
    return 0; /* no call could open it either */
  f->shadowed = 0;
  for (size_t i = 0; i < l->count; i++)
    if (strcmp (l->found[i].name, f->name) == 0) f->shadowed = 1;
  if (!is_found (f->path)) return 0;
  /* As a loaded plugin names its file, so that the two can be compared. */
  full = realpath (f->path, NULL);
  if (full && strlen (full) < sizeof f->path) strcpy (f->path, full);
  free (full);
  l->count++;
  return 0;
}

static int by_name (const void *a, const void *b) {
  return strcmp (((const sl_found *)a)->name, ((const sl_found *)b)->name);
}

int sl_plugin_list (sl_found **found, sl_error *e) {
  listing l = { 0 };
  int n;
  folder *f = search_path (&n, e);
  if (!f) return -1;
  for (int i = 0; i < n; i++) {
    size_t first = l.count;
    DIR *dir = opendir (f[i].path);
    struct dirent *entry;
    if (!dir) continue;
    while ((entry = readdir (dir))) {
      size_t length = strlen (entry->d_name);
      if (length < 4 || length - 3 >= sizeof l.found->name ||
          strcmp (entry->d_name + length - 3, ".so") != 0)
        continue;
      if (append (&l, f[i].path, entry->d_name)) {
        closedir (dir);
        sl_free (f);
        sl_free (l.found);
        return sl_fail (e, "no memory for the list of plugins");
      }
    }
    closedir (dir);
    if (l.count > first)
      qsort (l.found + first, l.count - first, sizeof *l.found, by_name);
  }
  sl_free (f);
  *found = l.found;
  return (int)l.count;
}

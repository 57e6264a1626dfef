/* load.c - shared objects opened once, in the variant that this machine
** runs. */
#include "attention/plugins.h"
#include "base/file.h"
#include "base/isa.h"
#include "base/memory.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __ELF__
#include <elf.h>
#endif

enum { STAMP = 80 };

/* What the loader remembers beyond what others may see. */
typedef struct entry {
  sl_loaded loaded;  /* first: the public pointer is this one */
  char stamp[STAMP]; /* sl_file_stamp of the file when it was opened */
} entry;

/* Every plugin of the process; main thread only. */
static sl_loaded *all;

const sl_loaded *sl_plugin_loaded (void) {
  return all;
}

static const char *base_name (const char *path) {
  const char *slash = strrchr (path, '/');
  return slash ? slash + 1 : path;
}

/* Loading a file that ends before the segments it promises kills the process
** with SIGBUS, so this is checked before dlopen sees it. */
static int check_whole (const char *path, sl_error *e) {
#ifdef __ELF__
#if UINTPTR_MAX > 0xffffffff
  typedef Elf64_Ehdr header;
  typedef Elf64_Phdr segment;
#else
  typedef Elf32_Ehdr header;
  typedef Elf32_Phdr segment;
#endif
  const char *file = base_name (path);
  header h;
  size_t size;
  int result = 0;
  char *text = sl_file_read (path, 0, &size, e);
  if (!text) return -1;
  if (size < sizeof h || memcmp (text, ELFMAG, SELFMAG) != 0) {
    sl_free (text);
    return sl_fail (e, "%s: not a shared object (%zu bytes, no ELF header)",
                    file, size);
  }
  memcpy (&h, text, sizeof h);
  if (h.e_phentsize != sizeof (segment) || h.e_phoff > size ||
      (size_t)h.e_phnum * sizeof (segment) > size - h.e_phoff)
    result = sl_fail (e,
                      "%s: damaged shared object: its segment table is "
                      "outside the file's %zu bytes",
                      file, size);
  for (size_t i = 0; result == 0 && i < h.e_phnum; i++) {
    segment s;
    memcpy (&s, text + h.e_phoff + i * sizeof s, sizeof s);
    if (s.p_type == PT_LOAD &&
        (s.p_offset > size || s.p_filesz > size - s.p_offset))
      result = sl_fail (
          e, "%s: truncated: segment %zu ends at byte %llu of %zu", file, i,
          (unsigned long long)(s.p_offset + s.p_filesz), size);
  }
  sl_free (text);
  return result;
#else
  (void)path;
  (void)e;
  return 0;
#endif
}

/* A file damaged elsewhere can kill the process in the dynamic linker: a child
** tries first. 0 if it comes back, whatever it found. */
static int try_loading (const char *path, sl_error *e) {
  const pid_t child = fork ();
  int status = 0;
  if (child == 0) {
    dlopen (path, RTLD_NOW | RTLD_LOCAL);
    _exit (0);
  }
  if (child < 0) return 0; /* no process to spare: without the trial */
  while (waitpid (child, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFEXITED (status) && WEXITSTATUS (status) == 0) return 0;
  if (WIFEXITED (status))
    return sl_fail (e, "%s: loading it ends the process with status %d",
                    base_name (path), WEXITSTATUS (status));
  return sl_fail (e,
                  "%s: damaged shared object: loading it ends the process by "
                  "signal %d (%s)",
                  base_name (path), WTERMSIG (status),
                  strsignal (WTERMSIG (status)));
}

/* The best variant of one precision that the instruction set in use allows. */
static const sl_plugin *pick (void *so, const char *precision, sl_isa *found) {
  for (int isa = (int)sl_isa_current (); isa >= 0; isa--) {
    char symbol[64];
    const sl_plugin *p;
    snprintf (symbol, sizeof symbol, "sinklab_plugin_%s%s", precision,
              sl_isa_suffix ((sl_isa)isa));
    p = dlsym (so, symbol);
    *found = (sl_isa)isa;
    if (p) return p;
  }
  return NULL;
}

static int open_object (entry *n, const char *name, sl_error *e) {
  static const char *const precision[2] = { "f32", "f64" };
  const char *file = base_name (n->loaded.path);
  void *so = dlopen (n->loaded.path, RTLD_NOW | RTLD_LOCAL);
  if (!so) {
    const char *why = dlerror ();
    return sl_fail (e, "%s: cannot be loaded: %s", file, why ? why : "?");
  }
  for (int i = 0; i < 2; i++) {
    n->loaded.plugin[i] = pick (so, precision[i], &n->loaded.isa[i]);
    if (!n->loaded.plugin[i])
      return sl_fail (e,
                      "%s: has no symbol sinklab_plugin_%s: a plugin is "
                      "compiled in both precisions, once with -DSL_SINGLE",
                      file, precision[i]);
  }
  return sl_plugin_validate (file, name, n->loaded.plugin, e);
}

/* The plugin of this file, or NULL. */
static entry *opened (const char *path) {
  for (sl_loaded *l = all; l; l = l->next)
    if (strcmp (l->path, path) == 0) return (entry *)l;
  return NULL;
}

/* 0: the file holds what was loaded; one that was written again with the same
** bytes is read once. A file that was replaced since is refused with -1 and a
** sentence: what is loaded stays loaded, and a record of the run would name the
** wrong code. */
static int check_unchanged (entry *n, sl_error *e) {
  const char *path = n->loaded.path;
  char stamp[STAMP], hash[65];
  if (sl_file_stamp (path, stamp, sizeof stamp, e)) return -1;
  if (strcmp (stamp, n->stamp) == 0) return 0;
  if (sl_file_sha256 (path, hash, e)) return -1;
  if (strcmp (hash, n->loaded.hash) != 0)
    return sl_fail (
        e,
        "%s: changed since it was loaded; start sinklab again to use the "
        "new one",
        path);
  strcpy (n->stamp, stamp);
  return 0;
}

static int ends_in_so (const char *name) {
  size_t length = strlen (name);
  return length > 3 && strcmp (name + length - 3, ".so") == 0;
}

const sl_loaded *sl_plugin_load (const char *name, sl_error *e) {
  char path[SL_PATH_SIZE], *full;
  const char *file;
  size_t stem;
  entry *n;
  if (*name == '\0') {
    sl_fail (e, "the name of a plugin is empty");
    return NULL;
  }
  if (strlen (name) >= sizeof path) {
    sl_fail (e, "plugin name '%.60s...' is longer than %zu bytes", name,
             sizeof path - 1);
    return NULL;
  }
  if (strchr (name, '/') || ends_in_so (name))
    strcpy (path, name);
  else if (sl_plugin_search (name, path, e))
    return NULL;
  full = realpath (path, NULL);
  if (!full || strlen (full) >= sizeof path) {
    sl_fail (e,
             full ? "%.400s: its full path is too long"
                  : "%.400s: no such plugin file",
             path);
    free (full);
    return NULL;
  }
  strcpy (path, full);
  free (full);
  n = opened (path);
  if (n != NULL) return check_unchanged (n, e) ? NULL : &n->loaded;
  file = base_name (path);
  stem = ends_in_so (file) ? strlen (file) - 3 : strlen (file);
  n = sl_alloc (1, sizeof *n);
  if (!n || stem >= sizeof n->loaded.name) {
    sl_fail (e,
             n ? "%s: a plugin's name is at most 63 bytes long"
               : "%s: no memory to load it",
             file);
    sl_free (n);
    return NULL;
  }
  memcpy (n->loaded.name, file, stem);
  strcpy (n->loaded.path, path);
  if (sl_file_stamp (path, n->stamp, sizeof n->stamp, e) ||
      check_whole (path, e) || try_loading (path, e) ||
      sl_file_sha256 (path, n->loaded.hash, e) ||
      open_object (n, n->loaded.name, e)) {
    sl_free (n);
    return NULL;
  }
  n->loaded.next = all;
  all = &n->loaded;
  return all;
}

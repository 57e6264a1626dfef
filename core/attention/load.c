/* load.c - shared objects opened once, in the variant that this machine
** runs. */
#include "attention/plugins.h"
#include "base/child.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/isa.h"
#include "base/memory.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __ELF__
#include <elf.h>
#endif

enum { STAMP = 80 };
/* Bytes of a file; a built-in plugin has a ten-thousandth of them. */
static const size_t LARGEST = (size_t)256 << 20;

/* The loader's own part of a record of a plugin. */
typedef struct entry {
  sl_loaded loaded;  /* first: the public pointer is this one */
  char stamp[STAMP]; /* sl_file_stamp of the file when it was opened */
  int copy; /* descriptor of the copy that is loaded; -1: the file is */
} entry;

/* Every plugin of the process; main thread only. */
static sl_loaded *all;

const sl_loaded *sl_plugin_loaded (void) {
  return all;
}

/* A name that ends this process's lines where its bytes say so is no name to
** show: it is shown escaped. */
static const char *base_name (const char *path) {
  static char shown[4 * 256];
  const char *slash = strrchr (path, '/');
  return sl_escape_text (slash ? slash + 1 : path, shown, sizeof shown);
}

#ifdef __ELF__
#if UINTPTR_MAX > 0xffffffff
typedef Elf64_Ehdr elf_header;
typedef Elf64_Phdr elf_segment;
enum { CLASS = ELFCLASS64 };
#else
typedef Elf32_Ehdr elf_header;
typedef Elf32_Phdr elf_segment;
enum { CLASS = ELFCLASS32 };
#endif

/* The header of an object that runs on this machine: that of the C library. */
static const elf_header *own_header (void) {
  Dl_info info;
  const int found = dladdr (dlsym (RTLD_DEFAULT, "memcpy"), &info);
  return found ? (const elf_header *)info.dli_fbase : NULL;
}

/* Loading a file that ends before the segments it promises kills the process
** with SIGBUS, so this is checked before dlopen sees it. */
static int check_whole (const char *file, const char *text, size_t size,
                        sl_error *e) {
  const elf_header *own = own_header ();
  elf_header h;
  if (size < sizeof h || memcmp (text, ELFMAG, SELFMAG) != 0)
    return sl_fail (e, "%s: not a shared object (%zu bytes, no ELF header)",
                    file, size);
  memcpy (&h, text, sizeof h);
  if (h.e_ident[EI_CLASS] != CLASS)
    return sl_fail (e, "%s: built for another machine: ELF class %d, here %d",
                    file, h.e_ident[EI_CLASS], CLASS);
  if (own && (h.e_ident[EI_DATA] != own->e_ident[EI_DATA] ||
              h.e_machine != own->e_machine))
    return sl_fail (e, "%s: built for another machine: ELF machine %d, here %d",
                    file, h.e_machine, own->e_machine);
  if (h.e_type != ET_DYN)
    return sl_fail (e, "%s: not a shared object: ELF type %d, not %d", file,
                    h.e_type, ET_DYN);
  if (h.e_phentsize != sizeof (elf_segment) || h.e_phoff > size ||
      (size_t)h.e_phnum * sizeof (elf_segment) > size - h.e_phoff)
    return sl_fail (e,
                    "%s: damaged shared object: its segment table is "
                    "outside the file's %zu bytes",
                    file, size);
  for (size_t i = 0; i < h.e_phnum; i++) {
    elf_segment s;
    memcpy (&s, text + h.e_phoff + i * sizeof s, sizeof s);
    if (s.p_type == PT_LOAD &&
        (s.p_offset > size || s.p_filesz > size - s.p_offset))
      return sl_fail (e, "%s: truncated: segment %zu ends at byte %llu of %zu",
                      file, i, (unsigned long long)(s.p_offset + s.p_filesz),
                      size);
  }
  return 0;
}
#else
static int check_whole (const char *file, const char *text, size_t size,
                        sl_error *e) {
  return text ? 0 : sl_fail (e, "%s: %zu bytes", file, size);
}
#endif

/* A copy of the file in memory, as a descriptor: the bytes that were read and
** tried are the ones that run, also if the file is overwritten where it lies.
** -1: none, and the file itself is loaded: where the system has no such copies,
** and for a file that finds its libraries beside it. */
static int copy_in_memory (const char *name, const char *text, size_t size) {
#ifdef __linux__
  int fd;
  if (memmem (text, size, "$ORIGIN", 7)) return -1;
  fd = memfd_create (name, MFD_CLOEXEC);
  for (size_t done = 0; fd >= 0 && done < size;) {
    const ssize_t n = write (fd, text + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      close (fd);
      fd = -1;
    } else {
      done += (size_t)n;
    }
  }
  return fd;
#else
  (void)name, (void)text, (void)size;
  return -1;
#endif
}

/* The name under which the dynamic linker opens the object, and debuggers. */
static const char *source_of (const entry *n, char *name, size_t size) {
  if (n->copy < 0) return n->loaded.path;
  snprintf (name, size, "/proc/%ld/fd/%d", (long)getpid (), n->copy);
  return name;
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

/* dlopen and the declaration of the object; *so is its handle, if it has one. */
static int open_object (entry *n, void **so, sl_error *e) {
  static const char *const precision[2] = { "f32", "f64" };
  const char *file = base_name (n->loaded.path);
  char name[64];
  *so = dlopen (source_of (n, name, sizeof name), RTLD_NOW | RTLD_LOCAL);
  if (!*so) {
    const char *why = dlerror (), *end = why ? strstr (why, ": ") : NULL;
    if (n->copy >= 0 && end) why = end + 2; /* without the name of the copy */
    return sl_fail (e, "%s: cannot be loaded: %s", file, why ? why : "?");
  }
  for (int i = 0; i < 2; i++) {
    n->loaded.plugin[i] = pick (*so, precision[i], &n->loaded.isa[i]);
    if (!n->loaded.plugin[i])
      return sl_fail (e,
                      "%s: has no symbol sinklab_plugin_%s: a plugin is "
                      "compiled in both precisions, once with -DSL_SINGLE",
                      file, precision[i]);
  }
  return sl_plugin_validate (file, n->loaded.name, n->loaded.plugin, e);
}

/* The trial. A file can kill, hang or end the process in its constructors, in
** the functions that look at options and in its destructors, and damaged tables
** can kill the dynamic linker: a child goes through all of it first. */

typedef struct trial {
  entry *n;
  const char *volatile doing;
  int failed;
  sl_error error;
} trial;

static void go_through (void *data) {
  trial *t = data;
  sl_error ignored;
  void *so;
  t->doing = "loading it";
  t->failed = open_object (t->n, &so, &t->error);
  if (!t->failed) {
    t->doing = "asking for its default options";
    sl_mechanism_new (&t->n->loaded, 0, NULL, &ignored);
  }
  t->doing = "unloading it";
  if (so) dlclose (so);
}

static int try_loading (entry *n, sl_error *e) {
  const char *file = base_name (n->loaded.path), *doing;
  trial *t = sl_child_alloc (sizeof *t);
  sl_child_end end = { 0 };
  int status;
  if (!t) return sl_fail (e, "%s: no memory to try it", file);
  t->n = n;
  t->doing = "loading it";
  status = sl_child_try (go_through, t, SL_PLUGIN_SECONDS, &end, e);
  doing = t->doing;
  if (status)
    sl_fail_within (e, "%s", file);
  else if (t->failed)
    status = sl_fail (e, "%s", t->error.text);
  else if (end.how == SL_CHILD_TIMED_OUT)
    status = sl_fail (e, "%s: %s does not return within %d s", file, doing,
                      SL_PLUGIN_SECONDS);
  else if (end.how == SL_CHILD_EXITED)
    status = sl_fail (e, "%s: %s ends the process with status %d", file, doing,
                      end.number);
  else if (end.how == SL_CHILD_KILLED)
    status = sl_fail (e, "%s: %s ends the process by signal %d (%s)", file,
                      doing, end.number, strsignal (end.number));
  else if (end.left)
    status = sl_fail (e, "%s: loading it leaves a process running", file);
  sl_child_free (t, sizeof *t);
  return status;
}

/* Read the file once: whole, hashed and, for one that did not come with
** sinklab, copied and tried. */
static int prepare (entry *n, int shipped, sl_error *e) {
  const char *path = n->loaded.path;
  char *text;
  size_t size;
  int bad;
  if (sl_file_stamp (path, n->stamp, sizeof n->stamp, e)) return -1;
  text = sl_file_read (path, LARGEST, &size, e);
  if (!text) return -1;
  bad = check_whole (base_name (path), text, size, e);
  if (!bad && !shipped) n->copy = copy_in_memory (n->loaded.name, text, size);
  if (!bad) sl_sha256 (text, size, n->loaded.hash);
  sl_free (text);
  if (bad) return -1;
  return shipped ? 0 : try_loading (n, e);
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

/* The full path of a plugin that is meant by a name or a path. */
static int find (const char *name, char path[SL_PATH_SIZE], char *shadows,
                 sl_error *e) {
  char *full;
  *shadows = '\0';
  if (*name == '\0') return sl_fail (e, "the name of a plugin is empty");
  if (strlen (name) >= SL_PATH_SIZE)
    return sl_fail (e, "plugin name '%.60s...' is longer than %d bytes", name,
                    SL_PATH_SIZE - 1);
  if (strchr (name, '/') || ends_in_so (name))
    strcpy (path, name);
  else if (sl_plugin_search (name, path, shadows, e))
    return -1;
  full = realpath (path, NULL);
  if (!full || strlen (full) >= SL_PATH_SIZE) {
    sl_fail (e,
             full ? "%.400s: its full path is too long"
                  : "%.400s: no such plugin file",
             path);
    free (full);
    return -1;
  }
  strcpy (path, full);
  free (full);
  return 0;
}

static entry *new_entry (const char *path, sl_error *e) {
  const char *slash = strrchr (path, '/'), *file = slash ? slash + 1 : path;
  const size_t stem = strlen (file) - (ends_in_so (file) ? 3 : 0);
  entry *n = sl_alloc (1, sizeof *n);
  if (!n || stem >= sizeof n->loaded.name) {
    sl_fail (e,
             n ? "%s: a plugin's name is at most 63 bytes long"
               : "%s: no memory to load it",
             base_name (path));
    sl_free (n);
    return NULL;
  }
  memcpy (n->loaded.name, file, stem);
  strcpy (n->loaded.path, path);
  n->copy = -1;
  return n;
}

/* A descriptor whose name the dynamic linker may remember stays open: the next
** file would be taken for this one. */
static void drop (entry *n, const void *so) {
  if (!so && n->copy >= 0) close (n->copy);
  sl_free (n);
}

int sl_plugin_try (const char *name, sl_error *e) {
  char path[SL_PATH_SIZE], shadows[SL_PATH_SIZE];
  entry *n;
  int status;
  if (find (name, path, shadows, e)) return -1;
  if (opened (path)) return 0;
  n = new_entry (path, e);
  if (!n) return -1;
  status = prepare (n, 0, e);
  drop (n, NULL);
  return status;
}

const sl_loaded *sl_plugin_load (const char *name, sl_error *e) {
  char path[SL_PATH_SIZE], shadows[SL_PATH_SIZE];
  void *so = NULL;
  entry *n;
  if (find (name, path, shadows, e)) return NULL;
  n = opened (path);
  if (n) {
    if (check_unchanged (n, e)) return NULL;
  } else {
    n = new_entry (path, e);
    if (!n) return NULL;
    if (prepare (n, sl_plugin_shipped (path), e) || open_object (n, &so, e)) {
      drop (n, so);
      return NULL;
    }
    n->loaded.next = all;
    all = &n->loaded;
  }
  if (*shadows) strcpy (n->loaded.shadows, shadows);
  return &n->loaded;
}

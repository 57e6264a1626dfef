/* cairo_load.c - Cairo, loaded when the first figure is laid out. */
#include "plot/cairo_api.h"
#include <dlfcn.h>
#include <string.h>

sl_cairo_functions sl_cairo;

/* In the order of the table, which is one of pointers only. */
#define SL_CAIRO_NAME(name) #name,
static const char *const names[] = { SL_CAIRO_FUNCTIONS (SL_CAIRO_NAME) };
enum { FUNCTIONS = sizeof names / sizeof *names };
_Static_assert(sizeof (sl_cairo_functions) == FUNCTIONS * sizeof (void *),
               "a pointer for each name");

/* By its name where the system looks for libraries, else where it was when this
** was built. */
static void *open_library (void) {
  static const char *const files[] = { "libcairo.so.2", "libcairo.2.dylib",
                                       SINKLAB_CAIRO_FILE };
  void *library = NULL;
  for (size_t i = 0; i < sizeof files / sizeof *files && !library; i++)
    library = dlopen (files[i], RTLD_NOW | RTLD_LOCAL);
  return library;
}

int sl_cairo_load (sl_error *e) {
  static int loaded;
  sl_cairo_functions found;
  void *library;
  if (loaded) return 0;
  library = open_library ();
  if (!library)
    return sl_fail (e, "figures need Cairo, which cannot be loaded: %s",
                    dlerror ());
  for (size_t i = 0; i < FUNCTIONS; i++) {
    void *symbol = dlsym (library, names[i]);
    if (!symbol)
      return sl_fail (e, "figures need a newer Cairo: this one has no %s",
                      names[i]);
    memcpy ((char *)&found + i * sizeof symbol, &symbol, sizeof symbol);
  }
  sl_cairo = found;
  loaded = 1;
  return 0;
}

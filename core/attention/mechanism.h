/* mechanism.h - plugins found, loaded and configured. */
#ifndef SL_MECHANISM_H
#define SL_MECHANISM_H
#include "base/error.h"
#include "base/isa.h"
#include "tensor/tensor.h"
#include <sinklab/plugin.h>

/* A loaded shared object; loaded once, never unloaded, so pointers stay
** valid. */
typedef struct sl_loaded {
  char name[64];
  char path[1024];
  char hash[65]; /* SHA-256 of the file */
  /* The plugin of the same name that comes with sinklab, which this one stood
  ** before when it was found by its name; empty: none. */
  char shadows[1024];
  /* By sl_dtype: the best variant for this machine, and which that is: the
  ** baseline where it has no other. */
  const sl_plugin *plugin[2];
  sl_isa isa[2];
  struct sl_loaded *next;
} sl_loaded;

/* Find and load a plugin. 'name' with a slash or ending in ".so" is a path;
** else NAME.so is looked for in ./plugins, the folders of SINKLAB_PLUGIN_PATH
** (':' between them), plugins/ beside the executable, and the install folder.
** Errors name the file, what was found and what was expected; an unknown name
** lists the nearest one and where was looked.
**
** A file that did not come with sinklab is first loaded and unloaded in a child
** that is killed after SL_PLUGIN_SECONDS, and a crash, a hang or an exit there
** is an error here. */
const sl_loaded *sl_plugin_load (const char *name, sl_error *e);
enum { SL_PLUGIN_SECONDS = 5 };

/* The trial alone, also of a file that came with sinklab. */
int sl_plugin_try (const char *name, sl_error *e);

/* The properties that a plugin may declare (sl_plugin.properties), with {0} at the
** end. */
typedef struct sl_property {
  uint32_t flag;
  const char *name, *text; /* "kinked", "the gradient has kinks" */
} sl_property;
extern const sl_property sl_properties[];

/* "row", "gate" or "mixer". */
const char *sl_plugin_shape (const sl_plugin *p);

/* The number of elements before the {0} of a list that may be NULL. */
int sl_plugin_options (const sl_plugin *p);
int sl_plugin_params (const sl_plugin *p);
int sl_plugin_inputs (const sl_plugin *p);

/* The plugins loaded so far, the last one first, linked by 'next'; NULL:
** none. */
const sl_loaded *sl_plugin_loaded (void);

/* One plugin that could be loaded by name; 'shadowed': another of the same name
** is found first. */
typedef struct sl_found {
  char name[64];
  char path[1024];
  int shadowed;
} sl_found;
/* Everything on the search path, in search order, sorted by name within a
** folder. The caller frees *found with sl_free. Returns the count or -1. */
int sl_plugin_list (sl_found **found, sl_error *e);

/* A plugin with the values of its options. Interned: equal plugin and options
** give the same pointer, which lives until the process ends, so attributes may
** hold it. */
typedef struct sl_mechanism {
  const sl_loaded *loaded;
  const void *config; /* NULL if the plugin has none */
  size_t config_size;
  /* The plugin's lists as these options leave them, with {0} at the end: an
  ** element of width {0, 0} is left out, the others keep their places. */
  const sl_param *params;
  const sl_input *inputs;
} sl_mechanism;

/* A value for an option: number (also for SL_INT and SL_BOOL) or text
** (SL_CHOICE). */
typedef struct sl_setting {
  const char *name;
  double number;
  const char *text; /* NULL: a number */
} sl_setting;

/* Unknown options (with the nearest name), wrong kinds and values out of range
** are refused in one sentence that names plugin, option, value and what is
** allowed. */
const sl_mechanism *sl_mechanism_new (const sl_loaded *loaded, int n,
                                      const sl_setting *settings, sl_error *e);
/* The value in effect of option i, for records: fills number or text. */
int sl_mechanism_option (const sl_mechanism *m, int i, sl_setting *value);
/* How many reals of parameters a head has; -1: too many for an int. */
int sl_mechanism_params (const sl_mechanism *m, int d_head);
/* The width of input i, of one head or of the shared slice; 0: left out; -1:
** too large for an int. */
int sl_mechanism_input (const sl_mechanism *m, int i, int d_head);
/* The width of the output of a head: d_head, unless a mixer plans another; -1 and
** its sentence if it refuses sequences of t tokens. */
int sl_mechanism_output (const sl_mechanism *m, int d_head, int t, sl_error *e);
/* The sizes that a mixer plans for sequences of t tokens, its d_out checked; -1 and a
** sentence. */
int sl_mechanism_ask (const sl_mechanism *m, sl_dtype dtype, int d_head, int t,
                      sl_plan *plan, sl_error *e);
#endif

/* plugins.h - declarations that the files of the plugin loader share; not for other
** layers. */
#ifndef SL_PLUGINS_H
#define SL_PLUGINS_H
#include "attention/mechanism.h"

enum { SL_PATH_SIZE = 1024 }; /* of every path here, with its NUL */

/* Write the path of the first NAME.so on the search path into 'path', and into
** 'shadows' that of the one which comes with sinklab, if it is another, else "".
** -1 and a sentence with the nearest name and the folders when there is none. */
int sl_plugin_search (const char *name, char path[SL_PATH_SIZE],
                      char shadows[SL_PATH_SIZE], sl_error *e);

/* 1 if the file lies in plugins/ beside the executable or in the folder of
** installed plugins: it came with sinklab and is loaded without a trial. */
int sl_plugin_shipped (const char *path);

/* Check the declaration of a plugin: version rule, one shape, lists, and
** that both precisions agree. 'file' is what errors call it, 'name' what the
** plugin must be called. */
int sl_plugin_validate (const char *file, const char *name,
                        const sl_plugin *const plugin[2], sl_error *e);

/* Widths, inits and scales of the two lists, as declared or as 'adapt' left
** them (then 'absent': a width may be {0, 0}). */
int sl_plugin_check_lists (const char *file, int params, const sl_param *param,
                           int inputs, const sl_input *input, int absent,
                           sl_error *e);
#endif

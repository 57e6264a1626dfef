/* lua_common.h - helpers of every binding file. Bindings read their arguments,
** call core and push the result; they compute nothing themselves.
**
** Each lua_<layer>.c adds its functions to the table "sinklab.core", which only
** the Lua half of the library (scripts/sinklab) requires; users see "sinklab".
** Functions of both, and every method, are described by schemas in
** scripts/sinklab/core_api/. */
#ifndef SL_LUA_COMMON_H
#define SL_LUA_COMMON_H
#include "program/program.h"
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

/* Metatables. A tensor is a full userdata that holds an sl_tensor *; a program
** one whose first field is an sl_program *. NULL there means closed. */
#define SL_LUA_TENSOR "sinklab.tensor"
#define SL_LUA_PROGRAM "sinklab.program"
/* What core.quit raises: an int, the exit status. */
#define SL_LUA_QUIT "sinklab.quit"

/* The context of this Lua state. */
sl_context *sl_lua_context (lua_State *L);

/* Raise e's sentence, blamed on the nearest script line outside the library. If
** it stands for an error that a function of the script raised (t:fill), raise
** that error as it was. */
int sl_lua_raise (lua_State *L, const sl_error *e);
/* The same with a sentence made here. */
int sl_lua_fail (lua_State *L, const char *format, ...) SL_PRINTF (2, 3);
/* Pushes the text as raise gives it: "FILE:LINE: lab.NAME: TEXT", with the line of
** the script and the whole name of the public function that it called. */
void sl_lua_blame (lua_State *L, const char *text);
/* Lua: (function, name): a public function is called so in messages. */
int sl_lua_name (lua_State *L);
/* The same for every function in the table on the top of the stack, the methods
** of class "sinklab.CLASS": they are called "CLASS:METHOD". */
void sl_lua_name_methods (lua_State *L, const char *name);

/* nil, sentence: trouble of the outside world. */
int sl_lua_nil (lua_State *L, const sl_error *e);

/* Push n bytes of a block of sl_alloc as a string and free it, also if Lua has no
** memory. */
void sl_lua_push_bytes (lua_State *L, char *data, size_t n);

/* The metatable 'name' with the entries of 'meta' and, unless 'methods' is
** NULL, a table of methods as __index. */
void sl_lua_class (lua_State *L, const char *name, const luaL_Reg *meta,
                   const luaL_Reg *methods);
/* Give the userdata on the top of the stack, which can be released already, the
** metatable 'name' whose __gc is 'release': it is freed whatever fails next. */
void sl_lua_own (lua_State *L, const char *name, lua_CFunction release);

/* Arguments as lauxlib has them, with messages of sl_lua_fail; a text is no
** number, and a number is no text. */
int sl_lua_wrong_argument (lua_State *L, int arg, const char *said);
#define sl_lua_argument(L, holds, arg, said) \
  ((holds) ? (void)0 : (void)sl_lua_wrong_argument (L, arg, said))
void sl_lua_check_type (lua_State *L, int arg, int type);
lua_Integer sl_lua_check_integer (lua_State *L, int arg);
lua_Number sl_lua_check_number (lua_State *L, int arg);
const char *sl_lua_check_text (lua_State *L, int arg, size_t *n);
const char *sl_lua_check_string (lua_State *L, int arg);
lua_Integer sl_lua_opt_integer (lua_State *L, int arg, lua_Integer def);
lua_Number sl_lua_opt_number (lua_State *L, int arg, lua_Number def);
const char *sl_lua_opt_string (lua_State *L, int arg, const char *def);
void *sl_lua_check_object (lua_State *L, int arg, const char *class);

/* Tensors. push takes over one reference (also when Lua runs out of memory). */
void sl_lua_push_tensor (lua_State *L, sl_tensor *t);
/* Pushes the metatable of tensors, which owns: it has __gc and __close already;
** lua_tensor.c adds the rest. */
void sl_lua_tensor_metatable (lua_State *L);
sl_tensor *sl_lua_check_tensor (lua_State *L, int index);
sl_tensor *sl_lua_opt_tensor (lua_State *L, int index); /* nil: NULL */
sl_program *sl_lua_check_program (lua_State *L, int index);

/* Fields of an options table at 'index' (an absolute index; nil or none there
** is an empty table). Missing or nil gives the default; a wrong type raises
** "WHAT.KEY: expected number, got string". Metamethods are not used. */
double sl_lua_number (lua_State *L, int index, const char *what,
                      const char *key, double def);
lua_Integer sl_lua_integer (lua_State *L, int index, const char *what,
                            const char *key, lua_Integer def);
int sl_lua_int (lua_State *L, int index, const char *what, const char *key,
                int def);
int sl_lua_boolean (lua_State *L, int index, const char *what, const char *key,
                    int def);
const char *sl_lua_string (lua_State *L, int index, const char *what,
                           const char *key, const char *def);
/* The value of such a field, or of element i (from 1; 0: none) of a list there,
** is on the top of the stack: a tensor. Anything else raises "WHAT.KEY[I]:
** expected a tensor, got string". */
sl_tensor *sl_lua_field_tensor (lua_State *L, const char *what, const char *key,
                                int i);
/* The same for the field "program". */
sl_program *sl_lua_field_program (lua_State *L, const char *what);
/* Raise for any key of the table that is not in the NULL-ended list, with the
** nearest one. */
void sl_lua_known (lua_State *L, int index, const char *what,
                   const char *const *keys);

/* Openers: each adds to the table on top of the stack. lua_modules.c lists
** them. */
void sl_lua_open_tensor (lua_State *L);    /* tensors, views, files */
void sl_lua_open_ops (lua_State *L);       /* operations */
void sl_lua_open_generator (lua_State *L); /* random draws */
void sl_lua_open_fill (lua_State *L);      /* the operation behind t:fill */
void sl_lua_open_program (lua_State *L);   /* record, replay, gradients */
void sl_lua_open_mechanism (lua_State *L); /* plugins with options */
void sl_lua_open_attention (lua_State *L); /* attention, gate, mixer, rope */
void sl_lua_open_train (lua_State *L);     /* optimisers, schedules, trainer */
void sl_lua_open_sinks (lua_State *L);     /* measurements */
void sl_lua_open_hidden (lua_State *L);    /* of the residual stream */
void sl_lua_open_plot (lua_State *L);      /* figures */
void sl_lua_open_plugins (lua_State *L);   /* plugins listed, described */
void sl_lua_open_check (lua_State *L);     /* plugin check */
void sl_lua_open_process (lua_State *L);   /* worker processes */
void sl_lua_open_json (lua_State *L);      /* JSON read */
void sl_lua_open_versions (lua_State *L);  /* libraries used */
void sl_lua_open_database (lua_State *L);  /* SQLite */
void sl_lua_open_lm_files (lua_State *L);  /* files of language models */
void sl_lua_open_tokenizer (lua_State *L); /* their tokenizers */
void sl_lua_open_system (lua_State *L);    /* files, clock, terminal, signals */
#endif

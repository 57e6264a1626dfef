/* lua_train.c - schedules and the trainer. */
#include "lua/lua_common.h"
#include "train/train.h"
#include <math.h>
#include <string.h>

#define TRAINER "sinklab.trainer"
enum { MAX_POINTS = 1000000 };

typedef struct box {
  sl_trainer *trainer; /* NULL: closed */
  const sl_program *program;
  int has_max_abs_error;
  int busy; /* a program that calls the script is running in it */
} box;

/* The list of points { step, value, curve } at 'index', as an array in a
** userdata that is pushed. */
static sl_point *read_points (lua_State *L, int index, const char *what,
                              int *n) {
  sl_error e;
  sl_point *points;
  lua_Unsigned length;
  if (!lua_istable (L, index))
    sl_lua_fail (L, "%s: expected a list of points, got %s", what,
                 luaL_typename (L, index));
  length = lua_rawlen (L, index);
  if (length > MAX_POINTS)
    sl_lua_fail (L, "%s: %llu points, allowed are %d", what,
                 (unsigned long long)length, MAX_POINTS);
  *n = (int)length;
  points = lua_newuserdatauv (L, (size_t)(*n + 1) * sizeof *points, 0);
  for (int i = 0; i < *n; i++) {
    int numbers = 0;
    if (lua_rawgeti (L, index, i + 1) == LUA_TTABLE) {
      lua_rawgeti (L, -1, 1);
      lua_rawgeti (L, -2, 2);
      numbers =
          lua_type (L, -2) == LUA_TNUMBER && lua_type (L, -1) == LUA_TNUMBER;
      lua_rawgeti (L, -3, 3);
    } else
      lua_settop (L, lua_gettop (L) + 3);
    if (!numbers || !(lua_isnil (L, -1) || lua_type (L, -1) == LUA_TSTRING))
      sl_lua_fail (
          L,
          "%s: point %d is not { step, value, curve }, two numbers and "
          "a name",
          what, i + 1);
    points[i] =
        (sl_point){ lua_tonumber (L, -3), lua_tonumber (L, -2), SL_CURVE_HOLD };
    if (!lua_isnil (L, -1) &&
        sl_curve_parse (lua_tostring (L, -1), &points[i].curve, &e) < 0)
      sl_lua_raise (L, &e);
    lua_pop (L, 4);
  }
  if (sl_schedule_check (points, *n, &e) < 0) sl_lua_raise (L, &e);
  return points;
}

/* schedule_at (points, step) -> the value at a step, counted from 0 */
static int schedule_at (lua_State *L) {
  const double step = sl_lua_check_number (L, 2);
  int n;
  const sl_point *points = read_points (L, 1, "schedule", &n);
  lua_pushnumber (L, sl_schedule_at (points, n, step));
  return 1;
}

static box *check_box (lua_State *L) {
  box *b = sl_lua_check_object (L, 1, TRAINER);
  sl_lua_argument (L, b->trainer != NULL, 1, "this trainer has been closed");
  sl_lua_argument (L, !b->busy, 1, "this trainer is running");
  return b;
}

/* The value of a field, left on the stack. */
static int get (lua_State *L, int index, const char *key) {
  lua_pushstring (L, key);
  return lua_rawget (L, index);
}

/* The tensor in a field, NULL for nil when optional; it stays on the stack. */
static sl_tensor *get_tensor (lua_State *L, int index, const char *key,
                              int optional) {
  if (get (L, index, key) == LUA_TNIL && optional) return NULL;
  return sl_lua_field_tensor (L, "trainer", key, 0);
}

static long get_long (lua_State *L, int index, const char *what,
                      const char *key) {
  return (long)sl_lua_integer (L, index, what, key, 0);
}

static sl_optimizer read_optimizer (lua_State *L, int index) {
  static const char what[] = "trainer.optimizer";
  const char *keys[SL_OPTIMIZER_OPTIONS + 2] = { "kind" };
  const sl_optimizer_option *options;
  sl_optimizer o;
  sl_error e;
  if (sl_optimizer_parse (sl_lua_string (L, index, what, "kind", ""), &o, &e) <
      0)
    sl_lua_raise (L, &e);
  options = sl_optimizer_options (o.kind);
  for (int i = 0; options[i].name != NULL; i++) {
    const char *name = keys[i + 1] = options[i].name;
    o.option[i] = options[i].is_flag
                      ? sl_lua_boolean (L, index, what, name, o.option[i] != 0)
                      : sl_lua_number (L, index, what, name, o.option[i]);
  }
  sl_lua_known (L, index, what, keys);
  return o;
}

static void set_number (lua_State *L, const char *key, double x) {
  lua_pushnumber (L, x);
  lua_setfield (L, -2, key);
}

/* A whole number as an integer: 0, not 0.0. */
static void set_bound (lua_State *L, const char *key, double x) {
  lua_Integer whole;
  if (lua_numbertointeger (x, &whole) && (double)whole == x)
    lua_pushinteger (L, whole);
  else
    lua_pushnumber (L, x);
  lua_setfield (L, -2, key);
}

/* The table of optimizers: { adam = { { name, kinds, default =, min or above =,
** below = }, ... }, ... }, rows as in schema.lua. */
static void push_optimizers (lua_State *L) {
  const char *name;
  lua_newtable (L);
  for (int kind = 0; (name = sl_optimizer_name (kind)) != NULL; kind++) {
    const sl_optimizer_option *o = sl_optimizer_options (kind);
    lua_newtable (L);
    for (int i = 0; o[i].name != NULL; i++) {
      lua_newtable (L);
      lua_pushstring (L, o[i].name);
      lua_rawseti (L, -2, 1);
      lua_pushstring (L, o[i].is_flag ? "boolean" : "number");
      lua_rawseti (L, -2, 2);
      if (o[i].is_flag) {
        lua_pushboolean (L, o[i].def != 0);
        lua_setfield (L, -2, "default");
      } else {
        set_bound (L, "default", o[i].def);
        set_bound (L, o[i].excludes_low ? "above" : "min", o[i].low);
        if (isfinite (o[i].below)) set_bound (L, "below", o[i].below);
      }
      lua_rawseti (L, -2, i + 1);
    }
    lua_setfield (L, -2, name);
  }
}

static sl_stop read_stop (lua_State *L, int index) {
  static const char what[] = "trainer.stop";
  return (sl_stop){ .max_abs_error =
                        sl_lua_number (L, index, what, "max_abs_error", 0),
                    .loss = sl_lua_number (L, index, what, "loss", 0),
                    .seconds = sl_lua_number (L, index, what, "seconds", 0),
                    .plateau = get_long (L, index, what, "plateau"),
                    .plateau_delta =
                        sl_lua_number (L, index, what, "plateau_delta", 0) };
}

/* trainer { program =, parameters =, loss =, weight =, max_abs_error =,
** batch =, shard =, groups =, optimizer = { kind = }, schedule = points,
** stop = { }, seed = } */
static int trainer (lua_State *L) {
  enum { OPTIONS = 1, BOX, PINS };
  static const char what[] = "trainer";
  sl_trainer_spec spec = { 0 };
  sl_error e;
  box *b;
  sl_lua_check_type (L, OPTIONS, LUA_TTABLE);
  luaL_checkstack (L, 40, "trainer");
  lua_settop (L, OPTIONS);
  b = lua_newuserdatauv (L, sizeof *b, 1);
  *b = (box){ 0 };
  luaL_setmetatable (L, TRAINER);
  lua_newtable (L); /* pins: the trainer's inputs live as long as it does */
  get (L, OPTIONS, "program");
  spec.program = sl_lua_field_program (L, what);
  lua_rawseti (L, PINS, 1);
  spec.parameters = get_tensor (L, OPTIONS, "parameters", 0);
  spec.loss = get_tensor (L, OPTIONS, "loss", 0);
  spec.weight = get_tensor (L, OPTIONS, "weight", 1);
  spec.max_abs_error = get_tensor (L, OPTIONS, "max_abs_error", 1);
  spec.batch = get_long (L, OPTIONS, what, "batch");
  spec.shard = get_long (L, OPTIONS, what, "shard");
  spec.groups = sl_lua_int (L, OPTIONS, what, "groups", 1);
  spec.seed = (uint64_t)sl_lua_integer (L, OPTIONS, what, "seed", 0);
  get (L, OPTIONS, "optimizer");
  spec.optimizer = read_optimizer (L, lua_gettop (L));
  get (L, OPTIONS, "stop");
  spec.stop = read_stop (L, lua_gettop (L));
  get (L, OPTIONS, "schedule");
  spec.schedule =
      read_points (L, lua_gettop (L), "trainer.schedule", &spec.n_points);
  b->has_max_abs_error = spec.max_abs_error != NULL;
  b->program = spec.program;
  b->trainer = sl_trainer_new (sl_lua_context (L), &spec, &e);
  if (b->trainer == NULL) return sl_lua_raise (L, &e);
  lua_pushvalue (L, PINS);
  lua_setiuservalue (L, BOX, 1);
  lua_pushvalue (L, BOX);
  return 1;
}

/* trainer_cut (batch, seq_len, parameters, bytes_per_token, [shard], [groups])
** -> shard, groups */
static int trainer_cut (lua_State *L) {
  long shard = (long)sl_lua_opt_integer (L, 5, 0);
  long groups = (long)sl_lua_opt_integer (L, 6, 0);
  sl_error e;
  if (sl_trainer_cut ((long)sl_lua_check_integer (L, 1),
                      (long)sl_lua_check_integer (L, 2),
                      (size_t)sl_lua_check_integer (L, 3),
                      sl_lua_check_number (L, 4), &shard, &groups, &e) < 0)
    sl_lua_fail (L, "lab.train: %s", e.text);
  lua_pushinteger (L, shard);
  lua_pushinteger (L, groups);
  return 2;
}

/* trainer:run (until_step, seconds) -> { step, loss, max_abs_error, lr,
** gradient_norm, seconds, stopped }; max_abs_error is nil where the program has
** none, stopped nil while nothing ends the training */
static int run (lua_State *L) {
  box *b = check_box (L);
  const long until = (long)sl_lua_check_integer (L, 2);
  const double seconds = sl_lua_opt_number (L, 3, 0);
  sl_progress p;
  b->busy = 1;
  sl_trainer_run (b->trainer, until, seconds, &p);
  b->busy = 0;
  if (p.stopped == SL_STOP_FAILED)
    return sl_lua_raise (L, sl_trainer_error (b->trainer));
  lua_createtable (L, 0, 7);
  lua_pushinteger (L, p.step);
  lua_setfield (L, -2, "step");
  set_number (L, "loss", p.loss);
  if (b->has_max_abs_error) set_number (L, "max_abs_error", p.max_abs_error);
  set_number (L, "lr", p.lr);
  set_number (L, "gradient_norm", p.gradient_norm);
  set_number (L, "seconds", p.seconds);
  if (p.stopped != SL_RUNNING) {
    lua_pushstring (L, sl_stopped_name (p.stopped));
    lua_setfield (L, -2, "stopped");
  }
  return 1;
}

/* trainer:evaluate (samples) -> mean loss, largest error (nil without one) */
static int evaluate (lua_State *L) {
  box *b = check_box (L);
  const long samples = (long)sl_lua_check_integer (L, 2);
  double loss, max_abs_error;
  sl_error e;
  int status;
  b->busy = 1;
  status = sl_trainer_evaluate (b->trainer, samples, &loss, &max_abs_error, &e);
  b->busy = 0;
  if (status < 0) return sl_lua_raise (L, &e);
  lua_pushnumber (L, loss);
  if (!b->has_max_abs_error) return 1;
  lua_pushnumber (L, max_abs_error);
  return 2;
}

/* trainer:state () -> a flat tensor that is the trainer's own: for
** checkpoints */
static int state (lua_State *L) {
  box *b = check_box (L);
  sl_lua_push_tensor (L, sl_tensor_retain (sl_trainer_state (b->trainer)));
  return 1;
}

/* trainer:resume (step, seconds): counters as they were */
static int resume (lua_State *L) {
  box *b = check_box (L);
  sl_error e;
  if (sl_trainer_resume (b->trainer, (long)sl_lua_check_integer (L, 2),
                         sl_lua_opt_number (L, 3, 0), &e) < 0)
    return sl_lua_raise (L, &e);
  return 0;
}

/* trainer:profile (on) starts (true) or ends a profile of the steps that
** follow; trainer:profile () -> { steps, workers, replay, busy, gather, update,
** nodes = { { op, forward, backward }, ... } }, seconds as in sl_step_times. */
static int profile (lua_State *L) {
  box *b = check_box (L);
  sl_step_times times;
  sl_error e;
  if (lua_gettop (L) > 1) {
    sl_lua_check_type (L, 2, LUA_TBOOLEAN);
    if (sl_trainer_profile (b->trainer, lua_toboolean (L, 2), &e) < 0)
      return sl_lua_raise (L, &e);
    return 0;
  }
  times = sl_trainer_times (b->trainer);
  lua_createtable (L, 0, 7);
  set_number (L, "steps", (double)times.steps);
  set_number (L, "workers", times.workers);
  set_number (L, "replay", times.replay);
  set_number (L, "busy", times.busy);
  set_number (L, "gather", times.gather);
  set_number (L, "update", times.update);
  lua_createtable (L, (int)sl_program_nodes (b->program), 0);
  for (size_t i = 0; i < sl_program_nodes (b->program); i++) {
    double forward, backward;
    sl_trainer_node_times (b->trainer, i, &forward, &backward);
    lua_createtable (L, 0, 3);
    lua_pushstring (L, sl_program_op (b->program, i)->name);
    lua_setfield (L, -2, "op");
    set_number (L, "forward", forward);
    set_number (L, "backward", backward);
    lua_rawseti (L, -2, (lua_Integer)i + 1);
  }
  lua_setfield (L, -2, "nodes");
  return 1;
}

static int release (lua_State *L) {
  box *b = sl_lua_check_object (L, 1, TRAINER);
  sl_trainer *t = b->trainer;
  sl_lua_argument (L, !b->busy, 1, "this trainer is running");
  b->trainer = NULL;
  sl_trainer_free (t);
  return 0;
}

static int collect (lua_State *L) {
  box *b = sl_lua_check_object (L, 1, TRAINER);
  b->busy = 0; /* nothing that is collected runs */
  return release (L);
}

static int to_string (lua_State *L) {
  const box *b = sl_lua_check_object (L, 1, TRAINER);
  lua_pushstring (L, b->trainer ? "trainer" : "trainer (closed)");
  return 1;
}

void sl_lua_open_train (lua_State *L) {
  static const luaL_Reg functions[] = { { "schedule_at", schedule_at },
                                        { "trainer", trainer },
                                        { "trainer_cut", trainer_cut },
                                        { NULL, NULL } };
  static const luaL_Reg methods[] = {
    { "run", run },       { "evaluate", evaluate }, { "state", state },
    { "resume", resume }, { "close", release },     { "profile", profile },
    { NULL, NULL }
  };
  static const luaL_Reg meta[] = { { "__gc", collect },
                                   { "__close", release },
                                   { "__tostring", to_string },
                                   { NULL, NULL } };
  sl_lua_class (L, TRAINER, meta, methods);
  luaL_setfuncs (L, functions, 0);
  push_optimizers (L);
  lua_setfield (L, -2, "optimizers");
}

/* hostile.c - plugins that end, hang or outlive the process that loads or runs
** them, for the trial in a child.
**
** Built once per case with -DCASE_<case>; without the case's own code each is a
** plugin whose weights are 0. */
#include <signal.h>
#include <sinklab/plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FOREVER \
  for (;;) pause ()

/* The two objects of a plugin share a process: one of them misbehaves. */
#ifndef SL_SINGLE
#define AT_START __attribute__ ((constructor)) static void start (void)
#define AT_END __attribute__ ((destructor)) static void end (void)
#else
#define AT_START static __attribute__ ((unused)) void start (void)
#define AT_END static __attribute__ ((unused)) void end (void)
#endif

#if defined CASE_start_spins
AT_START {
  for (volatile int i = 0;; i = !i) {}
}
#elif defined CASE_start_sleeps
AT_START {
  FOREVER;
}
#elif defined CASE_start_ignores_signals
AT_START {
  for (int i = 1; i < 32; i++) signal (i, SIG_IGN);
  FOREVER;
}
#elif defined CASE_start_stops
AT_START {
  raise (SIGSTOP);
}
#elif defined CASE_start_reads
AT_START {
  char c;
  if (read (STDIN_FILENO, &c, 1) != 0) abort ();
}
#elif defined CASE_start_crashes
AT_START {
  *(volatile int *)8 = 1;
}
#elif defined CASE_start_aborts
AT_START {
  abort ();
}
#elif defined CASE_start_bus
AT_START {
  raise (SIGBUS);
}
#elif defined CASE_start_exits_0
AT_START {
  exit (0);
}
#elif defined CASE_start_exits_at_once
AT_START {
  _exit (0);
}
#elif defined CASE_start_exits_3
AT_START {
  exit (3);
}
#elif defined CASE_start_forks
AT_START {
  if (fork () == 0) FOREVER;
}
#elif defined CASE_start_forks_many
AT_START {
  for (int i = 0; i < 20; i++)
    if (fork () == 0) FOREVER;
}
#elif defined CASE_start_forks_session
AT_START {
  if (fork () == 0) {
    setsid ();
    FOREVER;
  }
}
#elif defined CASE_start_forks_twice
AT_START {
  if (fork () == 0) {
    setsid ();
    if (fork () == 0) FOREVER;
    _exit (0);
  }
}
#elif defined CASE_start_kills_parent
AT_START {
  kill (getppid (), SIGKILL);
  FOREVER;
}
#elif defined CASE_start_stops_parent
AT_START {
  kill (getppid (), SIGSTOP);
  FOREVER;
}
#elif defined CASE_start_kills_group
AT_START {
  kill (0, SIGKILL);
}
#elif defined CASE_start_overflows
static volatile int deep;
static int down (int n) {
  volatile char room[4096] = { 0 };
  room[n % 4096] = (char)n;
  return deep ? n : down (n + 1) + room[0];
}
AT_START {
  deep = down (0);
}
#elif defined CASE_end_crashes
AT_END {
  *(volatile int *)8 = 1;
}
#elif defined CASE_end_exits
AT_END {
  _exit (5);
}
#elif defined CASE_end_sleeps
AT_END {
  FOREVER;
}
#elif defined CASE_atexit_crashes
static void late (void) {
  *(volatile int *)8 = 1;
}
AT_START {
  atexit (late);
}
#elif defined CASE_missing_symbol
extern void nobody_has_this (void);
AT_START {
  nobody_has_this ();
}
#elif defined CASE_wild_name
#define NAME (const char *)8
#elif defined CASE_wild_options
#define OPTIONS (const sl_option *)8
#elif defined CASE_control_name
#define NAME "a\033[31m\nb\xe2\x80\xae"
#elif defined CASE_validate_crashes
#define VALIDATE validate
static int validate (const void *config, char *err, size_t cap) {
  (void)config, (void)err, (void)cap;
  *(volatile int *)8 = 1;
  return 0;
}
#elif defined CASE_validate_exits
#define VALIDATE validate
static int validate (const void *config, char *err, size_t cap) {
  (void)config, (void)err, (void)cap;
  exit (0);
}
#elif defined CASE_kernel_exits
#define KERNEL exit (0)
#elif defined CASE_kernel_forks
#define KERNEL \
  if (fork () == 0) FOREVER
#elif defined CASE_control_doc
#define DOC "red \033[31m, \xc2\x9b, \xe2\x80\xae, \xff"
#else
#error "no such case"
#endif

#ifndef NAME
#define NAME CASE_NAME
#endif
#ifndef OPTIONS
#define OPTIONS NULL
#endif
#ifndef VALIDATE
#define VALIDATE NULL
#endif
#ifndef KERNEL
#define KERNEL (void)0
#endif
#ifndef DOC
#define DOC "hostile on purpose"
#endif

static void forward (const sl_call *c, int n, const real *s, real *w) {
  (void)c, (void)s;
  KERNEL;
  for (int i = 0; i < n; i++) w[i] = 0;
}

static void backward (const sl_call *c, int n, const real *s, const real *w,
                      const real *dw, real *ds, real *dparam) {
  (void)c, (void)s, (void)w, (void)dw, (void)dparam;
  for (int i = 0; i < n; i++) ds[i] = 0;
}

static const sl_row_kernel row = { forward, backward };

SL_PLUGIN = {
  SL_ABI,     NAME, "1.0", DOC, .options = OPTIONS, .validate = VALIDATE,
  .row = &row
};

/* host.c - the services of sl_host, in this precision and instruction set. */
#include "attention/host.h"
#include "ops/gemm.h"
#include <stdio.h>

static void log_line (int level, const char *msg) {
  fprintf (stderr, "sinklab: plugin (level %d): %s\n", level, msg);
}

const sl_host SL (sl_host_services) = { sizeof (sl_host), log_line,
                                        SL (sl_gemm_host) };

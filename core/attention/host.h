/* host.h - what a plugin's kernels may ask of the host; numeric files. */
#ifndef SL_HOST_H
#define SL_HOST_H
#include <sinklab/plugin.h>

extern const sl_host SL (sl_host_services);
#endif

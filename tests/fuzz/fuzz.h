/* fuzz.h - what a fuzz target is: libFuzzer's function, which replay.c calls
** too. It returns 0, and aborts when something is wrong. */
#ifndef FUZZ_H
#define FUZZ_H
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t n);
#endif

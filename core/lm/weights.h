/* weights.h - the weights of a language model, read where they lie in its
** files: GGUF versions 1 to 3, safetensors, Hugging Face folders. */
#ifndef SL_WEIGHTS_H
#define SL_WEIGHTS_H
#include "base/error.h"
#include "lm/gguf.h"
#include "tensor/safetensors.h"
#include "tensor/tensor.h"
#include <stdint.h>

/* How numbers are packed: 'block' of them take 'bytes' bytes. */
typedef struct sl_weight_type {
  const char *name; /* as GGUF and safetensors call it: "F32", "Q4_K" */
  int number;       /* in GGUF; -1: only in safetensors */
  int block, bytes;
  int kind; /* of lm/dequantize.h; -1: known, but nothing reads it */
} sl_weight_type;

/* By name or by GGUF's number; NULL if there is none. */
const sl_weight_type *sl_weight_type_named (const char *name);
const sl_weight_type *sl_weight_type_numbered (uint32_t number);

/* *bytes = the size of this shape; -1 and a sentence without a subject
** ("of shape ...") if a row is not whole blocks or memory cannot hold it. */
int sl_weight_bytes (const sl_weight_type *type, int ndim, const ptrdiff_t *dim,
                     size_t *bytes, sl_error *e);

/* A tensor of a file. The shape is row-major, as Hugging Face has it: a matrix
** is (out, in), GGUF's sizes reversed. Name and data belong to the file. */
typedef struct sl_weight {
  const char *name;
  const sl_weight_type *type;
  int ndim; /* 0..SL_MAX_DIMS */
  ptrdiff_t dim[SL_MAX_DIMS];
  const char *data; /* at any byte; packed without gaps */
  size_t bytes;
} sl_weight;

typedef struct sl_weights sl_weights;

/* Open a GGUF file (or any part of a split one), a .safetensors file, an index of shards
** (*.safetensors.index.json) or a folder that has one of the last two. Files
** are mapped: nothing is copied, pages are read when they are used. Everything
** that the headers promise is checked against the files. The caller owns one
** reference. */
sl_weights *sl_weights_open (const char *path, sl_error *e);
sl_weights *sl_weights_retain (sl_weights *w);
void sl_weights_release (sl_weights *w); /* NULL is allowed */

const char *sl_weights_path (const sl_weights *w); /* as it was given */
/* Of the files without the last '/': where config.json and tokenizers are. */
const char *sl_weights_folder (const sl_weights *w);
/* The metadata of a GGUF file, the first of a split one; NULL: these are safetensors. */
const sl_gguf *sl_weights_gguf (const sl_weights *w);
/* The texts of the first safetensors file; *n of them. */
const sl_meta *sl_weights_meta (const sl_weights *w, size_t *n);

/* How many weights there are, in all files. */
size_t sl_weights_count (const sl_weights *w);
/* In the order of the file, i from 0. */
const sl_weight *sl_weights_get (const sl_weights *w, size_t i);
/* NULL and a sentence with the nearest name if there is none. */
const sl_weight *sl_weights_find (const sl_weights *w, const char *name,
                                  sl_error *e);
/* All files together. */
size_t sl_weights_bytes (const sl_weights *w);

/* Rows: all axes but the last taken as one. */
ptrdiff_t sl_weight_row_count (const sl_weight *w);
ptrdiff_t sl_weight_row_size (const sl_weight *w); /* numbers; 1 for ndim 0 */
size_t sl_weight_row_bytes (const sl_weight *w);
/* Rows first .. first + n - 1 (from 0) as plain numbers; w is of a type that is
** read and has these rows. 'out' holds n rows of that precision. Any thread. */
void sl_weight_rows (const sl_weight *w, ptrdiff_t first, ptrdiff_t n,
                     sl_dtype dtype, void *out);
/* 0, or -1 and a sentence if the type of w is not read. */
int sl_weight_readable (const sl_weight *w, sl_error *e);

/* Parts of w along its first axis, which has at least one: n from 'first', or
** one without the axis. No bounds check. */
sl_weight sl_weight_narrow (const sl_weight *w, ptrdiff_t first, ptrdiff_t n);
sl_weight sl_weight_select (const sl_weight *w, ptrdiff_t index);

/* 0 if no two of n weights of one file share a byte; else -1 and a sentence
** without a subject that names two. */
int sl_weights_disjoint (const sl_weight *w, size_t n, sl_error *e);

/* All of w as a tensor. F32 and F64 of that precision that lie aligned are
** shown where they are, and the tensor keeps 'file' (retained) alive; anything
** else is converted. */
sl_tensor *sl_weight_tensor (const sl_weight *w, sl_weights *file,
                             sl_dtype dtype, sl_error *e);

/* How many numbers are infinite or NaN; *where receives the index of the first
** one (row-major, from 0). w is of a type that is read. */
size_t sl_weight_nonfinite (const sl_weight *w, size_t *where);
#endif

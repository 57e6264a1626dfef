/* program.h - operations run at once; recorded, they replay without Lua,
** without the allocator and without shape checks, forwards and backwards. */
#ifndef SL_PROGRAM_H
#define SL_PROGRAM_H
#include "base/pool.h"
#include "ops/op.h"
#include "tensor/tensor.h"

typedef struct sl_program sl_program;

/* The state that is passed to every function that runs operations. */
typedef struct sl_context {
  sl_pool *pool;
  sl_program *recording; /* NULL: nothing is being recorded */
  sl_draw draw;          /* where random ops that run at once stand */
  void *observer;        /* attention that runs at once: sl_observer or NULL */
  int applied; /* with an observer: ops so far, the op_index of the next one */
} sl_context;

/* A pool of 'threads' (as sl_pool_new has it) and nothing being recorded; -1
** and a sentence on failure. Free it after a failure, too. */
int sl_context_init (sl_context *c, int threads, sl_error *e);
void sl_context_free (sl_context *c);

/* Run op on the inputs now, an op with units on the whole pool, and append it
** to the program that is being recorded. All inputs must have one precision.
** out[0..op's outputs-1] receive new tensors owned by the caller. On failure
** nothing is made, no out points to anything, and e names op and shapes. */
int sl_apply (sl_context *c, const sl_op *op, const void *attr, int n_in,
              sl_tensor *const *in, sl_tensor **out, sl_error *e);
/* The same for an op by name with one output and at least one input, whose
** precision decides; NULL on failure. */
sl_tensor *sl_apply_named (sl_context *c, const char *op, const void *attr,
                           int n_in, sl_tensor *const *in, sl_error *e);

/* Recording. begin .. sl_apply .. end; one at a time per context. Tensors that
** ops of the program make are its locals, every other input (parameters,
** constants) is shared by all replicas and read where it lies at each
** replay. */
sl_program *sl_program_begin (sl_context *c, sl_error *e);
void sl_program_end (sl_context *c, sl_program *p);
/* Frees p as soon as it has no replica left; NULL is allowed. */
void sl_program_free (sl_program *p);

/* Before the first replica (a replica keeps the settings of the time when it
** was made): gradients are wanted for t's whole storage (a model's parameters
** are one flat storage); the loss is this scalar. Both must be tensors that the
** program made or uses. */
int sl_program_want (sl_program *p, sl_tensor *t, sl_error *e);
int sl_program_loss (sl_program *p, sl_tensor *loss, sl_error *e);
/* t, which no op of the program made, becomes an input: each replica has its
** own copy of t's whole storage (starting with t's values), which the caller
** fills through sl_replica_value before a forward. */
int sl_program_input (sl_program *p, sl_tensor *t, sl_error *e);
/* 1: t's storage is an input. */
int sl_program_is_input (const sl_program *p, const sl_tensor *t);
/* 1: has an op that needs one thread. */
int sl_program_serial (const sl_program *p);
/* 1: some op of the program made or reads the storage of t. */
int sl_program_uses (const sl_program *p, const sl_tensor *t);
size_t sl_program_nodes (const sl_program *p);
/* The operation of node number 'node', from 0. */
const sl_op *sl_program_op (const sl_program *p, size_t node);
/* One line a node: number, op, shapes. The caller frees with sl_free. */
char *sl_program_text (const sl_program *p);

/* One worker's buffers for a program: locals, gradients, saved, scratch in one
** block. It keeps the program alive. */
typedef struct sl_replica sl_replica;
sl_replica *sl_replica_new (const sl_program *p, sl_error *e);
/* The same with less memory, for training: gradients of values that are not
** wanted share memory, and sl_replica_gradient gives none of them. The bits of
** all others are the same. */
sl_replica *sl_replica_new_training (const sl_program *p, sl_error *e);
void sl_replica_free (sl_replica *r);
size_t sl_replica_bytes (const sl_replica *r);

/* draw is copied (NULL: all zero); the observer sees this forward only.
** Replicas of one program may run on different threads at once; each is one
** thread's at a time. -1 when an op of the script failed (sl_program_serial):
** the rest did not run, and sl_replica_error has the sentence. */
int sl_replica_forward (sl_replica *r, const sl_draw *draw, void *observer);
const sl_error *sl_replica_error (const sl_replica *r);
/* After forward: gradients of seed * loss are ADDED to the gradients of wanted
** storages; those of locals start from zero at each call. Without a loss that
** depends on something wanted there is nothing to do. */
void sl_replica_backward (sl_replica *r, double seed);
/* Set the gradients of wanted storages to zero. */
void sl_replica_zero (sl_replica *r);
/* From now on 'data' holds the gradient of t's storage, which is wanted and
** which no op made. The next backward overwrites it, later ones add to it.
** 'data' has as many elements as the storage, is 64-byte aligned, and is zero
** at the first call: elements that the program does not use are not written.
** -1: the program computes no such gradient. */
int sl_replica_bind_gradient (sl_replica *r, const sl_tensor *t, void *data,
                              sl_error *e);

/* Where the time goes, node by node. 1: from now on each replay of r adds to
** seconds that start at zero; 0: no more, at no cost. -1: no memory. */
int sl_replica_profile (sl_replica *r, int on, sl_error *e);
/* Seconds spent in node number 'node' (from 0, in the order of
** sl_program_text); 0 without a profile. */
void sl_replica_times (const sl_replica *r, size_t node, double *forward,
                       double *backward);

/* This replica's value or gradient of a tensor that the program made or uses (a
** view of it counts); data is NULL for a gradient that is not computed and for
** a tensor that the program does not know. */
sl_view sl_replica_value (const sl_replica *r, const sl_tensor *t);
sl_view sl_replica_gradient (const sl_replica *r, const sl_tensor *t);

/* Compare backward with four-point differences in f64 for 'samples' randomly
** chosen elements of the wanted storages (0: all). *worst receives the largest
** |difference| / max (1, largest gradient), where each element counts with the
** best of three step sizes, so that a kink near it is no error. Program must be
** f64. The wanted values are changed while it runs and restored. */
int sl_program_check (const sl_program *p, size_t samples, uint64_t seed,
                      double *worst, sl_error *e);
#endif

/* npz.h - named arrays in numpy's .npz files: zip archives of .npy files. */
#ifndef SL_NPZ_H
#define SL_NPZ_H
#include "tensor/safetensors.h"

/* Write the tensors of s, uncompressed as numpy.savez does; its metadata has no
** place there. The file is whole or not there. Names differ and are not
** empty; beyond ASCII they are marked as UTF-8. */
int sl_npz_write (const char *path, const sl_tensors *s, sl_error *e);

/* Fill s, which the caller frees with sl_tensors_free, from a file of
** numpy.savez or savez_compressed; elements as in sl_npy_read. Its metadata have
** the members that are not read (no .npy files, elements that are no numbers)
** and why. Names that come twice, damaged and encrypted members are refused in a
** sentence. On failure s is empty. */
int sl_npz_read (const char *path, sl_tensors *s, sl_error *e);
#endif

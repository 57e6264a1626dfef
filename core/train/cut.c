/* cut.c - how a batch is cut into groups of shards. */
#include "train/train.h"

/* The values of a shard should stay in this part of the second-level cache. */
static const double cache_bytes = 256 << 10;
/* Sequences are cut alike on every machine, so that results are. */
enum { GROUPS = 8 };
/* A gradient beyond the caches costs as much as the products of some dozen
** tokens: models with more parameters than this get groups of at least so many
** tokens. */
enum { LARGE = 1 << 20, LARGE_TOKENS = 512 };

/* The largest divisor of n that is at most limit (at least 1). */
static long divisor (long n, long limit) {
  long k = limit < 1 ? 1 : limit < n ? limit : n;
  while (n % k != 0) k--;
  return k;
}

/* About how many tokens a shard should have. Few tokens a replay cost little as
** long as there are 64; where not even 16 fit, the cache is lost anyway and
** long shards make the best products (measured with sinklab_bench). */
static long shard_tokens (double bytes_per_token) {
  const double fit = cache_bytes / bytes_per_token;
  return fit >= 256 || fit < 16 ? 256 : 64;
}

int sl_trainer_cut (long batch, long seq_len, size_t parameters,
                    double bytes_per_token, long *shard, long *groups,
                    sl_error *e) {
  long most = GROUPS, per_group;
  if (parameters > LARGE && batch * seq_len / LARGE_TOKENS < most) {
    most = batch * seq_len / LARGE_TOKENS;
    if (most < 2) most = 2;
  }
  if (*groups == 0) *groups = divisor (batch, most);
  if (batch % *groups != 0)
    return sl_fail (e, "a batch of %ld cannot be cut into %ld groups", batch,
                    *groups);
  per_group = batch / *groups;
  if (*shard == 0)
    *shard = divisor (per_group, shard_tokens (bytes_per_token) / seq_len);
  if (per_group % *shard != 0)
    return sl_fail (e,
                    "a group of %ld sequences cannot be cut into shards of %ld",
                    per_group, *shard);
  return 0;
}

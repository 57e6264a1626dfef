/* npz.c - named arrays in numpy's .npz files: zip archives of .npy files. */
#include "tensor/npz.h"
#include "base/file.h"
#include "base/mapping.h"
#include "base/memory.h"
#include "tensor/npy.h"
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <unzip.h>
#include <zip.h>
#include <zlib.h>

enum {
  NAME_SIZE = 1024,
  MOST_MEMBERS = 1 << 20,
  PORTION = 1 << 30,  /* zlib counts in unsigned int */
  UTF8_NAME = 1 << 11 /* general purpose bit of zip, APPNOTE.TXT 4.4.4 */
};
/* deflate makes at most 1032 bytes of one (zlib's documentation): what promises
** more is damaged, and no memory is asked for on its word. */
static const uint64_t MOST_INFLATED = 1032;

/* Write. */

static int is_ascii (const char *text) {
  while (*text > 0) text++;
  return *text == '\0';
}

static int write_member (zipFile zip, const sl_named *item, sl_error *e) {
  char name[NAME_SIZE];
  zip_fileinfo info = { .tmz_date = { .tm_mday = 1, .tm_year = 1980 } };
  size_t n;
  char *bytes;
  int code, length = snprintf (name, sizeof name, "%s.npy", item->name);
  if (length < 0 || length >= NAME_SIZE)
    return sl_fail (e, "the name '%.40s...' is too long", item->name);
  bytes = sl_npy_encode (item->tensor, &n, e);
  if (bytes == NULL) return -1;
  code = zipOpenNewFileInZip4_64 (
      zip, name, &info, NULL, 0, NULL, 0, NULL, 0, 0, 0, -MAX_WBITS,
      DEF_MEM_LEVEL, Z_DEFAULT_STRATEGY, NULL, 0, 0,
      is_ascii (name) ? 0 : UTF8_NAME, n >= UINT32_MAX);
  for (size_t at = 0; code == ZIP_OK && at < n; at += PORTION)
    code = zipWriteInFileInZip (
        zip, bytes + at, (unsigned)(n - at < PORTION ? n - at : PORTION));
  if (code == ZIP_OK) code = zipCloseFileInZip (zip);
  sl_free (bytes);
  if (code == ZIP_OK) return 0;
  return sl_fail (e, "cannot write '%s': %s", name,
                  code == ZIP_ERRNO ? strerror (errno)
                                    : "the archive refused it");
}

static int check_names (const sl_tensors *s, sl_error *e) {
  for (size_t i = 0; i < s->n; i++) {
    if (s->item[i].name[0] == '\0') return sl_fail (e, "a name is empty");
    for (size_t j = 0; j < i; j++)
      if (strcmp (s->item[i].name, s->item[j].name) == 0)
        return sl_fail (e, "the name '%s' comes twice", s->item[i].name);
  }
  return 0;
}

int sl_npz_write (const char *path, const sl_tensors *s, sl_error *e) {
  char name[PATH_MAX];
  zipFile zip;
  int status = 0;
  if (check_names (s, e) != 0) return sl_fail_within (e, "%s", path);
  if (sl_file_beside (path, name, sizeof name, e) != 0) return -1;
  zip = zipOpen64 (name, APPEND_STATUS_CREATE);
  if (zip == NULL) status = sl_fail (e, "cannot write: %s", strerror (errno));
  for (size_t i = 0; status == 0 && i < s->n; i++)
    status = write_member (zip, &s->item[i], e);
  if (zip != NULL && zipClose (zip, NULL) != ZIP_OK && status == 0)
    status = sl_fail (e, "cannot write: %s", strerror (errno));
  if (status == 0) return sl_file_replace (name, path, e);
  unlink (name);
  return sl_fail_within (e, "%s", path);
}

/* Read. */

/* The bytes of the current member, their number in *n. */
static char *inflate_member (unzFile zip, const unz_file_info64 *info,
                             size_t *n, sl_error *e) {
  uint64_t size = info->uncompressed_size, got = 0;
  int part = 1;
  char *bytes;
  if (info->flag & 1) {
    sl_fail (e, "it is encrypted");
    return NULL;
  }
  if (size / MOST_INFLATED > info->compressed_size || size > SIZE_MAX - 1) {
    sl_fail (e, "it is damaged: %llu bytes cannot come out of %llu",
             (unsigned long long)size,
             (unsigned long long)info->compressed_size);
    return NULL;
  }
  if (unzOpenCurrentFile (zip) != UNZ_OK) {
    sl_fail (e, "it is damaged, or compressed in a way that is not read");
    return NULL;
  }
  bytes = sl_alloc ((size_t)size + 1, 1);
  while (bytes != NULL && part > 0 && got < size) {
    uint64_t left = size - got;
    part = unzReadCurrentFile (zip, bytes + got,
                               (unsigned)(left < PORTION ? left : PORTION));
    if (part > 0) got += (uint64_t)part;
  }
  /* The sum of the bytes is checked by closing. */
  if (unzCloseCurrentFile (zip) == UNZ_OK && got == size && bytes != NULL) {
    *n = (size_t)size;
    return bytes;
  }
  if (bytes == NULL)
    sl_fail (e, "out of memory for %llu bytes", (unsigned long long)size);
  else
    sl_fail (e, "it is damaged");
  sl_free (bytes);
  return NULL;
}

/* Note in the metadata of s why the member of that name is not read. */
static int skip (sl_tensors *s, const char *name, const char *why,
                 sl_error *e) {
  sl_meta *m = &s->meta[s->n_meta++];
  m->key = sl_alloc_text (name, strlen (name));
  m->value = sl_alloc_text (why, strlen (why));
  return m->key && m->value ? 0 : sl_fail (e, "out of memory for a name");
}

/* Add the current member to s. */
static int read_member (unzFile zip, sl_tensors *s, sl_error *e) {
  char name[NAME_SIZE];
  unz_file_info64 info;
  size_t length, n;
  char *bytes;
  int foreign;
  sl_named *item = &s->item[s->n];
  if (unzGetCurrentFileInfo64 (zip, &info, name, sizeof name - 1, NULL, 0, NULL,
                               0) != UNZ_OK)
    return sl_fail (e, "the list of members is damaged");
  name[info.size_filename < sizeof name ? info.size_filename
                                        : sizeof name - 1] = '\0';
  length = strlen (name);
  if (length != info.size_filename)
    return sl_fail (e, "the name of a member is damaged or too long");
  if (length <= 4 || strcmp (name + length - 4, ".npy") != 0)
    return skip (s, name, "it is no .npy file", e);
  length -= 4;
  for (size_t i = 0; i < s->n; i++)
    if (strlen (s->item[i].name) == length &&
        memcmp (s->item[i].name, name, length) == 0)
      return sl_fail (e, "member '%s' comes twice", name);
  bytes = inflate_member (zip, &info, &n, e);
  if (bytes == NULL) return sl_fail_within (e, "member '%s'", name);
  item->tensor = sl_npy_decode (bytes, n, &foreign, e);
  sl_free (bytes);
  if (item->tensor == NULL && foreign) {
    const sl_error why = *e;
    return skip (s, name, why.text, e);
  }
  if (item->tensor == NULL) return sl_fail_within (e, "member '%s'", name);
  item->name = sl_alloc_text (name, length);
  s->n++;
  return item->name != NULL ? 0 : sl_fail (e, "out of memory for a name");
}

/* Whether the file is the archive without members: the record of its end alone,
** 22 bytes of "PK\5\6" and zeros, which minizip does not open. A file that was cut
** off in this record counts no members either, whatever went before. */
static int is_empty_archive (const sl_mapping *m) {
  static const char end[22] = { 'P', 'K', 5, 6 };
  return m->size == sizeof end && memcmp (m->data, end, sizeof end) == 0;
}

static int read_members (unzFile zip, sl_tensors *s, sl_error *e) {
  unz_global_info64 global;
  int code;
  if (unzGetGlobalInfo64 (zip, &global) != UNZ_OK ||
      global.number_entry > MOST_MEMBERS)
    return sl_fail (e, "the list of members is damaged");
  s->item = sl_alloc ((size_t)global.number_entry + 1, sizeof *s->item);
  s->meta = sl_alloc ((size_t)global.number_entry + 1, sizeof *s->meta);
  if (!s->item || !s->meta) return sl_fail (e, "out of memory for the members");
  code = global.number_entry > 0 ? unzGoToFirstFile (zip)
                                 : UNZ_END_OF_LIST_OF_FILE;
  while (code == UNZ_OK && s->n + s->n_meta < global.number_entry) {
    if (read_member (zip, s, e) != 0) return -1;
    code = unzGoToNextFile (zip);
  }
  if (code != UNZ_END_OF_LIST_OF_FILE ||
      s->n + s->n_meta != global.number_entry)
    return sl_fail (e, "the list of members is damaged");
  return 0;
}

int sl_npz_read (const char *path, sl_tensors *s, sl_error *e) {
  sl_mapping bytes;
  unzFile zip;
  int status;
  *s = (sl_tensors){ 0 };
  /* minizip would wait for the writer of a pipe */
  if (sl_map_file (path, &bytes, e) != 0) return -1;
  status = is_empty_archive (&bytes);
  sl_unmap (&bytes);
  if (status) return 0;
  zip = unzOpen64 (path);
  if (zip == NULL)
    return sl_fail (e, "%s: not a .npz file, or it cannot be read", path);
  status = read_members (zip, s, e);
  if (status == 0 && s->n + s->n_meta == 0)
    status = sl_fail (e, "the list of members is cut off");
  unzClose (zip);
  if (status == 0) return 0;
  sl_tensors_free (s);
  return sl_fail_within (e, "%s", path);
}

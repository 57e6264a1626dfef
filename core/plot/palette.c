/* palette.c - the colours of heat maps and lines. */
#include "plot/palette.h"
#include <string.h>

/* Nine-class Blues and Greys and eleven-class RdBu of Cynthia Brewer
** (colorbrewer2.org); viridis and magma of Smith and van der Walt and cividis
** of Nunez, Anderton and Renslow (2018), at their 32nds. */
static const unsigned blues[] = { 0xf7fbff, 0xdeebf7, 0xc6dbef,
                                  0x9ecae1, 0x6baed6, 0x4292c6,
                                  0x2171b5, 0x08519c, 0x08306b };
static const unsigned rdbu[] = { 0x67001f, 0xb2182b, 0xd6604d, 0xf4a582,
                                 0xfddbc7, 0xf7f7f7, 0xd1e5f0, 0x92c5de,
                                 0x4393c3, 0x2166ac, 0x053061 };
static const unsigned viridis[] = {
  0x440154, 0x470d60, 0x48186a, 0x482374, 0x472d7b, 0x453781, 0x424086,
  0x3e4989, 0x3b528b, 0x375b8d, 0x33638d, 0x2f6b8e, 0x2c728e, 0x297a8e,
  0x26828e, 0x23898e, 0x21918c, 0x1f988b, 0x1fa088, 0x22a785, 0x28ae80,
  0x32b67a, 0x3fbc73, 0x4ec36b, 0x5ec962, 0x70cf57, 0x84d44b, 0x98d83e,
  0xaddc30, 0xc2df23, 0xd8e219, 0xece51b, 0xfde725
};

static const unsigned cividis[] = {
  0x00224e, 0x00285b, 0x002e6a, 0x053371, 0x1a386f, 0x273e6e, 0x32436d,
  0x3b496c, 0x434e6c, 0x4b546c, 0x535a6d, 0x5a5f6e, 0x61656f, 0x686a71,
  0x6f7073, 0x767676, 0x7d7c78, 0x848279, 0x8c8878, 0x938e78, 0x9b9476,
  0xa39a74, 0xaba072, 0xb4a76f, 0xbcae6c, 0xc4b468, 0xcdbb63, 0xd5c25e,
  0xdec958, 0xe7d150, 0xf0d846, 0xf9e03a, 0xfee838
};
static const unsigned magma[] = {
  0x000004, 0x030312, 0x0a0822, 0x130d34, 0x1d1147, 0x29115a, 0x36106b,
  0x440f76, 0x51127c, 0x5d177f, 0x6a1c81, 0x762181, 0x832681, 0x902a81,
  0x9c2e7f, 0xaa337d, 0xb73779, 0xc43c75, 0xd0416f, 0xdc4869, 0xe75263,
  0xef5d5e, 0xf56b5c, 0xf9795d, 0xfc8961, 0xfd9869, 0xfea772, 0xfeb67c,
  0xfec488, 0xfed395, 0xfde2a3, 0xfcf0b2, 0xfcfdbf
};
static const unsigned greys[] = { 0xffffff, 0xf0f0f0, 0xd9d9d9,
                                  0xbdbdbd, 0x959595, 0x727272,
                                  0x515151, 0x242424, 0x000000 };

#define PALETTE(name) \
  { #name, sizeof name / sizeof *name, name }
static const sl_palette palettes[] = { PALETTE (blues),   PALETTE (viridis),
                                       PALETTE (cividis), PALETTE (magma),
                                       PALETTE (greys),   PALETTE (rdbu) };
enum { N_PALETTES = sizeof palettes / sizeof *palettes };

const sl_rgb SL_NO_VALUE = { 0xa6, 0xa6, 0xa6 };
const sl_rgb SL_MASKED = { 0xec, 0xec, 0xec };

const sl_palette *sl_palette_find (const char *name, sl_error *e) {
  const char *names[N_PALETTES];
  if (!name) return &palettes[0];
  for (int i = 0; i < N_PALETTES; i++) {
    names[i] = palettes[i].name;
    if (!strcmp (name, names[i])) return &palettes[i];
  }
  sl_fail_not_one_of (e, name, N_PALETTES, names, "palette '%.64s' is unknown",
                      name);
  return NULL;
}

static sl_rgb unpack (unsigned c) {
  return (sl_rgb){ (unsigned char)(c >> 16 & 255),
                   (unsigned char)(c >> 8 & 255), (unsigned char)(c & 255) };
}

static unsigned char mixer (unsigned char a, unsigned char b, double f) {
  return (unsigned char)(a + f * (b - a) + 0.5);
}

sl_rgb sl_palette_at (const sl_palette *p, double t) {
  double at = (t > 0 ? t < 1 ? t : 1 : 0) * (p->n - 1);
  int i = (int)at < p->n - 1 ? (int)at : p->n - 2;
  sl_rgb a = unpack (p->point[i]), b = unpack (p->point[i + 1]);
  double f = at - i;
  return (sl_rgb){ mixer (a.r, b.r, f), mixer (a.g, b.g, f),
                   mixer (a.b, b.b, f) };
}

sl_rgb sl_line_colour (int i) {
  /* Okabe and Ito (2008), yellow last: it is the weakest on white. */
  static const unsigned cycle[SL_LINE_COLOURS] = { 0x0072b2, 0xd55e00, 0x009e73,
                                                   0xe69f00, 0xcc79a7, 0x56b4e9,
                                                   0x000000, 0xf0e442 };
  return unpack (cycle[i % SL_LINE_COLOURS]);
}

static int square (int x) {
  return x * x;
}

static int distance (sl_rgb a, sl_rgb b) {
  return square (a.r - b.r) + square (a.g - b.g) + square (a.b - b.b);
}

/* Nearest of the six levels of the terminal's colour cube. */
static int level (int x) {
  return x < 48 ? 0 : x < 115 ? 1 : (x - 35) / 40;
}

int sl_terminal_colour (sl_rgb c) {
  static const unsigned char step[6] = { 0, 95, 135, 175, 215, 255 };
  int r = level (c.r), g = level (c.g), b = level (c.b);
  int grey = ((c.r + c.g + c.b) / 3 - 3) / 10;
  sl_rgb cube = { step[r], step[g], step[b] }, ramp;
  if (grey < 0) grey = 0;
  if (grey > 23) grey = 23;
  ramp.r = ramp.g = ramp.b = (unsigned char)(8 + 10 * grey);
  return distance (c, ramp) < distance (c, cube) ? 232 + grey
                                                 : 16 + 36 * r + 6 * g + b;
}

/* legend.c - the colour bar and the legend of a layout: measured, placed. */
#include "plot/compose.h"
#include <string.h>

enum { BAR_WIDTH = 9, SAMPLE_WIDTH = 18 }; /* points */

/* ---- colour bars ---- */

double sl_bar_need (sl_work *w, sl_bar *bar, const sl_heat_data *heat,
                    double height) {
  bar->heat = heat;
  bar->box.h = height;
  sl_fit_ticks (w, NULL, bar, SL_Y,
                height - SL_ARROW * (bar->above + bar->below), &bar->ticks,
                NULL);
  return BAR_WIDTH + SL_TICK_LENGTH + 2 + sl_widest_tick (w, &bar->ticks) +
         (*heat->quantity ? SL_GAP : 0) +
         sl_block_size (w, SL_AXIS_LABEL, heat->quantity, height).h;
}

void sl_place_bar (sl_work *w, sl_bar *bar, double x, double y) {
  double height = bar->box.h, high = w->font.height[SL_TICK_LABEL], text;
  bar->box = (sl_box){ x, y + SL_ARROW * bar->above, BAR_WIDTH,
                       height - SL_ARROW * (bar->above + bar->below) };
  text = x + BAR_WIDTH + SL_TICK_LENGTH + 2;
  for (int i = 0; i < bar->ticks.n; i++)
    sl_put_tick (w, &bar->ticks, i, 0, text,
                 bar->box.y - high / 2 +
                     sl_tick_at (NULL, bar, SL_Y, &bar->ticks, i, bar->box.h));
  sl_put_text (w, SL_AXIS_LABEL, 1, bar->heat->quantity, height,
               text + sl_widest_tick (w, &bar->ticks) + SL_GAP, y + height / 2);
}

/* ---- legends ---- */

double sl_legend_need (sl_work *w, const sl_panel *p, sl_legend *legend,
                       double *high) {
  double most = 0;
  const char *name;
  int entries = 0;
  for (int i = 0; (name = sl_axes_entry (p, i)) != NULL; i++) {
    if (!*name) continue;
    entries++;
    sl_widen (&most, sl_font_width (&w->font, SL_LEGEND, name, strlen (name)));
  }
  *high = 0;
  if (entries == 0) return 0;
  legend->panel = p;
  legend->step = w->font.height[SL_LEGEND] + 2;
  *high = entries * legend->step;
  return SAMPLE_WIDTH + 4 + most;
}

void sl_place_legend (sl_work *w, sl_legend *l, double x, double y) {
  double high = w->font.height[SL_LEGEND];
  const char *name;
  if (!l->panel) return;
  l->first = (sl_box){ x, y, SAMPLE_WIDTH, high };
  for (int i = 0; (name = sl_axes_entry (l->panel, i)) != NULL; i++) {
    size_t n = strlen (name);
    if (n == 0) continue;
    sl_add_label (w, SL_LEGEND, 0, name, n,
                  (sl_box){ x + SAMPLE_WIDTH + 4, y,
                            sl_font_width (&w->font, SL_LEGEND, name, n),
                            high });
    y += l->step;
  }
}

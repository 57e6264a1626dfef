/* shuffle.h - elements of two vectors in any order, on every compiler. */
#ifndef SL_SHUFFLE_H
#define SL_SHUFFLE_H

/* The elements of a, then b, that the list names; 'list' is the type of a
** vector of as many whole numbers of the same size, which gcc 11 needs. */
#if defined __clang__ || __GNUC__ >= 12
#define SL_SHUFFLE(list, a, b, ...) __builtin_shufflevector (a, b, __VA_ARGS__)
#else
#define SL_SHUFFLE(list, a, b, ...) \
  __builtin_shuffle (a, b, (list){ __VA_ARGS__ })
#endif
#endif

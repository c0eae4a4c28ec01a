/* The host variant of the tests' function: y = 2 * x + 1 over the product of
 * two symbols. */
#include <stdint.h>

void scale(void **pointers, const int64_t *symbols) {
  const float *x = pointers[0];
  float *y = pointers[1];
  for (int64_t i = 0; i < symbols[0] * symbols[1]; ++i)
    y[i] = 2 * x[i] + 1;
}

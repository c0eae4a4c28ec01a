/* Loads a package, runs its function residual_rms_norm, and checks the results.
 *
 *   cc residual_rms_norm.c $(pkg-config --cflags --libs greta-runtime) -o
 * example
 *   ./example norm.greta [device]
 *
 * x and residual are [3, 4096] f16 of ones, w is 4096 twos: every element of
 * the sum is 2, and so is every element of the norm (the eps of 1e-5 is below
 * what f16 shows).
 */
#include <greta_runtime.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 3, COLUMNS = 4096, F16_ONE = 0x3c00, F16_TWO = 0x4000 };

static void check(greta_status status) {
  if (status == GRETA_OK)
    return;
  fprintf(stderr, "error: %s\n", greta_last_error());
  exit(1);
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: %s PACKAGE [DEVICE]\n", argv[0]);
    return 2;
  }
  const char *path = argv[1], *spec = argc > 2 ? argv[2] : NULL;
  static uint16_t x[ROWS * COLUMNS], w[COLUMNS], y[2][ROWS * COLUMNS];
  for (size_t i = 0; i < ROWS * COLUMNS; ++i)
    x[i] = F16_ONE;
  for (size_t i = 0; i < COLUMNS; ++i)
    w[i] = F16_TWO;

  greta_device *device;
  greta_stream *stream;
  greta_package *package;
  greta_function *function;
  check(greta_device_open(spec, &device)); /* NULL: hip, else vulkan or host */
  check(greta_stream_create(device, &stream));
  check(greta_package_open(path, &package));
  check(greta_function_load(device, package, "residual_rms_norm", NULL, 0,
                            &function)); /* the variant for this device */

  greta_buffer *tokens, *weight, *sum, *norm;
  check(greta_buffer_create(device, sizeof(x), &tokens));
  check(greta_buffer_create(device, sizeof(w), &weight));
  check(greta_buffer_create(device, sizeof(y[0]), &sum));
  check(greta_buffer_create(device, sizeof(y[1]), &norm));
  check(greta_buffer_write(stream, tokens, 0, x, sizeof(x)));
  check(greta_buffer_write(stream, weight, 0, w, sizeof(w)));

  const int64_t matrix[] = {ROWS, COLUMNS}, vector[] = {COLUMNS};
  const greta_tensor arguments[] = {
      {.buffer = tokens, .shape = matrix, .rank = 2},
      {.buffer = tokens, .shape = matrix, .rank = 2},
      {.buffer = weight, .shape = vector, .rank = 1}};
  const greta_tensor results[] = {{.buffer = sum, .shape = matrix, .rank = 2},
                                  {.buffer = norm, .shape = matrix, .rank = 2}};
  check(greta_function_launch(function, stream, arguments, 3, results, 2));
  check(greta_buffer_read(stream, sum, 0, y[0], sizeof(y[0])));
  check(greta_buffer_read(stream, norm, 0, y[1], sizeof(y[1])));

  size_t wrong = 0;
  for (size_t i = 0; i < ROWS * COLUMNS; ++i)
    wrong += (y[0][i] != F16_TWO) + (y[1][i] != F16_TWO);
  printf("variant %s: %zu of %d results are not 2.0\n",
         greta_function_variant(function), wrong, 2 * ROWS * COLUMNS);

  greta_buffer_destroy(tokens);
  greta_buffer_destroy(weight);
  greta_buffer_destroy(sum);
  greta_buffer_destroy(norm);
  greta_function_destroy(function);
  greta_package_destroy(package);
  greta_stream_destroy(stream);
  check(greta_device_close(device));
  return wrong != 0;
}

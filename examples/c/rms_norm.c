/* Loads a package, runs its function rms_norm on the first device there is, and
 * prints the first results.
 *
 *   clang-22 examples/c/rms_norm.c -Iruntime/include -Lbuild/lib
 * -lgreta_runtime -Wl,-rpath,build/lib -o rms_norm
 *   ./rms_norm norm.greta [device]
 *
 * x is [3, 4096] f16 of ones, w is 4096 twos: every result is 2 (the eps of
 * 1e-5 is below what f16 shows).
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
    fprintf(stderr, "usage: rms_norm PACKAGE [DEVICE]\n");
    return 2;
  }
  greta_device *device;
  greta_stream *stream;
  greta_package *package;
  greta_function *function;
  check(greta_device_open(argc > 2 ? argv[2] : NULL, &device));
  check(greta_stream_create(device, &stream));
  check(greta_package_open(argv[1], &package));
  check(greta_function_load(device, package, "rms_norm", NULL, 0, &function));

  static uint16_t x[ROWS * COLUMNS], w[COLUMNS], y[ROWS * COLUMNS];
  for (size_t i = 0; i < ROWS * COLUMNS; ++i)
    x[i] = F16_ONE;
  for (size_t i = 0; i < COLUMNS; ++i)
    w[i] = F16_TWO;

  greta_buffer *x_buffer, *w_buffer, *y_buffer;
  check(greta_buffer_create(device, sizeof(x), &x_buffer));
  check(greta_buffer_create(device, sizeof(w), &w_buffer));
  check(greta_buffer_create(device, sizeof(y), &y_buffer));
  check(greta_buffer_write(stream, x_buffer, 0, x, sizeof(x)));
  check(greta_buffer_write(stream, w_buffer, 0, w, sizeof(w)));

  const int64_t matrix[] = {ROWS, COLUMNS}, vector[] = {COLUMNS};
  const greta_tensor arguments[] = {{x_buffer, 0, matrix, 2},
                                    {w_buffer, 0, vector, 1}};
  const greta_tensor result = {y_buffer, 0, matrix, 2};
  check(greta_function_launch(function, stream, arguments, 2, &result, 1));
  check(greta_buffer_read(stream, y_buffer, 0, y, sizeof(y)));

  size_t wrong = 0;
  for (size_t i = 0; i < ROWS * COLUMNS; ++i)
    wrong += y[i] != F16_TWO;
  printf("variant %s: %zu of %d results are not 2.0\n",
         greta_function_variant(function), wrong, ROWS * COLUMNS);

  greta_buffer_destroy(x_buffer);
  greta_buffer_destroy(w_buffer);
  greta_buffer_destroy(y_buffer);
  greta_function_destroy(function);
  greta_package_destroy(package);
  greta_stream_destroy(stream);
  check(greta_device_close(device));
  return wrong != 0;
}

/* y = 2 * x + y with the kernel of packages_in_c.py, in place: ./saxpy [device]
 *
 * saxpy.h is greta-translate's: the package's bytes, and a load and a launch
 * function for saxpy. The grid is in the package, over n.
 */
#include "saxpy.h"

#include <stdio.h>
#include <stdlib.h>

enum { N = 1000 };

static void check(greta_status status) {
  if (status == GRETA_OK)
    return;
  fprintf(stderr, "error: %s\n", greta_last_error());
  exit(1);
}

int main(int argc, char **argv) {
  static float x[N], y[N];
  for (int i = 0; i < N; ++i) {
    x[i] = (float)i;
    y[i] = 1;
  }
  greta_device *device;
  greta_stream *stream;
  greta_package *package;
  greta_function *function;
  greta_buffer *x_there, *y_there;
  check(greta_device_open(argc > 1 ? argv[1] : NULL, &device));
  check(greta_stream_create(device, &stream));
  check(greta_package_from_memory(saxpy_package, sizeof(saxpy_package),
                                  &package));
  check(saxpy_saxpy_load(device, package, &function));
  check(greta_buffer_create(device, sizeof(x), &x_there));
  check(greta_buffer_create(device, sizeof(y), &y_there));
  check(greta_buffer_write(stream, x_there, 0, x, sizeof(x)));
  check(greta_buffer_write(stream, y_there, 0, y, sizeof(y)));
  check(saxpy_saxpy_launch(function, stream, N, N, x_there, y_there, 2.0f, N,
                           y_there));
  check(greta_buffer_read(stream, y_there, 0, y, sizeof(y)));

  int wrong = 0;
  for (int i = 0; i < N; ++i)
    wrong += y[i] != 2 * x[i] + 1;
  printf("%d of %d results are not 2 * x + 1\n", wrong, N);
  greta_buffer_destroy(x_there);
  greta_buffer_destroy(y_there);
  greta_function_destroy(function);
  greta_package_destroy(package);
  greta_stream_destroy(stream);
  check(greta_device_close(device));
  return wrong != 0;
}

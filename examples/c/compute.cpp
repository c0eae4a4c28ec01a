// A layer of GEMMs as a graph, with the functions that are shipped beside the
// runtime: what CUDA programs take cuBLAS and CUDA Graphs for
// (docs/guide/runtime.md).
//
//   c++ -std=c++17 compute.cpp $(pkg-config --cflags --libs greta-runtime) -o
//   compute
//   ./compute [device]
//
// x is [4, 96] ones and w [96, 96] halves. Each replay multiplies by w, which
// makes 48 times as much of every element, and asks for the result.
#include <greta_runtime.hpp>

#include <cstdio>
#include <vector>

int main(int argc, char **argv) try {
  constexpr int64_t rows = 4, columns = 96;
  greta::Runtime runtime(argc > 1 ? argv[1] : "");
  greta::Stream stream = runtime.stream();
  greta::Compute compute(runtime);

  std::vector<float> x(rows * columns, 1.0f), w(columns * columns, 0.5f);
  greta::Buffer xBuffer = runtime.allocate(x.size() * 4),
                wBuffer = runtime.allocate(w.size() * 4),
                yBuffer = runtime.allocate(x.size() * 4);
  stream.write(xBuffer, x.data(), x.size() * 4);
  stream.write(wBuffer, w.data(), w.size() * 4);
  greta::Tensor xTensor(&xBuffer, {rows, columns}),
      wTensor(&wBuffer, {columns, columns}), yTensor(&yBuffer, {rows, columns});

  greta::Graph graph = stream.capture([&] {
    compute.gemm(stream, xTensor, wTensor, yTensor, "matmul_f32");
    stream.copy(xBuffer, yBuffer, x.size() * 4);
  });
  float wanted = 1;
  int wrong = 0;
  for (int turn = 0; turn < 3; ++turn) {
    stream.launch(graph);
    wanted *= 48;
    stream.read(yBuffer, x.data(), x.size() * 4);
    for (float element : x)
      wrong += element != wanted;
  }
  std::printf("%d of %zu results are wrong\n", wrong, 3 * x.size());
  return wrong != 0;
} catch (const greta::Error &error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return 1;
}

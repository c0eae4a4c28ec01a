// Bench.cpp: GPU times. One measurement is a graph of many launches between two
// events; the launches walk through several sets of buffers, so that a
// memory-bound kernel does not find its data in a cache. The copy that ratios
// are quoted against runs in the same process.
#include "Options.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>

namespace greta_run {
namespace {

using nlohmann::json;

constexpr size_t cacheBytes =
    256u << 20; // several times the largest L2 or Infinity Cache

double median(std::vector<double> V) {
  std::sort(V.begin(), V.end());
  size_t N = V.size();
  return N % 2 ? V[N / 2] : (V[N / 2 - 1] + V[N / 2]) / 2;
}

// Device time of one replay.
double timed(greta::Runtime &Runtime, greta::Stream &Stream,
             const greta::Graph &Graph) {
  greta::Event Start = Runtime.event(), End = Runtime.event();
  Stream.record(Start);
  Stream.launch(Graph);
  Stream.record(End);
  Stream.synchronize();
  return End.since(Start);
}

size_t parseBytes(const std::string &Text) {
  size_t Used = 0;
  unsigned long long N = 0;
  try {
    N = std::stoull(Text, &Used);
  } catch (const std::exception &) {
    Used = 0;
  }
  std::string Unit = Used ? Text.substr(Used) : "?";
  unsigned Shift = Unit.empty()  ? 0
                   : Unit == "K" ? 10
                   : Unit == "M" ? 20
                   : Unit == "G" ? 30
                                 : 99;
  if (Shift == 99 || N == 0 || N > (SIZE_MAX >> 1 >> Shift))
    throw std::runtime_error("--bench-copy=" + Text +
                             ": not a number of bytes (256M, 1G)");
  return static_cast<size_t>(N) << Shift;
}

} // namespace

json bench(Session &S, const std::vector<std::vector<uint8_t>> &Data,
           const Options &O) {
  size_t Bytes = 0;
  for (size_t B : S.ArgumentBytes)
    Bytes += B;
  for (size_t B : S.ResultBytes)
    Bytes += B;
  size_t ResultsPerSet = O.Chain ? 0 : S.ResultBytes.size();
  unsigned Sets = O.Rotate;
  if (!Sets)
    Sets = static_cast<unsigned>(
        std::min<size_t>(64, 1 + cacheBytes / std::max<size_t>(Bytes, 1)));

  // The session's own buffers are the first set.
  std::vector<std::vector<greta::Buffer>> Buffers(Sets);
  std::vector<std::vector<greta::Tensor>> Arguments{S.Arguments},
      Results{S.Results};
  for (unsigned I = 1; I < Sets; ++I) {
    std::vector<greta::Buffer> &Own = Buffers[I];
    Own.reserve(S.ArgumentBytes.size() + S.ResultBytes.size());
    Arguments.push_back(S.Arguments);
    Results.push_back(S.Results);
    for (size_t A = 0; A < S.ArgumentBytes.size(); ++A) {
      Own.push_back(S.Runtime.allocate(S.ArgumentBytes[A]));
      S.Stream.write(Own.back(), Data[A].data(), Data[A].size());
      Arguments[I][A].buffer = &Own.back();
    }
    for (size_t R = 0; R < ResultsPerSet; ++R) {
      Own.push_back(S.Runtime.allocate(S.ResultBytes[R]));
      Results[I][R].buffer = &Own.back();
    }
  }
  unsigned Next = 0;
  auto Record = [&](unsigned Launches) {
    return S.Stream.capture([&] {
      for (unsigned L = 0; L < Launches; ++L, ++Next)
        S.Function.launch(S.Stream, Arguments[Next % Sets],
                          Results[Next % Sets]);
    });
  };
  // Every set is touched once before anything counts; the second time tells how
  // long a launch is.
  using Clock = std::chrono::steady_clock;
  Clock::time_point Begin = Clock::now();
  greta::Graph Warm = Record(Sets);
  timed(S.Runtime, S.Stream, Warm);
  double Once = timed(S.Runtime, S.Stream, Warm) / Sets;
  unsigned Launches = O.Launches;
  if (!Launches)
    Launches = static_cast<unsigned>(std::clamp(
        std::ceil(1000 * O.BatchMs / std::max(Once, 0.1)), 1.0, 1000.0));
  // Whole turns through the sets keep every measurement alike.
  if (!O.Launches && Launches > Sets)
    Launches = (Launches + Sets - 1) / Sets * Sets;
  std::vector<double> Times;
  greta::Graph Graph = Record(Launches);
  while (Clock::now() - Begin < std::chrono::milliseconds(O.WakeMs))
    timed(S.Runtime, S.Stream, Graph);
  for (unsigned R = 0; R < O.Reps; ++R)
    Times.push_back(timed(S.Runtime, S.Stream, Graph) / Launches);

  json J = {{"median_us", median(Times)},
            {"min_us", *std::min_element(Times.begin(), Times.end())},
            {"max_us", *std::max_element(Times.begin(), Times.end())},
            {"reps", O.Reps},
            {"launches", Launches},
            {"buffer_sets", Sets},
            {"bytes", Bytes}};
  J["gb_per_s"] =
      static_cast<double>(Bytes) / std::max(median(Times), 1e-9) / 1e3;

  // Kernel by kernel, each between two timestamps of its own.
  S.Stream.profile(true);
  std::vector<std::vector<double>> PerKernel;
  std::vector<std::string> Names;
  for (unsigned R = 0; R < std::min(O.Reps, 10u); ++R) {
    S.Function.launch(S.Stream, Arguments[R % Sets], Results[R % Sets]);
    auto Kernels = S.Stream.times();
    PerKernel.resize(Kernels.size());
    Names.resize(Kernels.size());
    for (size_t K = 0; K < Kernels.size(); ++K) {
      Names[K] = Kernels[K].first;
      PerKernel[K].push_back(Kernels[K].second);
    }
  }
  S.Stream.profile(false);
  J["kernels"] = json::array();
  for (size_t K = 0; K < Names.size(); ++K)
    J["kernels"].push_back(
        {{"kernel", Names[K]}, {"us", median(PerKernel[K])}});
  return J;
}

json benchCopy(greta::Runtime &Runtime, const Options &O) {
  size_t Bytes = parseBytes(O.BenchCopy);
  greta::Stream Stream = Runtime.stream();
  greta::Buffer From = Runtime.allocate(Bytes), To = Runtime.allocate(Bytes);
  // Not zeros: some memory systems compress them.
  std::vector<uint32_t> Pattern((Bytes + 3) / 4);
  uint32_t X = 1;
  for (uint32_t &W : Pattern)
    W = X = X * 1664525u + 1013904223u;
  Stream.write(From, Pattern.data(), Bytes);
  constexpr unsigned copies = 8;
  greta::Graph Graph = Stream.capture([&] {
    for (unsigned I = 0; I < copies; ++I)
      Stream.copy(To, From, Bytes);
  });
  timed(Runtime, Stream, Graph);
  std::vector<double> Times;
  for (unsigned R = 0; R < std::min(O.Reps, 20u); ++R)
    Times.push_back(timed(Runtime, Stream, Graph) / copies);
  double Best = *std::min_element(Times.begin(), Times.end());
  return {{"bytes", Bytes},
          {"min_us", Best},
          {"max_us", *std::max_element(Times.begin(), Times.end())},
          {"gb_per_s",
           2.0 * static_cast<double>(Bytes) / std::max(Best, 1e-9) / 1e3}};
}

} // namespace greta_run

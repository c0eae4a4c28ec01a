// BenchHost.cpp: what a launch costs the host. In: a session whose function
// does little on the device. Out: microseconds of this thread a launch, outside
// of a graph, while one is recorded, when one is replayed, and with automatic
// graphs; waiting for the device is left out.
#include "Options.h"

#include <algorithm>
#include <chrono>

namespace greta_run {

nlohmann::json benchHost(Session &S, const Options &O) {
  using Clock = std::chrono::steady_clock;
  unsigned Launches = O.Launches ? O.Launches : 256;
  std::vector<greta_tensor> Arguments, Results;
  for (const greta::Tensor &T : S.Arguments)
    Arguments.push_back(T.raw());
  for (const greta::Tensor &T : S.Results)
    Results.push_back(T.raw());
  auto Launch = [&] {
    for (unsigned I = 0; I < Launches; ++I)
      greta::check(greta_function_launch(S.Function.get(), S.Stream.get(),
                                         Arguments.data(), Arguments.size(),
                                         Results.data(), Results.size()));
  };
  // Microseconds of `Body` a launch: median and minimum.
  auto Measured = [&](auto Body) -> nlohmann::json {
    std::vector<double> Times;
    for (unsigned R = 0; R < O.Reps + 3; ++R) {
      S.Stream.synchronize();
      Clock::time_point Begin = Clock::now();
      Body();
      double Time =
          std::chrono::duration<double, std::micro>(Clock::now() - Begin)
              .count() /
          Launches;
      if (R >= 3) // the first ones make lists grow
        Times.push_back(Time);
    }
    std::sort(Times.begin(), Times.end());
    return {{"median_us", Times[Times.size() / 2]}, {"min_us", Times[0]}};
  };
  nlohmann::json J = {{"launches", Launches}, {"reps", O.Reps}};
  J["launch"] = Measured(Launch);
  greta::Graph Graph;
  J["record"] = Measured([&] { Graph = S.Stream.capture(Launch); });
  J["replay"] = Measured([&] { S.Stream.launch(Graph); });
  S.Stream.autoGraph(true);
  J["auto_graph"] = Measured(Launch);
  S.Stream.autoGraph(false);
  S.Stream.synchronize();
  return J;
}

} // namespace greta_run

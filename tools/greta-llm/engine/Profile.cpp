// Profile.cpp: see Bench.h. In: the package's manifest, which says what tensors
// each kernel takes, and the sizes of a measurement. A kernel moves each of
// these once: weights, the part of the caches that its tokens have, and
// activations; the bytes of a lookup are not counted. It computes the GEMMs
// with its weights, and attention's over the keys that tokens see.
#include "Bench.h"
#include "Tensor.h"
#include "engine/Engine.h"

#include <map>
#include <set>

namespace greta::llm {
namespace {

using nlohmann::json;

struct Work {
  double bytes = 0, flop = 0;
};

// The work of one launch of a function in a measurement.
struct Launched {
  double tokens;    // that it takes
  double sequences; // that have them
  double seen;      // keys that a token sees, in the mean
  double read;      // keys that a sequence has, in the mean
};

Launched launched(const std::string &function, const Engine &engine,
                  const Row &row) {
  double batch = static_cast<double>(row.batch);
  double depth = static_cast<double>(row.depth);
  double appended = static_cast<double>(row.appended());
  double generated = static_cast<double>(row.generated);
  int64_t keys = engine.windowOf(function);
  double window =
      keys ? static_cast<double>(keys) : depth + appended + generated + 1;
  if (function.rfind("prompt", 0) == 0) {
    int64_t chunks = (row.appended() + engine.chunk() - 1) / engine.chunk();
    double tokens = appended / static_cast<double>(chunks);
    return {tokens, 1, std::min(window, depth + (appended + 1) / 2),
            std::min(window + tokens, depth + (appended + tokens) / 2)};
  }
  // layer0_4, head_4; head_n and the choice behind a prompt have one row.
  size_t bar = function.rfind('_');
  int64_t size =
      bar == std::string::npos ? 0 : std::atoll(function.c_str() + bar + 1);
  double tokens = size ? static_cast<double>(size)
                  : function == "sample" && row.generated ? batch
                                                          : 1;
  double seen = std::min(window, depth + appended + (generated + 1) / 2);
  return {tokens, std::min(tokens, batch), seen, seen};
}

Work workOf(const json &kernel, const json &variant, const json &function,
            const Engine &engine, const Launched &l) {
  const Config &c = engine.config();
  std::string name = function["name"];
  Work work;
  std::set<std::string> seen;
  double cached = 0; // of a token, in the caches that it takes
  for (const json &argument : kernel["args"]) {
    std::string kind = argument["kind"];
    if (kind != "arg" && kind != "result" && kind != "temp")
      continue;
    size_t index = argument["index"];
    const json *tensor = &(kind == "arg"      ? function["args"]
                           : kind == "result" ? function["results"]
                                              : variant["temps"])[index];
    if (tensor->contains("tied"))
      tensor = &function["args"][(*tensor)["tied"].get<size_t>()];
    std::string called = tensor->value("name", "temp " + std::to_string(index));
    if (!seen.insert(called).second)
      continue;
    std::string type = (*tensor)["dtype"];
    if (auto [bytes, elements] = engine.weightSize(name, called); bytes) {
      work.bytes += static_cast<double>(bytes);
      work.flop += 2 * l.tokens * static_cast<double>(elements);
    } else if (called == "k_cache" || called == "v_cache" ||
               called == "k_scales" || called == "v_scales") {
      cached += static_cast<double>(c.keyHeads) *
                (*tensor)["shape"].back().get<double>() *
                greta_run::bitsOf(type) / 8;
    } else if (type != "i32") { // positions, tables and lengths are small
      double elements = 1;
      for (const json &extent : (*tensor)["shape"])
        elements *= extent.is_number() ? extent.get<double>() : l.tokens;
      work.bytes += elements * greta_run::bitsOf(type) / 8;
    }
  }
  bool attends = cached > 0 && seen.count("table");
  work.bytes += cached * (attends ? l.read * l.sequences : l.tokens);
  if (attends)
    work.flop += 4 * l.seen * static_cast<double>(c.heads * c.headSize) *
                 (l.sequences > 1 ? l.sequences : l.tokens);
  return work;
}

// The work of one launch, by kernel.
std::map<std::string, Work> allWork(const Engine &engine, const Row &row) {
  std::map<std::string, Work> all;
  std::map<std::string, std::string> variants = engine.variants();
  const json manifest = json::parse(engine.manifest());
  for (const json &function : manifest["functions"]) {
    std::string name = function["name"];
    Launched l = launched(name, engine, row);
    for (const json &variant : function["variants"])
      if (variants[name] == variant["id"] && name != "embed")
        for (const json &kernel : variant["kernels"])
          all[kernel["entry"]] = workOf(kernel, variant, function, engine, l);
  }
  return all;
}

} // namespace

void printProfile(Engine &engine, const Row &row,
                  const std::vector<std::pair<std::string, double>> &times,
                  const Options &options) {
  std::map<std::string, std::pair<int64_t, double>> kernels;
  double sum = 0;
  for (const auto &[kernel, microseconds] : times) {
    ++kernels[kernel].first;
    kernels[kernel].second += microseconds;
    sum += microseconds;
  }
  std::vector<std::pair<double, std::string>> order;
  for (const auto &[kernel, about] : kernels)
    order.push_back({-about.second, kernel});
  std::sort(order.begin(), order.end());
  std::map<std::string, Work> work = allWork(engine, row);
  double bandwidth = options.bandwidth;
  const char *source = "memory";
  if (bandwidth <= 0) {
    bandwidth = engine.copyBandwidth();
    source = "a copy";
  }
  printf("\n%s: %.1f us in kernels; %s moves %.1f GB/s\n", row.test().c_str(),
         sum, source, bandwidth / 1e9);
  printf("%-24s %8s %12s %12s %8s %10s %9s %10s %9s %8s\n", "kernel",
         "launches", "us each", "us", "share", "MB", "GB/s", "MFLOP", "GFLOP/s",
         "of limit");
  for (const auto &[time, kernel] : order) {
    double launches = static_cast<double>(kernels[kernel].first);
    double each = -time / launches;
    printf("%-24s %8.0f %12.2f %12.1f %6.1f %%", kernel.c_str(), launches, each,
           -time, -time / sum * 100);
    const Work &w = work[kernel];
    if (w.bytes > 0) {
      double limit = w.bytes / bandwidth;
      if (options.peak > 0)
        limit = std::max(limit, w.flop / options.peak);
      printf(" %10.3f %9.1f %10.1f %9.1f %6.1f %%", w.bytes / 1e6,
             w.bytes / each / 1e3, w.flop / 1e6, w.flop / each / 1e3,
             limit * 1e6 / each * 100);
    }
    putchar('\n');
  }
}

} // namespace greta::llm

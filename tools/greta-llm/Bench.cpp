// Bench.cpp: the verb `bench`. In: a model and a package. Out: tokens per
// second of prompts (pp) and of generation (tg), with llama-bench's columns, as
// a table, JSON or CSV. Every measurement includes the way of prompts to the
// device and of tokens back, and the choice of each token. A depth is a number
// of tokens that sequences have before the measurement begins.
#include "Bench.h"
#include "Compile.h"
#include "Options.h"
#include "Progress.h"
#include "engine/Engine.h"

#include <algorithm>
#include <cmath>

namespace greta::llm {
namespace {

using nlohmann::json;

struct Statistics {
  double mean = 0, deviation = 0;
  explicit Statistics(const std::vector<double> &values) {
    double n = static_cast<double>(values.size());
    for (double value : values)
      mean += value / n;
    for (double value : values)
      deviation += (value - mean) * (value - mean) / std::max(1.0, n - 1);
    deviation = std::sqrt(deviation);
  }
};

// A token that depends on its place alone, so that every run does the same.
int32_t tokenAt(int64_t i, int64_t vocabulary) {
  return static_cast<int32_t>(static_cast<uint64_t>(i) * 2654435761u %
                              static_cast<uint64_t>(vocabulary));
}

// The sequences of a row, at its depth, over and over: what a measurement adds
// to them is forgotten by the next one.
class Runner {
public:
  Runner(Engine &engine, const Row &row, const Sampling &sampling)
      : engine(engine), row(row), sampling(sampling),
        sequences(static_cast<size_t>(row.batch)) {
    for (int64_t i = 0; i < row.depth + row.appended(); ++i)
      tokens.push_back(tokenAt(i, engine.vocabulary()));
    engine.makePlaces(row.batch);
    for (Sequence &sequence : sequences) {
      if (!engine.reserve(sequence, row.context()))
        fail("the context has no room for " + row.test() + " (--context)");
      if (row.depth)
        engine.append(sequence, tokens.data(), static_cast<size_t>(row.depth));
    }
  }
  ~Runner() {
    for (Sequence &sequence : sequences)
      engine.release(sequence);
  }

  // Seconds for a prompt each with the token behind it, or for the tokens
  // behind the first one.
  double operator()() {
    int64_t left = row.generated + 1;
    Engine::Chosen last;
    double start = seconds();
    for (int64_t place = 0; place < row.batch; ++place) {
      Sequence &sequence = sequences[static_cast<size_t>(place)];
      sequence.length = row.depth;
      engine.append(sequence, tokens.data() + row.depth,
                    static_cast<size_t>(row.appended()));
      last = engine.begin(place, sequence, tokens, sampling, left);
    }
    if (row.generated) {
      last[0];
      start = seconds();
      for (int64_t i = 0; i < row.generated; ++i) {
        Engine::Chosen next = engine.step();
        last[0]; // the device is a step ahead
        last = next;
      }
    }
    last[0];
    return seconds() - start;
  }

private:
  Engine &engine;
  const Row &row;
  const Sampling &sampling;
  std::vector<Sequence> sequences;
  std::vector<int32_t> tokens;
};

json describe(const Row &row, const Model &model, const Engine &engine,
              double parameters) {
  std::vector<double> rates, nanoseconds;
  for (double time : row.seconds) {
    rates.push_back(row.tokens() / time);
    nanoseconds.push_back(time * 1e9);
  }
  Statistics rate(rates), time(nanoseconds);
  return {
      {"backends", "GRETA"},
      {"gpu_info", engine.deviceName()},
      {"model_filename", model.path},
      {"model_type", std::string(model.config.architecture->huggingFace) + " " +
                         infoOf(model.weight("blk.0.attn_output").format).name},
      {"model_size", engine.weightBytes()},
      {"model_n_params", static_cast<int64_t>(parameters)},
      {"type_k", engine.elementName()},
      {"type_v", engine.elementName()},
      {"n_batch", row.batch},
      {"n_prompt", row.prompt},
      {"n_gen", row.generated},
      {"n_depth", row.depth},
      {"avg_ns", std::llround(time.mean)},
      {"stddev_ns", std::llround(time.deviation)},
      {"avg_ts", rate.mean},
      {"stddev_ts", rate.deviation}};
}

void printHead() {
  printf("| %-24s | %10s | %10s | %-20s | %12s | %18s |\n", "model", "size",
         "params", "backend", "test", "t/s");
  printf("| %s | %s: | %s: | %s | %s: | %s: |\n", std::string(24, '-').c_str(),
         std::string(9, '-').c_str(), std::string(9, '-').c_str(),
         std::string(20, '-').c_str(), std::string(11, '-').c_str(),
         std::string(17, '-').c_str());
}

void printRow(const std::string &test, const json &row) {
  double size = row["model_size"], parameters = row["model_n_params"];
  printf("| %-24s | %6.2f %s | %8.2f %s | %-20.20s | %12s | %9.2f ± %6.2f |\n",
         row["model_type"].get<std::string>().c_str(),
         size >= 0x1p30 ? size / 0x1p30 : size / 0x1p20,
         size >= 0x1p30 ? "GiB" : "MiB",
         parameters >= 1e9 ? parameters / 1e9 : parameters / 1e6,
         parameters >= 1e9 ? "B" : "M",
         row["gpu_info"].get<std::string>().c_str(), test.c_str(),
         row["avg_ts"].get<double>(), row["stddev_ts"].get<double>());
}

// A line of CSV: the names of a row's columns, or its values.
void printCsv(const json &row, bool names) {
  std::string line;
  for (auto &[key, value] : row.items())
    line += (line.empty() ? "" : ",") + (names ? key : value.dump());
  puts(line.c_str());
}

// Each row as soon as it is measured; JSON is one list, at the end.
void print(const Row &row, const json &described, const std::string &format,
           bool isFirst) {
  if (format == "csv") {
    if (isFirst)
      printCsv(described, true);
    printCsv(described, false);
  } else if (format == "table") {
    if (isFirst)
      printHead();
    printRow(row.test(), described);
  }
  fflush(stdout);
}

// A measurement once more, kernel by kernel.
void profile(Engine &engine, const Row &row, const Options &options) {
  Runner run(engine, row, options.sampling);
  engine.profile(true);
  run();
  std::vector<std::pair<std::string, double>> times = engine.times();
  engine.profile(false);
  printProfile(engine, row, times, options);
}

} // namespace

int bench(const Options &options) {
  Model model = readLanguageModel(options.model, options.synthetic);
  EngineOptions engineOptions = EngineOptions::of(options);
  std::vector<Row> rows;
  int64_t longest = 0;
  for (int64_t batch : options.batches)
    for (int64_t depth : options.depths) {
      for (int64_t prompt : options.prompts)
        if (prompt > 0)
          rows.push_back({prompt, 0, depth, batch, {}});
      if (options.count > 0)
        rows.push_back({0, options.count, depth, batch, {}});
    }
  if (rows.empty())
    fail("nothing to measure: say -p or -n with more than 0 tokens");
  for (const Row &row : rows) {
    if (std::max(row.prompt, row.depth) > model.config.context)
      fail(row.test() + ": the model's context has " +
           std::to_string(model.config.context) + " tokens");
    longest = std::max(longest, (row.context() + pageSize) * row.batch);
  }
  if (!engineOptions.context)
    engineOptions.context = longest;
  Engine engine(model, packageFor(model, options, options.batches),
                engineOptions);
  return engine.lead([&] {
    double parameters = 0;
    for (const auto &[name, stored] : model.weights)
      parameters += static_cast<double>(stored.rows()) *
                    static_cast<double>(stored.columns());
    json described = json::array();
    Progress progress(options.isQuiet);
    for (size_t i = 0; i < rows.size(); ++i) {
      Row &row = rows[i];
      std::string what = row.test() + " (" + std::to_string(i + 1) + " of " +
                         std::to_string(rows.size()) + ")";
      progress.say(what + ": warming up");
      Runner run(engine, row, options.sampling);
      // Kernels are loaded, graphs are made, and the clocks of a GPU that has
      // idled come back.
      constexpr double waking = 0.6;
      for (double begin = seconds(); run(), seconds() - begin < waking;)
        ;
      for (int64_t r = 0; r < options.repetitions; ++r) {
        progress.say(what + ": run " + std::to_string(r + 1) + " of " +
                     std::to_string(options.repetitions));
        row.seconds.push_back(run());
      }
      described.push_back(describe(row, model, engine, parameters));
      progress.clear();
      print(row, described.back(), options.format, i == 0);
    }
    if (options.format == "json")
      puts(described.dump(2).c_str());
    if (options.profiles)
      for (const Row &row : rows)
        profile(engine, row, options);
    return 0;
  });
}

} // namespace greta::llm

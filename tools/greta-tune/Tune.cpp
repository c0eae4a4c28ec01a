//===- Tune.cpp - candidates compiled, measured and written down ----------===//
//
// GEMM after GEMM: its candidates are compiled on all cores, then
// measured one after another, and after each the database is written anew,
// beside the old one, which is then replaced. So it is valid whenever the
// process ends, and a later one leaves out what it has.
//
//===----------------------------------------------------------------------===//

#include "Compile.h"
#include "OneLine.h"
#include "greta/Package/Package.h"
#include "mlir/IR/BuiltinTypeInterfaces.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Support/WithColor.h"
#include <cmath>
#include <optional>

using namespace llvm;
using namespace greta;
using namespace greta::tune;

/// A GEMM of up to this many SIMT FMAs is compared with the host's
/// definition, in about a second; a larger one with its first candidate.
static constexpr double hostWork = double(1 << 28);

/// On a device so many of the best, as far as they are within this share of the
/// best, are measured again so many times.
static constexpr size_t mostFinalists = 5;
static constexpr double finalShare = 1.05;
static constexpr unsigned finalRounds = 4;
/// A candidate within this share of the best is as good: the first of them
/// counts, in the model's order.
static constexpr double equalShare = 1.01;

static bool fail(const Twine &message) {
  WithColor::error(errs(), "greta-tune") << onOneLine(message.str()) << "\n";
  return false;
}

static void note(const Twine &message) {
  errs() << "greta-tune: " << onOneLine(message.str()) << "\n";
}

/// 256x256x64 waves 8 stages 2 slice 32 (32x32x8)
static std::string describe(const json::Object &config) {
  auto extents = [&](StringRef name) {
    std::string text;
    if (const json::Array *numbers = config.getArray(name))
      for (const json::Value &number : *numbers)
        text += (text.empty() ? "" : "x") +
                std::to_string(number.getAsInteger().value_or(0));
    return text;
  };
  std::string text = extents("tile");
  for (StringRef name :
       {"waves", "stages", "slice", "group", "run", "unroll", "split"})
    if (std::optional<int64_t> value = config.getInteger(name))
      text += formatv(" {0} {1}", name, *value);
  if (config.getArray("instruction"))
    text += " (" + extents("instruction") + ")";
  return text;
}

/// ?x4096x4096
static std::string shapeOf(const TuningKey &key) {
  std::string text;
  for (const int64_t &extent : key.shape)
    text +=
        (&extent == key.shape.begin() ? "" : "x") +
        (mlir::ShapedType::isDynamic(extent) ? "?" : std::to_string(extent));
  return text;
}

/// The best time of the candidates so far; 0: none.
static double bestOf(const TuningEntry &entry) {
  double best = 0;
  for (const TuningCandidate &candidate : entry.candidates)
    if (candidate.rejected.empty() && (!best || candidate.microseconds < best))
      best = candidate.microseconds;
  return best;
}

namespace {

/// The devices on which one target's candidates run.
struct Place {
  tune::Device *device = nullptr; // null: the simulator's estimate
  std::string why;                // empty; else there is no place

  std::string name() const {
    return device ? device->name() : TuningEntry::estimate.str();
  }
};

/// The variant of a function that a Vulkan device takes by itself.
struct Family {
  std::string function, variant;
  const TargetRow *row = nullptr; // whose first variant it is
  std::string why;                // there is none
};

class Tuner {
public:
  explicit Tuner(const Options &options) : options(options) {}
  bool run();

private:
  bool selectTargets();
  bool parseCandidates();
  Place placeFor(StringRef function, const TargetRow &row);
  const Family &familyOf(StringRef function, tune::Device &device);
  tune::Device *open(const std::string &spec, std::string &why);
  bool tuneGemm(StringRef function, const TargetRow &row, const Place &place,
                const TunableGemm &gemm);
  bool setProblem(StringRef function, const Place &place, const TuningKey &key,
                  ArrayRef<std::string> inputs);
  std::vector<Compiled> compileAll(StringRef function, const TargetRow &row,
                                   const TunableGemm &gemm,
                                   ArrayRef<const json::Object *> configs);
  void settle(StringRef function, const TargetRow &row, const Place &place,
              const TunableGemm &gemm, TuningEntry &entry);
  TuningEntry &entryFor(const TunableGemm &gemm, const Place &place);
  bool write();
  void report(const TuningEntry &entry);

  const Options &options;
  Source source;
  SmallVector<const TargetRow *> rows;
  std::vector<json::Object> also; // candidates of the command line
  TuningDatabase database;
  std::vector<TuningEntry> done; // of this function and target
  std::vector<std::pair<std::string, std::unique_ptr<tune::Device>>> devices;
  Family family; // of the last function
  json::Array reports;
};

} // namespace

bool Tuner::selectTargets() {
  StringRef device = options.device;
  if (!device.empty() && device != TuningEntry::estimate &&
      !llvm::is_contained({"hip", "vulkan"}, device.split(':').first))
    return fail("--device=" + device +
                ": there are hip[:N], vulkan[:N] and estimate");
  Expected<SmallVector<const TargetRow *>> parsed =
      parseTargets(options.targets);
  if (!parsed)
    return fail(toString(parsed.takeError()));
  rows = std::move(*parsed);
  for (const TargetRow *row : rows)
    if (row->isHost())
      return fail("the target 'host' has no tiles to choose");
  return true;
}

bool Tuner::parseCandidates() {
  for (const std::string &text : options.also) {
    Expected<json::Value> value = json::parse(text);
    if (!value)
      return fail("--also=" + text + ": " + toString(value.takeError()));
    const json::Object *config = value->getAsObject();
    if (!config || !TuningDatabase::isConfig(*config))
      return fail("--also=" + text +
                  ": not a configuration; say for example "
                  "{\"tile\": [64, 64, 32], \"waves\": 4}");
    also.push_back(*config);
  }
  return true;
}

tune::Device *Tuner::open(const std::string &spec, std::string &why) {
  for (auto &[name, device] : devices)
    if (name == spec)
      return device.get();
  std::unique_ptr<tune::Device> device = tune::Device::open(spec, why);
  if (!device)
    return nullptr;
  return devices.emplace_back(spec, std::move(device)).second.get();
}

/// A target of AMD: the device asked for, or the first of its chip, or else the
/// estimate. A target of Vulkan: the device, for the family whose variant with
/// matrix instructions it takes.
Place Tuner::placeFor(StringRef function, const TargetRow &row) {
  Place place;
  StringRef asked = options.device;
  StringRef backend = row.isHip() ? "hip" : "vulkan";
  bool isFor = asked.starts_with(backend);
  if (row.isHip()) {
    for (unsigned i = 0; asked.empty() || isFor; ++i) {
      std::string spec = isFor ? asked.str() : "hip:" + std::to_string(i);
      std::string why;
      tune::Device *device = open(spec, why);
      if (device && StringRef(device->arch()).split(':').first == row.name)
        place.device = device;
      else if (isFor)
        place.why = device ? spec + " is a " + device->arch() : why;
      if (place.device || isFor || !device)
        break;
    }
    return place;
  }
  if (!asked.empty() && !isFor) {
    place.why = "Vulkan's targets are measured on a Vulkan device";
    return place;
  }
  tune::Device *device =
      open(asked.empty() ? "vulkan" : asked.str(), place.why);
  if (!device)
    return place;
  const Family &family = familyOf(function, *device);
  // The first of a family's two variants has the matrix instructions.
  if (!family.why.empty())
    place.why = family.why;
  else if (family.row == &row)
    place.device = device;
  else
    place.why = family.row
                    ? device->name() + " takes the variant " + family.variant +
                          " of the target " + family.row->name.str()
                    : device->name() + " takes the variant " + family.variant +
                          ", which uses no matrix instructions: its tiles "
                          "cannot be chosen";
  return place;
}

/// The Vulkan targets asked for that the device takes.
const Family &Tuner::familyOf(StringRef function, tune::Device &device) {
  if (family.function == function)
    return family;
  family = Family();
  family.function = function.str();
  SmallVector<const TargetRow *> asked;
  llvm::copy_if(rows, std::back_inserter(asked),
                [](const TargetRow *row) { return row->isVulkan(); });
  Compiled all = compile(source, function, asked, nullptr, options.sizes);
  family.why = all.problem;
  if (!family.why.empty())
    return family;
  family.variant = device.choose(all.package, family.function, family.why);
  const TargetRow *last = nullptr;
  for (const auto &[id, row] : all.variants) {
    if (row != last && id == family.variant)
      family.row = row;
    last = row;
  }
  return family;
}

TuningEntry &Tuner::entryFor(const TunableGemm &gemm, const Place &place) {
  for (TuningEntry &entry : database.entries)
    if (entry.key == gemm.key && entry.device == place.name()) {
      if (options.restart)
        entry.candidates.clear();
      return entry;
    }
  TuningEntry entry;
  entry.key = gemm.key;
  entry.device = place.name();
  entry.computeUnits = place.device ? place.device->computeUnits() : 0;
  return database.entries.emplace_back(std::move(entry));
}

bool Tuner::write() {
  Error failed = writeWhole(options.output, database.print());
  return !failed || fail(toString(std::move(failed)));
}

std::vector<Compiled>
Tuner::compileAll(StringRef function, const TargetRow &row,
                  const TunableGemm &gemm,
                  ArrayRef<const json::Object *> configs) {
  std::vector<Compiled> compiled(configs.size());
  DefaultThreadPool pool(hardware_concurrency());
  for (auto [config, to] : llvm::zip(configs, compiled))
    pool.async([&, config = config, to = &to] {
      TuningEntry forced;
      forced.key = gemm.key;
      forced.device = "this candidate";
      forced.config = *config;
      TuningDatabase candidate;
      candidate.entries.push_back(std::move(forced));
      llvm::append_range(candidate.entries, done);
      *to =
          compile(source, function, &row, &candidate, options.sizes, gemm.rows);
    });
  pool.wait();
  return compiled;
}

bool Tuner::setProblem(StringRef function, const Place &place,
                       const TuningKey &key, ArrayRef<std::string> inputs) {
  double work = 1;
  for (int64_t extent : key.shape)
    work *= !mlir::ShapedType::isDynamic(extent) ? extent
            : options.sizes.empty() ? 2048
                                    : *llvm::max_element(options.sizes);
  Compiled host;
  if (work <= hostWork) {
    const TargetRow *row = cantFail(lookupTarget("host"));
    host = compile(source, function, row, nullptr, options.sizes);
    if (!host.problem.empty())
      return fail(host.problem);
  }
  std::string why =
      place.device->setProblem(host.package, function.str(), inputs.vec());
  return why.empty() || fail("on the host: " + why);
}

void Tuner::report(const TuningEntry &entry) {
  unsigned rejected = 0;
  double chosen = 0;
  for (const TuningCandidate &candidate : entry.candidates) {
    rejected += !candidate.rejected.empty();
    if (candidate.config == entry.config)
      chosen = candidate.microseconds;
  }
  json::Object one{{"target", entry.key.target},
                   {"device", entry.device},
                   {"op", entry.key.op},
                   {"shape", shapeOf(entry.key)},
                   {"config", json::Object(entry.config)},
                   {"us", chosen},
                   {"candidates", int64_t(entry.candidates.size())},
                   {"rejected", rejected}};
  reports.push_back(std::move(one));
}

/// Measures the best again, in turns: what was measured first met a cooler
/// device.
void Tuner::settle(StringRef function, const TargetRow &row, const Place &place,
                   const TunableGemm &gemm, TuningEntry &entry) {
  std::vector<TuningCandidate *> finalists;
  for (TuningCandidate &candidate : entry.candidates)
    if (candidate.rejected.empty() &&
        candidate.microseconds <= finalShare * bestOf(entry))
      finalists.push_back(&candidate);
  llvm::stable_sort(finalists, [](auto *a, auto *b) {
    return a->microseconds < b->microseconds;
  });
  if (finalists.size() > mostFinalists)
    finalists.resize(mostFinalists);
  if (finalists.size() < 2)
    return;
  SmallVector<const json::Object *> configs;
  for (TuningCandidate *candidate : finalists)
    configs.push_back(&candidate->config);
  std::vector<Compiled> compiled = compileAll(function, row, gemm, configs);
  std::vector<std::vector<double>> times(finalists.size());
  for (unsigned round = 0; round < finalRounds; ++round)
    for (auto [one, all] : llvm::zip(compiled, times)) {
      Outcome outcome = place.device->measure(
          one.package, one.variants.front().first, options);
      if (outcome.rejected.empty())
        all.push_back(outcome.microseconds);
    }
  for (auto [candidate, all] : llvm::zip(finalists, times)) {
    if (all.empty())
      continue;
    llvm::sort(all);
    candidate->microseconds = std::round(all[all.size() / 2] * 1000) / 1000;
    note(formatv("again: {0}: {1:f2} us", describe(candidate->config),
                 candidate->microseconds));
  }
  auto chosen = llvm::find_if(entry.candidates, [&](auto &candidate) {
    return candidate.rejected.empty() &&
           candidate.microseconds <= equalShare * bestOf(entry);
  });
  entry.config = chosen->config;
}

bool Tuner::tuneGemm(StringRef function, const TargetRow &row,
                     const Place &place, const TunableGemm &gemm) {
  TuningEntry &entry = entryFor(gemm, place);
  SmallVector<const json::Object *> configs;
  for (const json::Object &config :
       llvm::concat<const json::Object>(gemm.candidates, also))
    if (llvm::none_of(entry.candidates, [&](const TuningCandidate &known) {
          return known.config == config;
        }))
      configs.push_back(&config);
  size_t total = gemm.candidates.size() + also.size();
  size_t known = total - configs.size();
  const TuningKey &key = gemm.key;
  note(key.target + ", " + key.op + " " + shapeOf(key) + " on " + place.name() +
       ": " + Twine(total) + " candidates, " + Twine(known) + " known" +
       (configs.empty() ? "" : "; compiling the others"));
  double best = bestOf(entry);
  std::vector<Compiled> compiled = compileAll(function, row, gemm, configs);
  auto runs = llvm::find_if(
      compiled, [](const Compiled &one) { return one.problem.empty(); });
  if (place.device && runs != compiled.end() &&
      !setProblem(function, place, key, runs->inputs))
    return false;
  for (auto [i, config, one] : llvm::enumerate(configs, compiled)) {
    Outcome outcome;
    if (!one.problem.empty())
      outcome.rejected = one.problem;
    else if (place.device)
      outcome = place.device->measure(one.package, one.variants.front().first,
                                      options);
    else
      outcome = estimate(row.name.str(), one.launches);
    // As the database has it.
    outcome.microseconds = std::round(outcome.microseconds * 1000) / 1000;
    if (outcome.rejected.empty() && (!best || outcome.microseconds < best)) {
      best = outcome.microseconds;
      entry.config = *config;
    }
    entry.candidates.push_back(
        {*config, outcome.microseconds, outcome.rejected});
    if (!write())
      return false;
    std::string time = outcome.rejected.empty()
                           ? formatv("{0:f2} us", outcome.microseconds).str()
                           : "rejected: " + outcome.rejected;
    note(formatv("[{0}/{1}] {2}: {3}; best {4:f2} us", known + i + 1, total,
                 describe(*config), time, best));
  }
  if (!configs.empty() && place.device && !place.device->isModel()) {
    settle(function, row, place, gemm, entry);
    if (!write())
      return false;
  }
  done.push_back(entry);
  report(entry);
  return true;
}

bool Tuner::run() {
  if (!selectTargets() || !parseCandidates())
    return false;
  auto file = MemoryBuffer::getFile(options.input, /*IsText=*/true);
  if (!file)
    return fail("cannot open '" + options.input +
                "': " + file.getError().message());
  source = {options.input, (*file)->getBuffer().str()};
  if (sys::fs::exists(options.output)) {
    Expected<TuningDatabase> loaded = TuningDatabase::load(options.output);
    if (!loaded)
      return fail(toString(loaded.takeError()));
    database = std::move(*loaded);
  }
  mlir::FailureOr<std::vector<FunctionGemms>> functions =
      findGemms(source, rows, options.candidates);
  if (failed(functions))
    return false;
  bool isKnown = options.function.empty(), tuned = false;
  for (const FunctionGemms &function : *functions) {
    if (!options.function.empty() && options.function != function.name)
      continue;
    isKnown = true;
    for (auto [row, gemms] : llvm::zip(rows, function.gemms)) {
      std::string what = function.name + " on " + row->name.str();
      if (gemms.empty()) {
        note(what + ": no GEMM with a choice of tiles");
        continue;
      }
      Place place = placeFor(function.name, *row);
      if (!place.why.empty()) {
        note(what + " left out: " + place.why);
        continue;
      }
      done.clear();
      for (const TunableGemm &gemm : gemms) {
        if (!tuneGemm(function.name, *row, place, gemm))
          return false;
        tuned = true;
      }
    }
  }
  if (!isKnown)
    return fail("no public function '" + options.function + "' in " +
                options.input);
  if (!tuned)
    return fail("nothing was tuned");
  if (options.json)
    outs() << formatv("{0:2}\n", json::Value(std::move(reports)));
  return true;
}

int greta::tune::tune(const Options &options) {
  return Tuner(options).run() ? 0 : 1;
}

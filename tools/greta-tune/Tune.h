//===- Tune.h - what the parts of greta-tune share --------------*- C++ -*-===//
//
// Plain data only: half of the tool is compiled without exceptions, half knows
// no LLVM.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_TUNE_TUNE_H
#define GRETA_TUNE_TUNE_H

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace greta::tune {

struct Options {
  std::string input, output, targets, device, function;
  std::vector<std::string> also; // configurations in JSON
  std::vector<int64_t> sizes;    // of the symbols, in order
  unsigned candidates = 16, reps = 20;
  double batchMs = 2;
  bool restart = false, json = false;
};

/// The whole tool; the process's exit status.
int tune(const Options &options);

/// The time of a candidate, or the reason why it has none.
struct Outcome {
  double microseconds = 0;
  std::string rejected;
};

/// A kernel with everything that a launch of the tuned sizes needs.
struct Launch {
  struct Argument {
    bool isBuffer;
    uint64_t bytes; // of a buffer
    int64_t value;  // of a scalar, or that a buffer's words hold
  };
  std::string entry, object;
  std::array<int64_t, 3> grid = {1, 1, 1}, block = {1, 1, 1};
  std::vector<Argument> arguments;
};

/// The simulator's estimate of launches one after another.
Outcome estimate(const std::string &chip, const std::vector<Launch> &launches);

/// A device of the runtime. Failures are texts.
class Device {
public:
  /// Null, and why.
  static std::unique_ptr<Device> open(const std::string &spec,
                                      std::string &why);
  ~Device();

  const std::string &name() const { return deviceName; }
  const std::string &backend() const { return backendName; }
  /// The chip of a hip device.
  const std::string &arch() const { return archName; }
  /// 0: not known.
  int64_t computeUnits() const { return units; }
  /// Times are the simulator's model, the same each time; the name begins with
  /// "estimate".
  bool isModel() const;

  /// The variant that the device takes by itself; empty, and why.
  std::string choose(const std::string &package, const std::string &function,
                     std::string &why) const;

  /// Sets the function that is measured from now on, a function with these
  /// inputs, as greta-run takes them. Results are compared with those of the
  /// package's host variant, or, with an empty package, of the first candidate.
  /// Empty, or why not.
  std::string setProblem(const std::string &package,
                         const std::string &function,
                         const std::vector<std::string> &inputs);

  /// Runs a variant, compares, and measures it like greta-run --bench, but
  /// one launch after another.
  Outcome measure(const std::string &package, const std::string &variant,
                  const Options &options);

private:
  struct State;
  explicit Device(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
  std::string deviceName, backendName, archName;
  int64_t units = 0;
};

} // namespace greta::tune

#endif

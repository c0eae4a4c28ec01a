// Options.h: the command line of greta-run, and what its parts do.
#ifndef GRETA_RUN_OPTIONS_H
#define GRETA_RUN_OPTIONS_H

#include "Tensor.h"
#include "greta_runtime.hpp"

#include <nlohmann/json.hpp>

namespace greta_run {

struct Options {
  std::string Package, Device, Function, Variant;
  std::vector<std::string> Inputs, Outputs, Expected;
  double Rtol = 0, Atol = 0;
  bool Elementwise = false; // --rtol or --atol was given
  bool Check = false, Bench = false, BenchHost = false, Json = false,
       ListDevices = false, Diagnose = false, Inspect = false,
       NoNativeCode = false;
  unsigned Smoke = 0; // runs
  bool Profile = false;
  double Flop = 0; // of one launch, for --profile
  unsigned Reps = 50, Launches = 0, Rotate = 0;
  double BatchMs = 2; // where Launches does not say how long one takes
  // How long a GPU that has idled works before its clocks are what they were.
  unsigned WakeMs = 600;
  bool Chain = false; // one set of results: no launch overlaps the next
  std::string BenchCopy;
};

// A loaded function with its arguments and results in device memory.
struct Session {
  Session(greta::Runtime &Runtime, const greta::Package &Package,
          const std::string &Function, const std::string &Variant,
          const std::vector<Input> &Inputs);
  // Fills the arguments.
  void write(const std::vector<std::vector<uint8_t>> &Data);
  void launch() { Function.launch(Stream, Arguments, Results); }
  std::vector<HostTensor> read();

  greta::Runtime &Runtime;
  greta::Function Function;
  greta::Stream Stream;
  std::vector<greta::Buffer> ArgumentBuffers, ResultBuffers;
  std::vector<greta::Tensor> Arguments, Results;
  std::vector<size_t> ArgumentBytes, ResultBytes;
  std::vector<std::string> ResultTypes;
};

// Why a result is not the one wanted, by --rtol and --atol or
// docs/internals/numerics.md's limits; empty: it is.
std::string disagreement(const HostTensor &Got, const HostTensor &Want,
                         const Difference &D, const Options &O,
                         const std::vector<std::string> &Through = {});
// The limits that a comparison with `Want` keeps, as text.
std::string limitsOf(const HostTensor &Want, const Options &O);
// The first of some results that is not the one wanted, and why, by
// docs/internals/numerics.md's limits; empty: all are.
std::string disagreement(const std::vector<HostTensor> &Got,
                         const std::vector<HostTensor> &Want,
                         const std::vector<std::string> &Through = {});

// Each returns the process's exit status; failures are exceptions.
int run(const Options &O);
int listDevices(const Options &O);
int inspect(const Options &O);
int smoke(const Options &O);

// GPU times of the session's function, and of a copy of `Bytes` in the same
// process.
nlohmann::json bench(Session &S, const std::vector<std::vector<uint8_t>> &Data,
                     const Options &O);
// Measures how the time of the session's function, `Name` of the package, is
// spent; the second prints it as a table.
nlohmann::json profile(Session &S, const greta::Package &Package,
                       const std::vector<std::vector<uint8_t>> &Data,
                       const Options &O, const std::string &Name);
void printProfile(const nlohmann::json &J);
// Microseconds of the host for each launch of the session's function.
nlohmann::json benchHost(Session &S, const Options &O);
nlohmann::json benchCopy(greta::Runtime &Runtime, const Options &O);

} // namespace greta_run
#endif

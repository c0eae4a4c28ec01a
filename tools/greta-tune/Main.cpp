//===- Main.cpp - greta-tune's command line -------------------------------===//

#include "CommandLine.h"
#include "Tune.h"

int main(int argc, char **argv) {
  greta::tune::Options options;
  CLI::App app{"Measures the tiles that GEMMs may have, and writes the best "
               "to a tuning database (docs/tuning.md). Started again, it goes "
               "on where it was.",
               "greta-tune"};
  app.add_option("source", options.input, "functions in MLIR")->required();
  app.add_option("-o,--output", options.output,
                 "the database; what is in it already stays")
      ->required();
  app.add_option("--targets,--target", options.targets,
                 "gfx942,vulkan:nvidia; of `vulkan` the family that the device "
                 "takes")
      ->required();
  app.add_option("--device", options.device,
                 "hip[:N] or vulkan[:N]; `estimate`: AMD targets by the "
                 "simulator's model, which is also what they get where there "
                 "is no such chip");
  app.add_option("--function", options.function, "tune this function only");
  app.add_option(
         "--size", options.sizes,
         "extents of the function's dynamic dimensions d0, d1, .. (2048)")
      ->delimiter(',')
      ->check(CLI::Range(int64_t(1), int64_t(1) << 31));
  app.add_option("--candidates", options.candidates,
                 "tiles to try for a GEMM, best first by the model (16)")
      ->check(CLI::Range(1u, 4096u));
  app.add_option("--also", options.also,
                 "another one: '{\"tile\": [64, 64, 32], \"waves\": 4}'")
      ->allow_extra_args(false);
  app.add_option("--reps", options.reps, "measurements of a candidate (20)")
      ->check(CLI::Range(1u, 100000u));
  app.add_option("--batch-ms", options.batchMs,
                 "how long one measurement runs (2); where power limits the "
                 "device, it slows down after some ten")
      ->check(CLI::Range(0.01, 10000.0));
  app.add_flag("--restart", options.restart,
               "measure again what the database has");
  app.add_flag("--json", options.json, "print what was found as JSON");
  if (auto status = parseCommandLine(app, argc, argv))
    return *status;
  return greta::tune::tune(options);
}

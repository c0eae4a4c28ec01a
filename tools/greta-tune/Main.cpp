//===- Main.cpp - greta-tune's command line -------------------------------===//

#include "CommandLine.h"
#include "Tune.h"

int main(int argc, char **argv) {
  greta::tune::Options options;
  CommandLine app{
      "Measures the tiles that GEMMs may have, and writes the best "
      "to a tuning database (docs/guide/tuning.md). Started again, it goes "
      "on where it was.",
      "greta-tune"};
  app.add_option("source", options.input, "functions in MLIR")->required();
  app.add_option(
         "-o,--output", options.output,
         "the tuning database to write; entries of an existing one stay")
      ->required();
  app.add_option("--targets,--target", options.targets,
                 "gfx942,vulkan:nvidia; vulkan alone: the family of the device")
      ->required();
  app.add_option("--device", options.device,
                 "hip[:N] or vulkan[:N]; estimate: AMD targets by the "
                 "simulator's model. Without it the device of each target, or "
                 "the estimate for an AMD chip that is not there");
  app.add_option("--function", options.function, "tune this function only");
  app.add_option(
         "--size", options.sizes,
         "extents of the function's dynamic dimensions d0, d1, ..; 2048 each "
         "without it")
      ->delimiter(',')
      ->check(CLI::Range(int64_t(1), int64_t(1) << 31));
  app.add_option("--candidates", options.candidates,
                 "tiles to try for a GEMM, the model's best first")
      ->check(CLI::Range(1u, 4096u));
  app.add_option("--also", options.also,
                 "one more tile to try: '{\"tile\": [64, 64, 32], \"waves\": "
                 "4}'")
      ->allow_extra_args(false);
  app.add_option("--reps", options.reps, "measurements of a candidate")
      ->check(CLI::Range(1u, 100000u));
  app.add_option("--batch-ms", options.batchMs,
                 "length of one measurement in ms; a device that its power "
                 "limits slows down after about 10")
      ->check(numbers(0.01, 10000.0));
  app.add_flag("--restart", options.restart,
               "measure again what the database already has");
  app.add_flag("--json", options.json, "print the results as JSON");
  if (auto status = app.parseArguments(argc, argv))
    return *status;
  return greta::tune::tune(options);
}

//===- Main.cpp - greta-sim's command line --------------------------------===//

#include "CommandLine.h"
#include "Options.h"
#include "llvm/Support/InitLLVM.h"

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  greta_sim::Options options;
  CommandLine app{
      "Runs a kernel of an AMD code object on the CPU, checks it and "
      "estimates its cycles (docs/internals/simulator.md).",
      "greta-sim"};
  auto extents = [&](const char *name, std::vector<uint32_t> &to,
                     const char *description) {
    app.add_option(name, to, description)
        ->delimiter(',')
        ->expected(1, 3)
        ->allow_extra_args(false)
        ->check(CLI::Range(1u, UINT32_MAX))
        ->type_name("X[,Y[,Z]]");
  };
  app.add_option("code", options.input, "the code object")->required();
  app.add_option("--kernel", options.kernel,
                 "the kernel to run; not needed if there is one");
  extents("--grid", options.grid, "workgroups");
  extents("--block", options.block, "work items of a workgroup");
  app.add_option("--arg", options.arguments,
                 "one per argument: in:FILE, out:FILE:BYTES, inout:FILE, "
                 "zero:BYTES (memory that is not kept), null, i32:N, i64:N, "
                 "f32:X; align:N before one that starts at a multiple of N "
                 "bytes")
      ->allow_extra_args(false);
  app.add_option("--lds", options.lds, "bytes of dynamic LDS");
  app.add_option(
      "--check", options.check,
      "all, none, or some of "
      "bounds,uninit,races,waits,hazards, and align,programs, which are not "
      "among all");
  app.add_flag("--stats", options.stats, "counts and an estimate of cycles");
  app.add_flag("--estimate", options.estimate,
               "the estimate alone, running only the workgroups it needs: "
               "outputs are incomplete and not written");
  app.add_option("--timeline", options.timeline,
                 "with --stats or --estimate: waves, units and waits of the "
                 "estimate into this file, for Perfetto");
  app.add_flag("--json", options.json,
               "counts and estimate as one line of JSON");
  app.add_flag("--one-wave", options.oneWave,
               "estimate one wave alone on its SIMD");
  app.add_option("--latency", options.latency,
                 "cycles instead of the chip table's: "
                 "lds:64,scalar:100,cache:128,memory:500");
  app.add_option("--scale", options.scale,
                 "all latencies, and the LDS's bytes a cycle, times these: "
                 "latency:0.5,lds-rate:2");
  app.add_option("--compute-units", options.computeUnits,
                 "compute units of the chip; 0: those of the chip's table")
      ->check(CLI::Range(0u, 65536u));
  app.add_option("--cu-workgroups", options.cuWorkgroups,
                 "workgroups per compute unit; 0: as many as fit")
      ->check(CLI::Range(0u, 4096u));
  app.add_option("--trace", options.trace,
                 "print the first N instructions of workgroup 0; 0: none");
  app.add_option("--threads", options.threads,
                 "worker threads; 0: one per core")
      ->check(CLI::Range(0u, 4096u));
  app.add_option("--budget", options.budget, "instructions a wave may execute");
  if (auto status = app.parseArguments(argc, argv))
    return *status;
  return greta_sim::run(options);
}

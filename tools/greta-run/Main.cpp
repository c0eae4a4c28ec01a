// Main.cpp: greta-run's command line. An error is one line on stderr and exit
// status 1, with nothing written.
#include "CommandLine.h"
#include "OneLine.h"
#include "Options.h"

#include <cerrno>
#include <cstdio>
#include <system_error>

using namespace greta_run;

// Whether a limit was given is `Limits`' count.
static void addOptions(CommandLine &App, Options &O,
                       std::vector<CLI::Option *> &Limits) {
  App.add_option("package", O.Package, "the .greta file");
  App.add_option("--device", O.Device,
                 "hip[:N], vulkan[:N], sim:<gfx> or host; without it the first "
                 "that exists");
  App.add_option("--function", O.Function,
                 "the function to run; not needed if the package has one");
  App.add_option("--variant", O.Variant,
                 "run this variant instead of the one the device prefers");
  App.add_option("--input", O.Inputs,
                 "one per argument. A file: x.npy, bf16:x.npy (uint16 data). "
                 "Generated: "
                 "4096xf16:random:SEED[:SIGMA], "
                 "8xi32:random:SEED[:LO:HI], 3xf32:value:V, 3xf32:zeros; a "
                 "scalar: i32:1003, f32:0.5")
      ->allow_extra_args(false);
  App.add_option("--output", O.Outputs, "one .npy file per result")
      ->allow_extra_args(false);
  App.add_option("--expect", O.Expected,
                 "one .npy file per result to compare with")
      ->allow_extra_args(false);
  auto *Rtol =
      App.add_option("--rtol", O.Rtol,
                     "with --check or --expect: |got - want| <= atol + rtol * "
                     "|want| for every element")
          ->check(numbersFrom0());
  auto *Atol = App.add_option("--atol", O.Atol,
                              "see --rtol; with neither, the limits are "
                              "docs/internals/numerics.md's, per "
                              "row")
                   ->check(numbersFrom0());
  App.add_flag(
      "--check", O.Check,
      "compare with the package's host variant, and say passed or failed");
  App.add_flag("--no-native-code", O.NoNativeCode,
               "load no host variant: it is native code, which a package from "
               "elsewhere should not bring");
  App.add_flag("--bench", O.Bench, "measure the function's GPU time");
  App.add_flag("--bench-host", O.BenchHost,
               "measure the host's time for each launch: outside of a graph, "
               "recorded into one, replayed");
  auto *Profile = App.add_flag(
      "--profile", O.Profile,
      "each kernel's time, the bytes it touches and its share of what a copy "
      "of this run moves");
  App.add_option("--flop", O.Flop,
                 "with --profile: operations of one launch, for its TFLOP/s")
      ->needs(Profile)
      ->check(positiveNumbers());
  App.add_option("--reps", O.Reps, "measurements, whose median counts")
      ->check(CLI::Range(1u, 100000u));
  App.add_option("--launches", O.Launches,
                 "launches in one measurement; 0: as many as take about 2 ms")
      ->check(CLI::Range(0u, 100000u));
  App.add_option("--rotate", O.Rotate,
                 "sets of buffers used in turn; 0: as many as exceed the "
                 "caches")
      ->check(CLI::Range(0u, 4096u));
  App.add_option("--bench-copy", O.BenchCopy,
                 "also measure a device-to-device copy of BYTES (256M, 1G)");
  App.add_flag("--json", O.Json, "machine-readable output");
  auto *List = App.add_flag("--list-devices", O.ListDevices,
                            "list the devices, and why one is missing");
  App.add_flag("--diagnose", O.Diagnose,
               "with --list-devices: what to install or change to get more or "
               "faster devices")
      ->needs(List);
  App.add_option("--smoke", O.Smoke,
                 "open, check and use the device so many times (--smoke alone: "
                 "10); takes no package")
      ->expected(0, 1)
      ->default_str("10")
      ->check(CLI::Range(1u, 100000u));
  App.add_flag(
      "--inspect", O.Inspect,
      "list functions, variants and registers; with --device also what the "
      "driver compiled");
  App.footer("Environment: GRETA_CHECK=1 lets sim: devices check the bounds, "
             "races and uninitialised reads of kernels;\n"
             "GRETA_HEALTH, GRETA_VULKAN_VALIDATE, GRETA_TRACE and others: "
             "docs/guide/runtime.md");
  Limits = {Rtol, Atol};
}

int main(int argc, char **argv) {
  Options O;
  CommandLine App{"Runs, checks, times and inspects GRETA packages.",
                  "greta-run"};
  std::vector<CLI::Option *> Limits;
  addOptions(App, O, Limits);
  if (auto Status = App.parseArguments(argc, argv))
    return *Status;
  if (O.NoNativeCode)
    greta_refuse_native_code();
  O.Elementwise = Limits[0]->count() || Limits[1]->count();
  try {
    int Status = O.Smoke         ? smoke(O)
                 : O.ListDevices ? listDevices(O)
                 : O.Inspect     ? inspect(O)
                                 : run(O);
    // Output that nobody could read is no success.
    if (Status == 0 && fflush(stdout) != 0)
      throw std::system_error(errno, std::generic_category(),
                              "writing standard output");
    return Status;
  } catch (const std::bad_alloc &) {
    fprintf(stderr, "greta-run: error: out of host memory\n");
  } catch (const std::length_error &) {
    fprintf(stderr, "greta-run: error: out of host memory\n");
  } catch (const std::exception &E) {
    fprintf(stderr, "greta-run: error: %s\n", onOneLine(E.what()).c_str());
  }
  return 1;
}

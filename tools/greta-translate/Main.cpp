//===- Main.cpp - greta-translate's command line --------------------------===//

#include "CommandLine.h"
#include "Translate.h"
#include "llvm/Support/InitLLVM.h"

using namespace greta::translate;

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  Options options;
  CommandLine app{
      "GRETA's compiler: one package for many targets, or the code of "
      "one target in the form asked for.",
      "greta-translate"};
  app.add_option("source", options.input,
                 "functions in MLIR or Triton IR, or the package of "
                 "--package-to-header; -: stdin");
  app.add_option("-o,--output", options.output, "the file to write; -: stdout");
  app.add_option("--targets,--target", options.targets,
                 "gfx942,vulkan,host: several for a package, else one. AMD: "
                 "gfx90a gfx942 gfx950 gfx1030 gfx1100 to gfx1103 gfx1150 "
                 "gfx1151 gfx1200 gfx1201; vulkan, or one of its families "
                 "(vulkan:nvidia); host");
  CLI::Option_group *actions = app.add_option_group("Actions");
  actions->require_option(0, 1);
  auto make = [&](const char *name, Action action, const char *description) {
    actions->add_flag_callback(
        name, [&options, action] { options.action = action; }, description);
  };
  make("--greta-to-package", Action::Package, "a package for --targets");
  actions->add_flag_callback(
      "--triton-to-package",
      [&options] {
        options.action = Action::Package;
        options.isTriton = true;
      },
      "a package of Triton IR's kernels for --targets");
  make("--greta-to-hsaco", Action::Hsaco, "the AMD code object for --target");
  make("--greta-to-amdgcn", Action::Amdgcn, "AMD assembly for --target");
  make("--greta-to-llvmir", Action::LLVMIR, "optimised LLVM IR for --target");
  make("--greta-to-spirv", Action::Spirv, "the SPIR-V module for --target");
  make("--package-to-header", Action::Header,
       "a C header that holds a package");
  app.add_option("--function", options.function, "compile this function only");
  app.add_option("--kernel", options.kernel,
                 "write this kernel of the function, counted from 0");
  app.add_option("--tuning", options.tuning,
                 "tuning database of greta-tune, for the tiles of GEMMs");
  app.add_flag("--checked", options.checked,
               "GPU kernels check the tables, lengths and slots of KV caches; "
               "the launch fails if one is wrong");
  app.add_flag("--join{1}", options.joined,
               "functions also have variants whose launches are one of "
               "workgroups that stay, so many on each compute unit; devices "
               "that promise to run them at a time take them")
      ->check(CLI::Range(1, 32));
  app.add_option("--part-rows", options.partRows,
                 "sums over ranks that do not say it are made in parts of so "
                 "many rows, each while the next is computed; 0: in one. "
                 "Without it the model chooses")
      ->check(CLI::Range(0, 1 << 24));
  app.add_flag("--line-tables", options.lineTables,
               "AMD code objects name the source lines that they come from; "
               "the code stays the same except for clauses of loads");
  app.add_option("--grid", options.grid,
                 "Triton IR: programs along x, y and z as expressions over the "
                 "kernel's arguments, \"m ceildiv 64, n\"; without it the "
                 "function takes three more arguments, grid_x, grid_y, grid_z");
  app.add_option("--num-warps", options.numWarps,
                 "Triton IR: waves of a program; 0: what the text says, else "
                 "4");
  app.add_option("--num-stages", options.numStages,
                 "Triton IR: K tiles in shared memory at a time, of loops with "
                 "dots that do not say it themselves; 0: the compiler chooses");
  std::string report;
  app.add_flag("--report{text}", report,
               "print every kernel's configuration, registers and main loop; "
               "with or without a form to write")
      ->check(CLI::IsMember({"text", "json"}));
  app.add_flag("--timing", options.timing,
               "print the time of each pass on stderr");
  app.add_flag("-q,--quiet", options.isQuiet, "show no progress on a terminal");
  if (auto status = app.parseArguments(argc, argv))
    return *status;
  if (!report.empty())
    options.report = report == "json" ? Report::Json : Report::Text;
  return translate(options);
}

//===- Main.cpp - greta-translate's command line --------------------------===//

#include "CommandLine.h"
#include "Translate.h"
#include "llvm/Support/InitLLVM.h"

using namespace greta::translate;

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  Options options;
  CLI::App app{"GRETA's compiler: one package for many targets, or the code of "
               "one target in the form asked for.",
               "greta-translate"};
  app.add_option("source", options.input,
                 "functions in MLIR, or the package of --package-to-header; "
                 "stdin unless given");
  app.add_option("-o,--output", options.output,
                 "where to write; stdout unless given");
  app.add_option("--targets,--target", options.targets,
                 "gfx942,vulkan,host: several for a package, else one");
  CLI::Option_group *actions = app.add_option_group("What to make");
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
                 "of a function's kernels write this one");
  app.add_option("--tuning", options.tuning,
                 "tuning database to take GEMMs' tiles from");
  app.add_flag("--checked", options.checked,
               "GPU kernels check tables, lengths and slots of KV caches; a "
               "launch that finds a wrong one fails");
  app.add_flag("--line-tables", options.lineTables,
               "AMD code objects say which lines of the source they come from; "
               "their code stays the same, but for clauses of loads");
  app.add_option("--grid", options.grid,
                 "of Triton IR: programs along x, y and z over a kernel's "
                 "arguments, \"m ceildiv 64, n\"; arguments of their own "
                 "unless given");
  app.add_option("--num-warps", options.numWarps,
                 "of Triton IR: waves of a program; 4 unless the text says");
  std::string report;
  app.add_flag("--report{text}", report,
               "print every kernel's configuration, registers and main loop; "
               "may stand alone")
      ->check(CLI::IsMember({"text", "json"}));
  app.add_flag("--timing", options.timing, "say on stderr where the time went");
  if (auto status = parseCommandLine(app, argc, argv))
    return *status;
  if (!report.empty())
    options.report = report == "json" ? Report::Json : Report::Text;
  return translate(options);
}

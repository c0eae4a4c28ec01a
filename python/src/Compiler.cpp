//===- Compiler.cpp - from a request to a package or a text ---------------===//

#include "Compiler.h"
#include "greta/Package/Compile.h"
#include "greta/Package/Frontend.h"
#include "greta/Package/Package.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include <link.h>

using namespace mlir;
using namespace greta;
using namespace greta::python;

static std::string tileText(ArrayRef<SourceFunction> functions) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (const SourceFunction &function : functions) {
    function.module.get()->print(os);
    os << "\n";
  }
  return text;
}

static FailureOr<std::string> compile(const Request &request,
                                      MLIRContext &context,
                                      llvm::raw_ostream &messages) {
  auto fail = [&](llvm::Error error) {
    messages << "error: " << llvm::toString(std::move(error)) << "\n";
    return failure();
  };
  llvm::Expected<SmallVector<const TargetRow *>> rows =
      parseTargets(request.targets);
  if (!rows)
    return fail(rows.takeError());
  CompileOptions options;
  options.lineTables = request.lineTables;
  options.hasRanges = request.form == Form::Package;
  options.artifact = request.form == Form::LLVMIR     ? Artifact::LLVMIR
                     : request.form == Form::Assembly ? Artifact::Assembly
                                                      : Artifact::Object;
  TimingScope timing;
  std::vector<CompiledFunction> all;
  for (const auto &[text, grid] : request.sources) {
    // Messages show the lines of the source that they are about.
    llvm::SourceMgr source;
    source.AddNewSourceBuffer(
        llvm::MemoryBuffer::getMemBuffer(text, request.name), llvm::SMLoc());
    SourceMgrDiagnosticHandler handler(source, &context, messages);
    FailureOr<std::vector<SourceFunction>> functions = readSource(
        source, &context, timing,
        {request.isTriton, grid, request.numWarps, request.numStages});
    if (failed(functions))
      return failure();
    if (request.form == Form::Tile)
      return tileText(*functions);
    FailureOr<SmallVector<CompiledFunction, 1>> compiled =
        compileFunctions(*functions, *rows, options);
    if (failed(compiled))
      return failure();
    if (request.form != Form::Package)
      return compiled->front().variants.front().kernels.front().object;
    llvm::move(*compiled, std::back_inserter(all));
  }
  llvm::Expected<std::string> archive = archivePackage(describePackage(all));
  if (!archive)
    return fail(archive.takeError());
  return std::move(*archive);
}

Outcome greta::python::compile(const Request &request) {
  DialectRegistry registry;
  registerCompilerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  Outcome outcome;
  llvm::raw_string_ostream messages(outcome.messages);
  FailureOr<std::string> result = ::compile(request, context, messages);
  outcome.succeeded = succeeded(result);
  if (outcome.succeeded)
    outcome.result = std::move(*result);
  return outcome;
}

std::string greta::python::buildId() {
  // Finds the linker's hash of this library in the note that it left there.
  struct Search {
    uintptr_t here;
    std::string id;
  } search = {reinterpret_cast<uintptr_t>(&buildId), ""};
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *data) {
        auto &search = *static_cast<Search *>(data);
        ArrayRef<ElfW(Phdr)> headers(info->dlpi_phdr, info->dlpi_phnum);
        bool isThis = llvm::any_of(headers, [&](const ElfW(Phdr) & header) {
          uintptr_t start = info->dlpi_addr + header.p_vaddr;
          return header.p_type == PT_LOAD && search.here >= start &&
                 search.here < start + header.p_memsz;
        });
        if (!isThis)
          return 0;
        for (const ElfW(Phdr) &header : headers) {
          if (header.p_type != PT_NOTE)
            continue;
          auto *at =
              reinterpret_cast<const char *>(info->dlpi_addr + header.p_vaddr);
          for (const char *end = at + header.p_memsz; at < end;) {
            auto *note = reinterpret_cast<const ElfW(Nhdr) *>(at);
            const char *name = at + sizeof(*note);
            const char *content = name + llvm::alignTo(note->n_namesz, 4);
            if (note->n_type == NT_GNU_BUILD_ID && StringRef(name, 3) == "GNU")
              search.id = llvm::toHex(StringRef(content, note->n_descsz),
                                      /*LowerCase=*/true);
            at = content + llvm::alignTo(note->n_descsz, 4);
          }
        }
        return 1;
      },
      &search);
  return search.id;
}

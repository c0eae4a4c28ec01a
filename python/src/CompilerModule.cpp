//===- CompilerModule.cpp - the module greta._compiler --------------------===//

#include "Compiler.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace greta::python;
using namespace nb::literals;

NB_MODULE(_compiler, m) {
  m.doc() = "GRETA's compiler; greta's other modules are what to use";
  nb::enum_<Form>(m, "Form")
      .value("Package", Form::Package)
      .value("Tile", Form::Tile)
      .value("LLVMIR", Form::LLVMIR)
      .value("Assembly", Form::Assembly)
      .value("Object", Form::Object);
  m.def("build_id", &buildId, "Differs between any two builds");
  m.def(
      "compile",
      [](std::vector<std::pair<std::string, std::string>> sources,
         std::string targets, std::string name, bool triton, unsigned numWarps,
         unsigned numStages, Form form, bool lineTables) {
        Request request{std::move(sources),
                        std::move(name),
                        std::move(targets),
                        triton,
                        numWarps,
                        numStages,
                        form,
                        lineTables};
        Outcome outcome;
        {
          nb::gil_scoped_release release;
          outcome = compile(request);
        }
        return nb::make_tuple(
            outcome.succeeded,
            nb::bytes(outcome.result.data(), outcome.result.size()),
            outcome.messages);
      },
      "sources"_a, "targets"_a, "name"_a = "source", "triton"_a = false,
      "num_warps"_a = 0, "num_stages"_a = 0, "form"_a = Form::Package,
      "line_tables"_a = false,
      "Of texts and their grids: whether it succeeded, the result, and what "
      "the compiler said");
}

//===- CompilerModule.cpp - the module greta._compiler --------------------===//

#include "Compiler.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

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
      [](std::string text, std::string targets, std::string name, bool triton,
         std::string grid, unsigned numWarps, Form form, bool lineTables) {
        Request request{std::move(text),
                        std::move(name),
                        std::move(targets),
                        triton,
                        std::move(grid),
                        numWarps,
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
      "text"_a, "targets"_a, "name"_a = "source", "triton"_a = false,
      "grid"_a = "", "num_warps"_a = 0, "form"_a = Form::Package,
      "line_tables"_a = false,
      "Whether it succeeded, the result, and what the compiler said");
}

//===- SpirvEmitterTest.cpp - what a SPIR-V module asks of a device -------===//
//
// Kernels at the lane level that use cooperative matrices, compiled for rows of
// the target table: the products, layouts and features that reach the manifest.
//
//===----------------------------------------------------------------------===//

#include "greta/SPIRV/SpirvEmitter.h"
#include "GretaTile/GretaTile.h"
#include "greta/Package/Package.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <nlohmann/json.hpp>

using namespace greta;
using namespace mlir;
using nlohmann::json;

namespace {

/// A product of `type` 16x16 by 16x16 into f32, whose elements are read and
/// whose A is built of elements where `named` says so.
std::string kernelText(const std::string &type, bool named) {
  std::string a = "!greta_tile.fragment<16x16x" + type + ", a>";
  std::string b = "!greta_tile.fragment<16x16x" + type + ", b>";
  std::string acc = "!greta_tile.fragment<16x16xf32, acc>";
  std::string text = R"(
greta_tile.func @k(%p: !greta_tile.ptr<f32>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant 0.0 : f32
  %v = arith.constant dense<1.0> : vector<8x)" +
                     type + ">\n  %one = arith.constant 1.0 : " + type + "\n";
  text += named ? "  %a = greta_tile.fragment_from_elements %v : vector<8x" +
                      type + "> -> " + a + "\n"
                : "  %a = greta_tile.fragment_splat %one : " + type + " -> " +
                      a + "\n";
  text += "  %b = greta_tile.fragment_splat %one : " + type + " -> " + b +
          "\n  %c = greta_tile.fragment_splat %zero : f32 -> " + acc;
  for (const char *operands : {"%d = greta_tile.mma \"coopmat\" %a, %b, %c",
                               "%e = greta_tile.mma \"coopmat\" %a, %b, %d"})
    text +=
        std::string("\n  ") + operands + " : " + a + ", " + b + " -> " + acc;
  if (named)
    text += "\n  %f = greta_tile.fragment_elements %e : " + acc +
            " -> vector<8xf32>\n  greta_tile.ptr_store %f, %p[%c0] align 16 : "
            "vector<8xf32> -> !greta_tile.ptr<f32>";
  return text + "\n  greta_tile.return\n}\n";
}

class Emitter : public testing::Test {
protected:
  Emitter() : context(MLIRContext::Threading::DISABLED) {
    DialectRegistry registry;
    registry.insert<arith::ArithDialect, vector::VectorDialect,
                    tile::GretaTileDialect>();
    context.appendDialectRegistry(registry);
  }

  /// `requires` of the manifest, or the diagnostic as a string.
  json requirements(StringRef target, const std::string &text) {
    std::string said;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      said += diagnostic.str();
      return success();
    });
    auto module = parseSourceString<ModuleOp>(text, &context);
    if (!module)
      return said;
    const TargetRow &row = *llvm::cantFail(lookupTarget(target));
    FailureOr<SpirvObject> object = emitSpirv(
        *module->getOps<tile::FuncOp>().begin(), row, Artifact::Object);
    if (failed(object))
      return said;
    CompiledFunction function;
    function.spec.name = "k";
    CompiledVariant &variant = function.variants.emplace_back();
    variant.row = &row;
    // Twice, as two kernels of a variant do.
    addRequirements(variant.requires_, object->requirements);
    addRequirements(variant.requires_, object->requirements);
    return json::parse(
        describePackage(function)
            .manifest)["functions"][0]["variants"][0]["requires"];
  }

  MLIRContext context;
};

bool has(const json &list, const char *name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

TEST_F(Emitter, ProductsWithoutElementsNeedNoLayouts) {
  json needs = requirements("vulkan:rdna3", kernelText("f16", false));
  EXPECT_EQ(needs["coopmat"],
            json::parse(R"([{"m":16,"n":16,"k":16,"a":"f16","b":"f16",
                             "c":"f32","result":"f32"}])"));
  EXPECT_FALSE(needs.contains("layouts"));
  EXPECT_EQ(needs["subgroup_size"], 32);
  EXPECT_TRUE(has(needs["features"], "cooperativeMatrix"));
  EXPECT_TRUE(has(needs["features"], "vulkanMemoryModel"));
  EXPECT_FALSE(has(needs["features"], "shaderBFloat16Type"));
}

TEST_F(Emitter, ElementsNeedTheRowsLayouts) {
  json needs = requirements("vulkan:nvidia", kernelText("bf16", true));
  EXPECT_EQ(needs["coopmat"].size(), 1u);
  EXPECT_EQ(needs["coopmat"][0]["a"], "bf16");
  EXPECT_EQ(needs["layouts"], json::parse(R"([
    {"use":"a","dtype":"bf16","rows":16,"cols":16,
     "lane":[[0,2],[0,4],[1,0],[2,0],[4,0]],"element":[[0,1],[0,8],[8,0]]},
    {"use":"acc","dtype":"f32","rows":16,"cols":16,
     "lane":[[0,2],[0,4],[1,0],[2,0],[4,0]],"element":[[0,1],[0,8],[8,0]]}])"));
  EXPECT_TRUE(has(needs["features"], "shaderBFloat16Type"));
  EXPECT_TRUE(has(needs["features"], "shaderBFloat16CooperativeMatrix"));
}

TEST_F(Emitter, UnknownLayoutsAreAnError) {
  EXPECT_EQ(requirements("vulkan:lavapipe", kernelText("f16", true)),
            "'greta_tile.fragment_from_elements' op names elements of "
            "'!greta_tile.fragment<16x16xf16, a>', whose layout is not known "
            "for vulkan:lavapipe; go through shared memory");
}

} // namespace

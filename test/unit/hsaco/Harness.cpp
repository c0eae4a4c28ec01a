//===- Harness.cpp - compile a lane-level kernel and run it ---------------===//

#include "Harness.h"
#include "GretaTile/GretaTile.h"
#include "greta/AMDGPU/Hsaco.h"
#include "greta/Passes.h"
#include "greta/Sim/Simulator.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/APFloat.h"

using namespace mlir;
using namespace greta;

std::string test::replaced(std::string text, const std::string &from,
                           const std::string &to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;
       at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

unsigned test::HsacoTest::wave() const {
  return llvm::cantFail(lookupTarget(GetParam()))->waveSize;
}

/// The code object of the only kernel of `text`; a failure is the test's.
static std::string compile(const std::string &text, const TargetRow &row) {
  static MLIRContext *context = [] {
    DialectRegistry registry;
    registry.insert<arith::ArithDialect, math::MathDialect, scf::SCFDialect,
                    vector::VectorDialect, tile::GretaTileDialect>();
    return new MLIRContext(registry, MLIRContext::Threading::DISABLED);
  }();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, context);
  if (!module) {
    ADD_FAILURE() << "does not parse:\n" << text;
    return "";
  }
  PassManager passes(context);
  GretaExpandPassOptions expand;
  expand.target = row.name.str();
  passes.addNestedPass<tile::FuncOp>(createGretaExpandPass(expand));
  if (failed(passes.run(*module))) {
    ADD_FAILURE() << "does not expand:\n" << text;
    return "";
  }
  FailureOr<HsacoKernel> object =
      emitHsaco(*module->getOps<tile::FuncOp>().begin(), row, {});
  if (failed(object)) {
    ADD_FAILURE() << "does not compile:\n" << text;
    return "";
  }
  EXPECT_EQ(object->stats->scratchBytes, 0);
  return object->object;
}

void test::HsacoTest::run(std::string kernel, std::vector<Bytes *> buffers,
                          std::vector<int32_t> scalars, unsigned groups) {
  const TargetRow &row = *llvm::cantFail(lookupTarget(GetParam()));
  kernel = replaced(kernel, "{{wave}}", std::to_string(row.waveSize));
  for (unsigned lanes : {64, 128, 256})
    kernel = replaced(kernel, "{{waves" + std::to_string(lanes) + "}}",
                      std::to_string(lanes / row.waveSize));
  std::string object = compile(kernel, row);
  if (object.empty())
    return;
  auto device = llvm::cantFail(sim::Device::create(row.name));
  auto module = device->load(
      {reinterpret_cast<const uint8_t *>(object.data()), object.size()});
  if (!module) {
    ADD_FAILURE() << llvm::toString(module.takeError());
    return;
  }
  const sim::Kernel &entry = (*module)->kernels().front();
  std::vector<void *> addresses;
  std::vector<uint8_t> arguments;
  for (Bytes *buffer : buffers) {
    addresses.push_back(device->allocate(buffer->size()));
    std::memcpy(addresses.back(), buffer->data(), buffer->size());
    const auto *bytes = reinterpret_cast<const uint8_t *>(&addresses.back());
    arguments.insert(arguments.end(), bytes, bytes + 8);
  }
  for (const int32_t &scalar : scalars) {
    const auto *bytes = reinterpret_cast<const uint8_t *>(&scalar);
    arguments.insert(arguments.end(), bytes, bytes + 4);
  }
  // The package promises this: arguments at natural alignment, from 0 on.
  EXPECT_EQ(entry.info().explicitKernargBytes, arguments.size());
  sim::LaunchConfig config;
  config.grid.x = groups;
  config.block.x = entry.info().maxWorkgroupSize;
  config.kernarg = arguments;
  if (llvm::Error error = device->launch(entry, config)) {
    ADD_FAILURE() << llvm::toString(std::move(error)) << "\n" << kernel;
    return;
  }
  for (size_t i = 0; i < buffers.size(); ++i)
    std::memcpy(buffers[i]->data(), addresses[i], buffers[i]->size());
}

static uint16_t round(float value, const llvm::fltSemantics &semantics) {
  llvm::APFloat number(value);
  bool loses;
  number.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &loses);
  return static_cast<uint16_t>(number.bitcastToAPInt().getZExtValue());
}

static float extend(uint16_t bits, const llvm::fltSemantics &semantics) {
  llvm::APFloat number(semantics, llvm::APInt(16, bits));
  bool loses;
  number.convert(llvm::APFloat::IEEEsingle(),
                 llvm::APFloat::rmNearestTiesToEven, &loses);
  return number.convertToFloat();
}

uint16_t test::toHalf(float value) {
  return round(value, llvm::APFloat::IEEEhalf());
}
float test::fromHalf(uint16_t bits) {
  return extend(bits, llvm::APFloat::IEEEhalf());
}
uint16_t test::toBFloat(float value) {
  return round(value, llvm::APFloat::BFloat());
}
float test::fromBFloat(uint16_t bits) {
  return extend(bits, llvm::APFloat::BFloat());
}

//===- TritonGPU.cpp - what Triton IR has of Triton's GPU dialect ---------===//

#include "Triton/Triton.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace greta::triton;

#include "Triton/TritonGPUDialect.cpp.inc"
#define GET_OP_CLASSES
#include "Triton/TritonGPUOps.cpp.inc"

void gpu::TTGDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "Triton/TritonGPUOps.cpp.inc"
      >();
}

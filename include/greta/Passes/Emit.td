//===- Emit.td - passes from lanes to LLVM and SPIR-V, and the host ------===//
#ifndef GRETA_PASSES_EMIT_TD
#define GRETA_PASSES_EMIT_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Emitters (lib/AMDGPU, lib/SPIRV)
//===----------------------------------------------------------------------===//

def GretaTileToROCDL : Pass<"greta-tile-to-rocdl", "::mlir::ModuleOp"> {
  let summary = "Kernels at the lane level become LLVM functions for an AMD chip";
  let description = [{
    Takes modules whose `greta_tile.func` kernels hold lane ops, scalars and small vectors only (what `greta-tile-distribute`
    leaves), and nothing that launches them. Each becomes an `llvm.func` with the AMDGPU kernel calling convention, the exact
    workgroup size and the chip in its attributes; shared memory becomes globals of address space 3. Functions of the math
    dialect become instructions or polynomials, never calls. A kernel whose `wave_size` is not the chip's, or that needs more
    LDS than a workgroup has, is an error.

    ```mlir
    %v = greta_tile.ptr_load %x[%i] align 16 : !greta_tile.ptr<f16> -> vector<8xf16>
    // becomes
    %0 = llvm.shl %i, %one overflow<nuw> : i32
    %1 = llvm.zext %0 : i32 to i64
    %2 = llvm.getelementptr inbounds|nuw %x[%1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
    %v = llvm.load %2 {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xf16>
    ```
  }];
  let options = [Option<"chip", "chip", "std::string", /*default=*/"\"\"", "AMD chip, for example gfx942">];
  let dependentDialects = ["::mlir::cf::ControlFlowDialect", "::mlir::LLVM::LLVMDialect", "::mlir::ROCDL::ROCDLDialect"];
}

def GretaTileToSPIRV : Pass<"greta-tile-to-spirv", "::mlir::ModuleOp"> {
  let summary = "Kernels at the lane level become one spirv.module each";
  let description = [{
    Takes modules whose `greta_tile.func` kernels hold lane ops, scalars and small vectors only (what `greta-tile-distribute`
    leaves), and nothing that launches them. Each kernel is replaced by a `spirv.module` in the place where it stood: addressing through physical storage
    buffers, the arguments in one push-constant block (64-bit device addresses, then i32), LocalSize = `waves` x `wave_size`, an entry
    point of the kernel's name. Only the capabilities that the code needs are declared.

    ```mlir
    greta_tile.func @copy(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>) attributes {wave_size = 1 : i32, waves = 64 : i32} {
      %i = greta_tile.wave_id
      %v = greta_tile.ptr_load %x[%i] align 4 : !greta_tile.ptr<f32> -> f32
      greta_tile.ptr_store %v, %y[%i] align 4 : f32 -> !greta_tile.ptr<f32>
      greta_tile.return
    }
    ```
    becomes
    ```mlir
    spirv.module @copy PhysicalStorageBuffer64 GLSL450 requires #spirv.vce<v1.5, [Shader, Int64, PhysicalStorageBufferAddresses], []> {
      spirv.GlobalVariable @args : !spirv.ptr<!spirv.struct<(i64 [0], i64 [8]), Block>, PushConstant>
      ...
    ```
  }];
  let dependentDialects = ["::mlir::spirv::SPIRVDialect"];
}

//===----------------------------------------------------------------------===//
// The host (lib/Host)
//===----------------------------------------------------------------------===//

def GretaDecomposePass : Pass<"greta-decompose"> {
  let summary = "Replace greta ops by their definition in linalg, arith and math";
  let description = [{
    Every op of the `greta` dialect gives its definition through `DecomposableOpInterface`; this pass puts it in place. What
    comes out has no op of the dialect. It runs on any op, needs nothing before it, and is the first step of the `host` target.

    ```mlir
    %0 = greta.swiglu %gate, %up : tensor<4x8xf16>, tensor<4x8xf16> -> tensor<4x8xf16>
    // becomes
    %1 = tensor.empty() : tensor<4x8xf16>
    %2 = linalg.generic {..} ins(%gate, %up) outs(%1) { extf, extf, negf, exp, addf, divf, mulf, truncf }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

#endif

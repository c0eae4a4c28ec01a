//===- Passes.td - conversions between the levels of the compiler ---------===//
#ifndef GRETA_CONVERSION_PASSES_TD
#define GRETA_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

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

def GretaTileDistributePass : Pass<"greta-tile-distribute", "::mlir::ModuleOp"> {
  let summary = "Kernels on block tensors become one lane's program";
  let description = [{
    Every block tensor has a layout (`greta-tile-assign-layouts`). It becomes as many scalars as the layout has registers;
    loads and stores become lane accesses of up to 16 bytes, reductions and `convert_layout` shuffles and shared memory.

    ```mlir
    %s = arith.addf %a, %b : tensor<1x64xf32, #l>      // #l: 32 lanes, 2 registers
    // becomes
    %s0 = arith.addf %a0, %b0 : f32
    %s1 = arith.addf %a1, %b1 : f32
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def GretaToTilePass : Pass<"greta-to-tile", "::mlir::ModuleOp"> {
  let summary = "Configured kernels become programs on block tensors";
  let description = [{
    Every `greta.kernel` with a `config` (`greta-fuse`, `greta-configure`) becomes a `greta_tile.func`, what one workgroup does,
    and a `greta_tile.launch` in its place. The kernel is named after the function and its number in it.

    ```mlir
    %0 = greta.kernel(%x) {config = .., shapes = ..} ... { greta.softmax ... }   // one row of 256 per workgroup
    // becomes
    greta_tile.func @f_0(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>) attributes {..} {
      %row = greta_tile.program_id 0
      %v = greta_tile.load %x[%row, %c0] strides [256, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<1x256xf32>
      %max = greta_tile.reduce max %v dim 1 : tensor<1x256xf32> -> tensor<1x1xf32>
      ...
    }
    %0 = greta_tile.launch @f_0 grid affine_map<()[s0] -> (s0)> scalars affine_map<()[s0] -> ()> (%x) ...
    ```
  }];
  let dependentDialects = ["::greta::tile::GretaTileDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect"];
}

def GretaExpandFloat8Pass : Pass<"greta-expand-float8"> {
  let summary = "Conversions of 8-bit floats become instructions or integer arithmetic";
  let description = [{
    `arith.extf` and `arith.truncf` from and to f8E4M3FN, f8E5M2, f8E4M3FNUZ and f8E5M2FNUZ become the target's instructions, where its row says that it
    has that kind, else integer arithmetic; they round to the nearest, ties to even, and overflow to infinity, or to NaN in types without one. Other
    arithmetic on such types must have been widened before. In a kernel the types themselves become i8 then, as do its pointers.

    ```mlir
    %1 = arith.extf %0 : f8E5M2 to f16
    // becomes
    %2 = arith.extui %0 : i8 to i16
    %3 = arith.shli %2, %c8 : i16
    %1 = arith.bitcast %3 : i16 to f16
    ```
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"host\"", "row of the target table, for example gfx942">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::ROCDL::ROCDLDialect"];
}

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

#endif

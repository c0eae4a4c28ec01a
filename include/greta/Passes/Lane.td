//===- Lane.td - passes from blocks to one lane's program ----------------===//
#ifndef GRETA_PASSES_LANE_TD
#define GRETA_PASSES_LANE_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// From blocks to one lane's program (lib/Lane), its shared memory and order (lib/Tile)
//===----------------------------------------------------------------------===//

def GretaTileDistributePass : Pass<"greta-tile-distribute", "::mlir::ModuleOp"> {
  let summary = "Kernels on block tensors become one lane's program";
  let description = [{
    Every block tensor has a layout (`greta-tile-assign-layouts`). It becomes as many scalars as the layout has registers;
    loads and stores become lane accesses of up to 16 bytes, reductions and `convert_layout` shuffles and shared memory, in parts where a whole
    block is more than a workgroup of the target has.

    ```mlir
    %s = arith.addf %a, %b : tensor<1x64xf32, #l>      // #l: 32 lanes, 2 registers
    // becomes
    %s0 = arith.addf %a0, %b0 : f32
    %s1 = arith.addf %a1, %b1 : f32
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"host\"",
                        "row of the target table, which says how much shared memory there is and whether loads of a pipelined loop have masks">];
}

def GretaTileJoinPass : Pass<"greta-tile-join", "::mlir::ModuleOp"> {
  let summary = "Launches of a function in a row become one whose workgroups stay";
  let description = [{
    Takes the lane level. Launches with constant grids, workgroups of one size and no log become one `resident` launch of as many workgroups as run at a time. Its kernel has
    their bodies as phases, each a loop over its launch's grid, and a `greta_tile.grid_barrier` in front of a phase that touches what another since the last barrier wrote, or writes what
    another read. A load of memory that nobody writes is made a tile ahead, for the first tile in front of that barrier. The launch's last scalar is zero: it is no trial (`greta_tile.grid_barrier`). Functions whose arguments are memory
    (`greta.in_place`) stay as they are. Kernels that nobody launches any more are erased.
    A launch that would bring a lane's loops beyond `iterations` is not joined to those before it; a loop whose bounds are not constant counts once.

    ```mlir
    %0 = greta_tile.launch @a grid affine_map<() -> (768)> ..
    %1 = greta_tile.launch @b grid affine_map<() -> (264)> .. (%0)
    // becomes, with residents=132
    %0:3 = greta_tile.launch @f_joined0 grid affine_map<() -> (132)> scalars affine_map<() -> (0)> .. zeroed [2] .. resident
    greta_tile.func @f_joined0(..) ..  {
      scf.for %tile = program_id 0 to 768 step 132 { .. }
      greta_tile.grid_barrier %met until 132
      scf.for %tile = program_id 0 to 264 step 132 { .. }
      greta_tile.grid_barrier %met until 264 last
    }
    ```
  }];
  let options = [Option<"residents", "residents", "int64_t", /*default=*/"0", "workgroups that run at a time">,
                 Option<"iterations", "iterations", "int64_t", /*default=*/"0", "iterations of a lane's loops that the driver runs; 0: there is no limit">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def GretaTileTailPass : Pass<"greta-tile-tail", "::mlir::ModuleOp"> {
  let summary = "A launch of one workgroup is done by the last workgroup of the launch before it";
  let description = [{
    Takes the lane level. A launch of one workgroup that reads what the launch in front of it wrote becomes that one's tail: the workgroups count themselves in a word that
    holds zero before, and the last one goes on with the second kernel's work, so that nobody waits. Both have workgroups of one size, constant grids and no log, and the tail has no
    matrix products and up to 2 KB of shared memory, which fit beside the first kernel's. Functions whose arguments are memory (`greta.in_place`) stay as they are. Kernels that
    nobody launches any more are erased.

    ```mlir
    %0 = greta_tile.launch @gemm grid affine_map<() -> (512)> ..
    %1 = greta_tile.launch @norm grid affine_map<() -> (1)> .. (%0)
    // becomes
    %0:3 = greta_tile.launch @f_tail0 grid affine_map<() -> (512)> .. zeroed [2] ..
    ```
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"host\"", "row of the target table, for example gfx942">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def GretaTileCheckJoinedPass : Pass<"greta-tile-check-joined", "::mlir::ModuleOp"> {
  let summary = "Prove that kernels of resident launches wait for what comes, and for all that they need";
  let description = [{
    Takes the lane level, behind `greta-tile-join`, of which it knows nothing but the form. Fails unless, in each kernel of a `resident` launch,

    - barriers over the grid stand in the entry block, count on from one to the next by the launch's workgroups, in one word that nobody else touches, and only the last, at the end, is `last`:
      all workgroups come to all of them, so that every wait ends, and the next launch finds zero;
    - what touches other memory is a loop from `program_id 0` by the launch's workgroups to a constant, so that each tile is done once, and hands
      nothing to what is behind it; only loads of what nobody writes stand outside;
    - its last argument is an i32 without a use, for which the launch passes zero;
    - operands are memory of their own, none is written that the kernel promises only to read, and the counter is memory that the launch promises to hold zeros;
    - of two such loops between the same barriers neither writes through an argument that the other reads or writes;

    and unless kernels of other launches have no barriers over the grid.
  }];
}

def GretaTileCheckTailsPass : Pass<"greta-tile-check-tails", "::mlir::ModuleOp"> {
  let summary = "Prove that the last workgroup of a launch with a tail does it once, and sees what all wrote";
  let description = [{
    Takes the lane level, behind `greta-tile-tail`, of which it knows nothing but the form. Fails unless, in each kernel that a launch with `tail` in its configuration names, the entry
    block ends with these, and nothing else touches memory behind the first of them:

    - all lanes release to the device, and meet; the first lane releases, adds one to a word, tells the others through an array of its own what was there before, and acquires; all meet;
    - if that is the launch's workgroups but one, all lanes acquire, the first lane sets the word to zero, and the tail follows;

    and unless

    - the grid is constant, and the launch promises zeros in the word, which nobody else touches;
    - the tail takes nothing of before it that comes from memory, from the workgroup's number or from an array that is in use before it;
    - operands are memory of their own, and none is written that the kernel promises only to read.
  }];
}

def GretaTileBarriersPass : Pass<"greta-tile-barriers", "::greta::tile::FuncOp"> {
  let summary = "Put the lanes' accesses to shared memory in order";
  let description = [{
    Takes one lane's program (`greta-tile-distribute`) and inserts the fewest `greta_tile.barrier`s that order what lanes read and write: between an
    access and one that may meet it in the same stage of the same array, or in bytes that two arrays share (`greta-tile-plan-memory`), around loops
    too. Barriers that stand there count. For `ptr_load_shared` the barrier before what it has loaded is used waits, and leaves in flight what
    was issued later. On Vulkan a barrier in a loop stands in front of loads from global memory that are for the next iteration.

    ```mlir
    scf.for %i {
      shared_store %v, %a[%lane]; %w = shared_load %a[%other]
    }
    // becomes
    scf.for %i {
      barrier; shared_store %v, %a[%lane]; barrier; %w = shared_load %a[%other]
    }
    ```
  }];
  let dependentDialects = ["::greta::tile::GretaTileDialect"];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"host\"", "row of the target table, for example gfx942">];
}

def GretaTilePlanMemoryPass : Pass<"greta-tile-plan-memory", "::greta::tile::FuncOp"> {
  let summary = "Give every array in shared memory its place";
  let description = [{
    Sets the `offset` of every `shared_alloc` of a kernel with barriers. Arrays that are not in use together share bytes (on Vulkan those of one element
    type) where a barrier orders their uses anyway; also where none does, if more workgroups fit on a compute unit then:
    `greta-tile-barriers` runs again behind this pass. Fails where the target's workgroups have less shared memory than the kernel needs.
  }];
  let dependentDialects = ["::greta::tile::GretaTileDialect"];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"host\"", "row of the target table, for example gfx942">];
}

def GretaTileInterleavePass : Pass<"greta-tile-interleave", "::greta::tile::FuncOp"> {
  let summary = "Order what one lane of a GEMM does between two barriers";
  let description = [{
    Fragments of A are loaded just before their first GEMM. Every `greta_tile.schedule` is replaced by `schedule_group`s that say how the accesses
    and GEMMs before it alternate.
  }];
  let dependentDialects = ["::greta::tile::GretaTileDialect"];
}

def GretaTileExpandAtomicsPass : Pass<"greta-tile-expand-atomics", "::greta::tile::FuncOp"> {
  let summary = "Atomics that the target lacks become loops around those that it has";
  let description = [{
    Takes the lane level. `ptr_atomic_rmw fadd` of a type that the target's row does not add in memory, and `ptr_atomic_cas` of 16 bits, become a loop that
    replaces the word around the element by `ptr_atomic_cas` of 32 or 64 bits. `grid_barrier` becomes atomics, fences and barriers.

    ```mlir
    %old = greta_tile.ptr_atomic_rmw fadd device %p[%i], %v : !greta_tile.ptr<f64> -> f64
    // becomes
    %word = greta_tile.ptr_cast %p : !greta_tile.ptr<f64> -> !greta_tile.ptr<i64>
    %guess = greta_tile.ptr_atomic_rmw or device %word[%i], %c0 : !greta_tile.ptr<i64> -> i64
    %bits = scf.while (%seen = %guess) : (i64) -> i64 {
      %sum = arith.addf (arith.bitcast %seen), %v : f64
      %now = greta_tile.ptr_atomic_cas device %word[%i], %seen, (arith.bitcast %sum) : !greta_tile.ptr<i64> -> i64
      scf.condition(%now != %seen) %now : i64
    } do { ... }
    %old = arith.bitcast %bits : i64 to f64
    ```
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"\"", "row of the target table, for example gfx942">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def GretaExpandPass : Pass<"greta-expand"> {
  let summary = "Arithmetic that a target has no instructions for becomes what it has";
  let description = [{
    Conversions (`arith.extf`, `arith.truncf`) from and to f8E4M3FN, f8E5M2, f8E4M3FNUZ and f8E5M2FNUZ become the target's instructions, where its row says that it
    has that kind, else integer arithmetic; they round to the nearest, ties to even, and overflow to infinity, or to NaN in types without one. Other
    arithmetic on such types must have been widened before. In a kernel the types themselves become i8 then, as do its pointers.

    In a kernel also: functions of f16 and bf16 are computed in f32, and functions of the math dialect that the target lacks become polynomials and
    those that it has. Remainders of floats on Vulkan become divisions of integers, because Vulkan's own may be wrong by the divisor. Conversions of `vector<8xi4>` to f16 and `greta_tile.vector_dot` become arithmetic on pairs of f16. Arrays in shared memory become
    bytes on AMD, in SPIR-V vectors of words and scalars, and what indexes them counts those.

    ```mlir
    %1 = arith.extf %0 : f8E5M2 to f16
    // becomes
    %2 = arith.extui %0 : i8 to i16
    %3 = arith.shli %2, %c8 : i16
    %1 = arith.bitcast %3 : i16 to f16
    ```
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"host\"", "row of the target table, for example gfx942">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect",
                           "::mlir::LLVM::LLVMDialect", "::mlir::ROCDL::ROCDLDialect"];
}

#endif

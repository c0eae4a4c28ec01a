//===- ConfigureTogether.cpp - products that share a launch ---------------===//
//
// Products of one A, queries, keys and values, say, fill the device better side
// by side than one after another, and cost one launch. They are configured as
// what they are together, one product with all columns: the widest of those
// with heads, which are pickier, chooses, and the others take its tile. Shared
// memory is then that of one: a workgroup is in one of the branches. No product
// is split along K: its neighbours are there to fill the device.
//
//===----------------------------------------------------------------------===//

#include "Configure.h"

using namespace mlir;
using namespace greta;

FailureOr<std::optional<KernelConfig>>
greta::chooseTogether(ArrayRef<Space> spaces, Limits limits,
                      MLIRContext *context) {
  auto columnsOf = [](const Space &space) {
    int64_t columns = MatmulOp(space.matmul).getType().getShape().back();
    return ShapedType::isDynamic(columns) ? 1 : columns;
  };
  auto rankOf = [&](const Space &space) {
    return std::pair(bool(space.heads), columnsOf(space));
  };
  const Space *leader = &spaces.front();
  for (const Space &space : spaces) {
    limits.columns += columnsOf(space);
    if (rankOf(space) > rankOf(*leader))
      leader = &space;
  }
  FailureOr<Choice> lead = choose(*leader, limits, 0, context);
  if (failed(lead))
    return failure();
  if (lead->split > 1) // what was measured for it alone
    return std::optional<KernelConfig>();
  limits.waves = lead->block / limits.wave;
  limits.tile = lead->tile.get();
  KernelConfig config;
  config.blockSize = lead->block;
  for (const Space &space : spaces) {
    FailureOr<Choice> choice = choose(space, limits, 0, context);
    if (failed(choice))
      return failure();
    if (choice->block != lead->block || choice->split > 1 ||
        !choice->tile != !lead->tile)
      return std::optional<KernelConfig>();
    config.spaces.push_back(std::move(choice->space));
  }
  return std::optional<KernelConfig>(std::move(config));
}

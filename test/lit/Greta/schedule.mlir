// RUN: greta-opt %s | greta-opt | FileCheck %s
// RUN: greta-opt --mlir-print-op-generic %s | greta-opt | FileCheck %s

// Entries are printed in one order, and those that have their defaults are not.
// CHECK-LABEL: func private @rows() attributes {schedule = #greta.schedule<block_size = 256, spaces = [{columns = 64, rows = [64]}, {columns = 2048, flat}], wave_size = 64>}
func.func private @rows() attributes {schedule = #greta.schedule<wave_size = 64, block_size = 256, grid_limit = 0, spaces = [{rows = [64], columns = 64, split = 1}, {flat, columns = 2048}]>}

// CHECK-LABEL: func private @gemm() attributes {schedule = #greta.schedule<block_size = 128, grid_limit = 65535, spaces = [{chiplets = 8, columns = 32, depth = 64, group = 4, pipeline = #greta_tile.pipeline<stages = 2, slice = 32>, rows = [1, 32], split = 2}], wave_size = 64>}
func.func private @gemm() attributes {schedule = #greta.schedule<block_size = 128, grid_limit = 65535, wave_size = 64, spaces = [{rows = [1, 32], columns = 32, depth = 64, pipeline = #greta_tile.pipeline<stages = 2, slice = 32>, split = 2, group = 4, chiplets = 8}]>}

// CHECK-LABEL: func private @attention() attributes {schedule = #greta.schedule<spaces = [{columns = 64, depth = 32, loop, rows = [1, 4, 4], run = 1, unroll = 4}], waves = 4>}
func.func private @attention() attributes {schedule = #greta.schedule<waves = 4, spaces = [{rows = [1, 4, 4], columns = 64, depth = 32, run = 1, unroll = 4, loop}]>}

// CHECK-LABEL: func private @none() attributes {schedule = #greta.schedule<waves = 1>}
func.func private @none() attributes {schedule = #greta.schedule<waves = 1, spaces = []>}

// As many arguments as a package takes, and one more.
// REQUIRES: compiler
// RUN: %python -c "print('greta_tile.func @many(' + ', '.join(f'%%a{i}: !greta_tile.ptr<f32>' for i in range(512)) + ') attributes {wave_size = 1 : i32, waves = 1 : i32} { greta_tile.return }')" > %t.mlir
// RUN: greta-opt --greta-tile-to-spirv %t.mlir | FileCheck %s
// RUN: sed 's/(/(%%b: i32, /' %t.mlir | not greta-opt --greta-tile-to-spirv 2>&1 | FileCheck --check-prefix=TOO-MANY %s
// CHECK: i64 [4088]), Block>, PushConstant>
// TOO-MANY: 'greta_tile.func' op has 4104 bytes of arguments; a package's kernel has at most 4096

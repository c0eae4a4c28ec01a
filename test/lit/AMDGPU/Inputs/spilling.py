"""Prints a kernel that loads 400 values, and uses the first after the last has been loaded."""

COUNT = 400
ATTRIBUTES = "{wave_size = 32 : i32, waves = 1 : i32}"

print(f"greta_tile.func @spilling(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>) attributes {ATTRIBUTES} {{")
print("  %lane = greta_tile.lane_id")
for i in range(COUNT):
    print(f"  %c{i} = arith.constant {i * 32} : i32")
    print(f"  %a{i} = arith.addi %lane, %c{i} : i32")
    print(f"  %v{i} = greta_tile.ptr_load %x[%a{i}] align 4 : !greta_tile.ptr<f32> -> f32")
print("  greta_tile.barrier")
for i in range(COUNT):
    print(f"  %s{i} = arith.mulf %v{i}, %v{(i + COUNT // 2) % COUNT} : f32")
    print(f"  greta_tile.ptr_store %s{i}, %y[%a{i}] align 4 : f32 -> !greta_tile.ptr<f32>")
print("  greta_tile.return")
print("}")

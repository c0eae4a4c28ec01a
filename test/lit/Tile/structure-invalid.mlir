// RUN: greta-opt %s -greta-tile-structure -verify-diagnostics -split-input-file

greta_tile.func @forever(%x: !greta_tile.ptr<f32>, %c: i1) attributes {waves = 1 : i32} {
  cf.cond_br %c, ^again, ^done
^again:
  // expected-error @below {{a loop that never ends; give it a condition}}
  cf.br ^again
^done:
  greta_tile.return
}

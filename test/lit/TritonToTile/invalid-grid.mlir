// RUN: greta-opt --verify-diagnostics --triton-to-tile="grid='n +'" %s
// RUN: not greta-opt --triton-to-tile="grid='1,2,3,4'" %s 2>&1 | FileCheck %s

// CHECK: grid '1,2,3,4' is not one to three numbers of programs, such as "n ceildiv 64, 2", over p, n
// expected-error @below {{grid 'n +' is not one to three numbers of programs, such as "n ceildiv 64, 2", over p, n: missing right operand of binary operator}}
tt.func public @kernel(%p: !tt.ptr<f32> loc("p"), %n: i32 loc("n")) {
  tt.return
}

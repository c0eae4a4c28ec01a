// RUN: greta-opt --verify-diagnostics --triton-to-tile="grid='n +'" %s
// RUN: not greta-opt --triton-to-tile="grid='1,2,3,4'" %s 2>&1 | FileCheck %s
// RUN: not greta-opt --triton-to-tile="grid='1 - 2'" %s 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not greta-opt --triton-to-tile="grid='n ceildiv 0'" %s 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not greta-opt --triton-to-tile="grid='2 * (n mod 0)'" %s 2>&1 | FileCheck %s --check-prefix=ZERO

// NEGATIVE: over p, n: a number of programs is negative
// ZERO: over p, n: it divides by a number that is not positive
// CHECK: grid '1,2,3,4' is not one to three numbers of programs, such as "n ceildiv 64, 2", over p, n
// expected-error @below {{grid 'n +' is not one to three numbers of programs, such as "n ceildiv 64, 2", over p, n: missing right operand of binary operator}}
tt.func public @kernel(%p: !tt.ptr<f32> loc("p"), %n: i32 loc("n")) {
  tt.return
}

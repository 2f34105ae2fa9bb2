// A masked store of one known lane of a truncated vector: LLVM 22 stores the lane as wide as it was before, over its
// neighbour, which another thread may have written.
// RUN: ds-opt %s -o %t.dsp --mcpu=x86-64-v4
// RUN: llvm-objdump -d --no-show-raw-insn %t.dsp/code-x86-64-v4.so | FileCheck %s --implicit-check-not "movl {{.*}},2)"
// CHECK: {{vpextrw|movw}} {{.*}},2)
func.func @main(%a: tensor<?x?x?xbf16> {ds.name = "a", ds.dims = ["b", "m", "n"]},
                %c: tensor<?x1xbf16> {ds.name = "c", ds.dims = ["n", 1]}) -> tensor<?x?x1xbf16> attributes {ds.entry} {
  %0 = ds.matmul %a, %c transpose [false, false] : (tensor<?x?x?xbf16>, tensor<?x1xbf16>) -> tensor<?x?x1xbf16>
  return %0 : tensor<?x?x1xbf16>
}

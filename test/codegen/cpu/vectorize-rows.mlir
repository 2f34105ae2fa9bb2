// RUN: ds-opt %s --split-input-file --ds-vectorize-rows=lanes=8 | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-vectorize-rows=lanes=16 | FileCheck %s --check-prefix=MASKED
// RUN: ds-opt %s --split-input-file --ds-vectorize-rows=lanes=1 | FileCheck %s --check-prefix=SCALAR --implicit-check-not=vector

// Whole vectors first, then a scalar tail.
// CHECK-LABEL: func.func @doc
// CHECK: scf.for {{.*}} to %[[SPLIT:.*]] step %c8
// CHECK: %[[X:.*]] = vector.load %arg0
// CHECK-NEXT: %[[Y:.*]] = math.exp %[[X]] : vector<8xf32>
// CHECK-NEXT: vector.store %[[Y]], %arg1
// CHECK: scf.for {{.*}} = %[[SPLIT]] to
// CHECK: math.exp %{{.*}} : f32
// CHECK: memref.store
// SCALAR-LABEL: func.func @doc
// SCALAR: math.exp
#id = affine_map<(d0) -> (d0)>
func.func @doc(%x: memref<?xf32>, %y: memref<?xf32>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<?xf32>) outs(%y : memref<?xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = math.exp %in : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// Of narrow elements, as many as fill a vector that eight floats fill, then eight at a time, then one.
// CHECK-LABEL: func.func @bytes
// CHECK: %[[WIDE:.*]] = arith.constant 32 : index
// CHECK: scf.for {{.*}} to %[[SPLIT:.*]] step %[[WIDE]]
// CHECK: arith.cmpi ne, {{.*}} : vector<32xi8>
// CHECK: arith.andi {{.*}} : vector<32xi1>
// CHECK: vector.store {{.*}} vector<32xi8>
// CHECK: scf.for {{.*}} = %[[SPLIT]] to %[[REST:.*]] step %c8
// CHECK: arith.andi {{.*}} : vector<8xi1>
// CHECK: scf.for {{.*}} = %[[REST]] to
// CHECK: arith.andi {{.*}} : i1
// SCALAR-LABEL: func.func @bytes
#id = affine_map<(d0) -> (d0)>
func.func @bytes(%x: memref<?xi8>, %y: memref<?xi8>, %z: memref<?xi8>) {
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%x, %y : memref<?xi8>, memref<?xi8>) outs(%z : memref<?xi8>) {
  ^bb0(%a: i8, %b: i8, %out: i8):
    %zero = arith.constant 0 : i8
    %0 = arith.cmpi ne, %a, %zero : i8
    %1 = arith.cmpi ne, %b, %zero : i8
    %2 = arith.andi %0, %1 : i1
    %3 = arith.extui %2 : i1 to i8
    linalg.yield %3 : i8
  }
  return
}

// -----

// CHECK-LABEL: func.func @halves
// CHECK: arith.addi {{.*}} : vector<16xi16>
// CHECK: arith.addi {{.*}} : vector<8xi16>
#id = affine_map<(d0) -> (d0)>
func.func @halves(%x: memref<?xi16>, %y: memref<?xi16>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<?xi16>) outs(%y : memref<?xi16>) {
  ^bb0(%a: i16, %out: i16):
    %0 = arith.addi %a, %a : i16
    linalg.yield %0 : i16
  }
  return
}

// -----

// The widest type decides: bytes that become floats on the way, bytes that are compared with places.
// CHECK-LABEL: func.func @widest
// CHECK-NOT: vector<32xi8>
// CHECK: arith.uitofp {{.*}} : vector<8xi8> to vector<8xf32>
// CHECK-LABEL: func.func @places
// CHECK-NOT: vector<32xi8>
// CHECK: arith.index_cast {{.*}} : vector<8xindex> to vector<8xi8>
#id = affine_map<(d0) -> (d0)>
func.func @widest(%x: memref<?xi8>, %y: memref<?xi8>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<?xi8>) outs(%y : memref<?xi8>) {
  ^bb0(%a: i8, %out: i8):
    %0 = arith.uitofp %a : i8 to f32
    %1 = math.sqrt %0 : f32
    %2 = arith.fptoui %1 : f32 to i8
    linalg.yield %2 : i8
  }
  return
}
func.func @places(%x: memref<?xi8>, %y: memref<?xi8>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<?xi8>) outs(%y : memref<?xi8>) {
  ^bb0(%a: i8, %out: i8):
    %0 = linalg.index 0 : index
    %1 = arith.index_cast %0 : index to i8
    %2 = arith.addi %1, %a : i8
    linalg.yield %2 : i8
  }
  return
}

// -----

// Elements two to four places apart are picked from vectors of all that lies between, the last of which ends with the
// last element.
// CHECK-LABEL: func.func @everySecond
// CHECK: %[[ALL:.*]] = memref.reinterpret_cast {{.*}} sizes: [15], strides: [1]
// CHECK: %[[LOW:.*]] = vector.load %[[ALL]][%c0{{.*}}] : {{.*}}, vector<8xf32>
// CHECK: %[[HIGH:.*]] = vector.load %[[ALL]][%c7{{.*}}] : {{.*}}, vector<8xf32>
// CHECK: vector.shuffle {{.*}}, %[[HIGH]] [0, 1, 2, 3, 9, 11, 13, 15]
// CHECK: vector.store
// CHECK: memref.load
// SCALAR-LABEL: func.func @everySecond
#id = affine_map<(d0) -> (d0)>
func.func @everySecond(%x: memref<?xf32, strided<[2], offset: ?>>, %y: memref<?xf32>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<?xf32, strided<[2], offset: ?>>) outs(%y : memref<?xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// -----

// Farther apart, or who knows how far, or apart in the result: one by one.
// CHECK-LABEL: func.func @everyFifth
// CHECK-NOT: vector
// CHECK-LABEL: func.func @anyApart
// CHECK-NOT: vector
// CHECK-LABEL: func.func @resultApart
// CHECK-NOT: vector
#id = affine_map<(d0) -> (d0)>
func.func @everyFifth(%x: memref<?xf32, strided<[5]>>, %y: memref<?xf32>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<?xf32, strided<[5]>>) outs(%y : memref<?xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}
func.func @anyApart(%x: memref<?xf32, strided<[?]>>, %y: memref<?xf32>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<?xf32, strided<[?]>>) outs(%y : memref<?xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}
func.func @resultApart(%x: memref<?xf32>, %y: memref<?xf32, strided<[2]>>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<?xf32>) outs(%y : memref<?xf32, strided<[2]>>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// -----

// A generic marked ds.range covers the items between the function's third and second argument from the end.
// CHECK-LABEL: func.func @range
// CHECK: arith.subi %arg3, %arg2
// CHECK: scf.for {{.*}} = %arg2 to
#id = affine_map<(d0) -> (d0)>
func.func @range(%x: memref<?xf32>, %y: memref<?xf32>, %begin: index, %end: index, %scratch: memref<?xi8>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<?xf32>) outs(%y : memref<?xf32>) attrs = {ds.range} {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// -----

// A strided operand keeps the loop scalar.
// CHECK-LABEL: func.func @strided
// CHECK-NOT: vector
// CHECK: memref.store
#id = affine_map<(d0) -> (d0)>
func.func @strided(%x: memref<?xf32, strided<[?]>>, %y: memref<?xf32>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<?xf32, strided<[?]>>) outs(%y : memref<?xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// -----

// What the innermost loop does not move is loaded once per vector and broadcast; outer axes are loops.
// CHECK-LABEL: func.func @broadcast
// CHECK: scf.for %[[ROW:.*]] =
// CHECK: scf.for {{.*}} step %c8
// CHECK: %[[S:.*]] = memref.load %arg1[%[[ROW]]]
// CHECK-NEXT: vector.broadcast %[[S]] : f32 to vector<8xf32>
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @broadcast(%x: memref<?x?xf32>, %s: memref<?xf32>, %y: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : memref<?x?xf32>, memref<?xf32>) outs(%y : memref<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// Four chains side by side, then one; lanes are folded onto each other in a fixed order, the tail follows.
// CHECK-LABEL: func.func @reduction
// CHECK: scf.for {{.*}} step %c32{{.*}} -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
// CHECK-COUNT-4: arith.addf {{.*}} : vector<8xf32>
// CHECK: }
// CHECK-COUNT-3: arith.addf {{.*}} : vector<8xf32>
// CHECK: %[[LANES:.*]] = scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}) -> (vector<8xf32>)
// CHECK: arith.addf %[[ACC]], %{{.*}} : vector<8xf32>
// CHECK: arith.addf {{.*}} : vector<4xf32>
// CHECK: arith.addf {{.*}} : vector<2xf32>
// CHECK: arith.addf {{.*}} : vector<1xf32>
// CHECK: vector.extract
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (f32)
// CHECK: memref.store %{{.*}}, %arg1[]
#id = affine_map<(d0) -> (d0)>
#none = affine_map<(d0) -> ()>
func.func @reduction(%x: memref<?xf32>, %y: memref<f32>) {
  linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%x : memref<?xf32>) outs(%y : memref<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// Elements that lie apart are four chains of scalars.
// CHECK-LABEL: func.func @strided_reduction
// CHECK-NOT: vector
// CHECK: scf.for {{.*}} step %c4{{.*}} -> (f32, f32, f32, f32)
// CHECK-COUNT-4: arith.addf
// CHECK: }
// CHECK-COUNT-4: arith.addf
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (f32)
// CHECK: memref.store %{{.*}}, %arg1[]
#id = affine_map<(d0) -> (d0)>
#none = affine_map<(d0) -> ()>
func.func @strided_reduction(%x: memref<?xf32, strided<[?]>>, %y: memref<f32>) {
  linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%x : memref<?xf32, strided<[?]>>) outs(%y : memref<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// The greatest and the least are compared, with a flag for NaN of two chains; where one was seen, or a result is 0, they
// are combined again. A sum beside them is the same either way.
// CHECK-LABEL: func.func @extremes
// CHECK: scf.for {{.*}} step %c32
// CHECK-NOT: arith.maximumf
// CHECK: arith.cmpf ogt, {{.*}} : vector<8xf32>
// CHECK: arith.select
// CHECK: arith.cmpf olt, {{.*}} : vector<8xf32>
// CHECK: arith.addf
// CHECK-COUNT-2: arith.cmpf uno, {{.*}} : vector<8xf32>
// CHECK: scf.yield
// CHECK: %[[FLAG:.*]] = arith.cmpf uno
// CHECK: vector.reduction <or>, %[[FLAG]]
// CHECK: arith.cmpf oeq
// CHECK: arith.cmpf ogt
// CHECK: arith.cmpf oeq
// CHECK: arith.cmpf olt
// CHECK: scf.if {{.*}} -> (vector<8xf32>, vector<8xf32>, vector<8xf32>)
// CHECK: scf.for {{.*}} step %c32
// CHECK: arith.maximumf
// CHECK: arith.minimumf
// CHECK: } else {
// SCALAR-LABEL: func.func @extremes
// SCALAR: arith.maximumf {{.*}} : f32
#id = affine_map<(d0) -> (d0)>
#none = affine_map<(d0) -> ()>
func.func @extremes(%x: memref<?xf32>, %y: memref<f32>, %z: memref<f32>, %w: memref<f32>) {
  linalg.generic {indexing_maps = [#id, #none, #none, #none], iterator_types = ["reduction"]}
      ins(%x : memref<?xf32>) outs(%y, %z, %w : memref<f32>, memref<f32>, memref<f32>) {
  ^bb0(%in: f32, %a: f32, %b: f32, %c: f32):
    %0 = arith.maximumf %a, %in : f32
    %1 = arith.minimumf %b, %in : f32
    %2 = arith.addf %c, %in : f32
    linalg.yield %0, %1, %2 : f32, f32, f32
  }
  return
}

// -----

// A body that is not combine(accumulator, f(input)) cannot be folded.
// CHECK-LABEL: func.func @no_combining_op
// CHECK-NOT: vector
// CHECK: return
#id = affine_map<(d0) -> (d0)>
#none = affine_map<(d0) -> ()>
func.func @no_combining_op(%x: memref<?xf32>, %y: memref<f32>) {
  linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%x : memref<?xf32>) outs(%y : memref<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %out, %out : f32
    %1 = arith.addf %0, %in : f32
    linalg.yield %1 : f32
  }
  return
}

// -----

// ds.tile: items are blocks of 8 rows; squares of the transposed operand are zipped three times and read row by row, and
// what they leave is walked element by element.
// CHECK-LABEL: func.func @tile
// CHECK: %[[SQUARE:.*]] = memref.alloca() : memref<8x8xf32>
// CHECK: %[[SPLIT:.*]] = arith.select
// CHECK: scf.for {{.*}} to %[[SPLIT]] step
// CHECK-COUNT-8: vector.load %arg0
// CHECK-COUNT-24: vector.shuffle {{.*}} : vector<8xf32>, vector<8xf32>
// CHECK-COUNT-8: vector.store {{.*}}, %[[SQUARE]]
// CHECK: scf.for
// CHECK: %[[X:.*]] = vector.load %[[SQUARE]]
// CHECK: %[[Y:.*]] = vector.load %arg1
// CHECK: arith.addf %[[X]], %[[Y]] : vector<8xf32>
// CHECK: scf.for {{.*}} = %[[SPLIT]] to
// CHECK: memref.store
// SCALAR-LABEL: func.func @tile
// SCALAR: scf.for
#id = affine_map<(d0, d1) -> (d0, d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>
func.func @tile(%x: memref<?x?xf32, strided<[?, 1]>>, %y: memref<?x?xf32>, %z: memref<?x?xf32>, %begin: index, %end: index, %scratch: memref<?xi8>) {
  linalg.generic {indexing_maps = [#turned, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : memref<?x?xf32, strided<[?, 1]>>, memref<?x?xf32>) outs(%z : memref<?x?xf32>)
      attrs = {ds.range, ds.tile = array<i64: 0, 8>} {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// What several places of the loop read is loaded once, in a shorter vector, whose elements repeat.
// CHECK-LABEL: func.func @repeated
// CHECK: scf.for {{.*}} step %c8
// CHECK: %[[PLACE:.*]] = arith.divui %{{.*}}, %c2
// CHECK: %[[X:.*]] = vector.load %arg0[%{{.*}}, %[[PLACE]]] {{.*}} vector<4xf32>
// CHECK-NEXT: vector.shuffle %[[X]], %[[X]] [0, 0, 1, 1, 2, 2, 3, 3]
// CHECK: vector.store {{.*}} vector<8xf32>
// CHECK: scf.for
// CHECK: arith.divui
// CHECK: memref.load
// SCALAR-LABEL: func.func @repeated
// SCALAR: arith.divui
#id = affine_map<(d0, d1) -> (d0, d1)>
#half = affine_map<(d0, d1) -> (d0, d1 floordiv 2)>
func.func @repeated(%x: memref<?x?xf32>, %y: memref<?x?xf32>, %begin: index, %end: index, %scratch: memref<?xi8>) {
  linalg.generic {indexing_maps = [#half, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<?x?xf32>) outs(%y : memref<?x?xf32>) attrs = {ds.range} {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  }
  return
}

// -----

// Where vectors have masks, what is left of a row is one of them: of floats, of bytes, and beside what all rows share.
// MASKED-LABEL: func.func @ends_of_rows
// MASKED: scf.for {{.*}} to %[[SPLIT:.*]] step %c16
// MASKED: vector.load %arg0
// MASKED: vector.store {{.*}}, %arg2
// MASKED: %[[LEFT:.*]] = arith.cmpi ult, %[[SPLIT]], %[[END:.*]] : index
// MASKED-NEXT: scf.if %[[LEFT]] {
// MASKED-NEXT: %[[COUNT:.*]] = arith.subi %[[END]], %[[SPLIT]]
// MASKED-NEXT: %[[MASK:.*]] = vector.create_mask %[[COUNT]] : vector<16xi1>
// MASKED: vector.maskedload %arg0{{.*}}, %[[MASK]], %{{.*}} : {{.*}} into vector<16xf32>
// MASKED: memref.load %arg1
// MASKED: vector.maskedstore %arg2{{.*}}, %[[MASK]]
// MASKED-NOT: scf.for
// MASKED: return
#rows = affine_map<(i, j) -> (i, j)>
#first = affine_map<(i, j) -> (i)>
func.func @ends_of_rows(%x: memref<?x?xf32>, %s: memref<?xf32>, %y: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [#rows, #first, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : memref<?x?xf32>, memref<?xf32>) outs(%y : memref<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %0 = arith.divf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// Lanes behind the end are zeros: no integer is divided by them. Nor do vectors of every second element end in a mask.
// MASKED-LABEL: func.func @not_masked
// MASKED-NOT: mask
// MASKED: return
#id = affine_map<(i) -> (i)>
func.func @not_masked(%x: memref<?xi32>, %y: memref<?xi32>, %u: memref<?xf32, strided<[2]>>, %v: memref<?xf32>) {
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%x, %y : memref<?xi32>, memref<?xi32>) outs(%x : memref<?xi32>) {
  ^bb0(%a: i32, %b: i32, %out: i32):
    %0 = arith.remui %a, %b : i32
    linalg.yield %0 : i32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%u : memref<?xf32, strided<[2]>>) outs(%v : memref<?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  }
  return
}

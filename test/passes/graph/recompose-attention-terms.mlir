// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-recompose-attention --verify-numerics -o /dev/null
// Several masks, and scales beside them: which order they come in matters.

// A number this low replaces the score together with its mask: the sum of two such numbers would overflow.
// CHECK-LABEL: func.func @choice_around_a_mask
// CHECK-NEXT: ds.attention %arg0, %arg1, %arg2 [add %arg4, hide %arg3 else -3.40282346{{.*}}E+38] scale 1.000000e+00 :
func.func @choice_around_a_mask(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>,
                                %hidden: tensor<5x7xi1>, %mask: tensor<4x1x7xf32>) -> tensor<2x4x5x8xf32> {
  %low = ds.constant dense<-3.40282347E+38> : tensor<f32>
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.binary add %0, %mask : (tensor<2x4x5x7xf32>, tensor<4x1x7xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.select %hidden, %low, %1 : (tensor<5x7xi1>, tensor<f32>, tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %s = ds.softmax %2 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %y = ds.matmul %s, %v transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %y : tensor<2x4x5x8xf32>
}

// -----

// CHECK-LABEL: func.func @choice_around_a_choice
// CHECK-NEXT: ds.attention %arg0, %arg1, %arg2 [hide %arg4 else -3.40282346{{.*}}E+38, keep %arg3 else -3.40282346{{.*}}E+38] scale 1.000000e+00 :
func.func @choice_around_a_choice(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>,
                                  %seen: tensor<5x7xi1>, %hidden: tensor<7xi1>) -> tensor<2x4x5x8xf32> {
  %low = ds.constant dense<-3.40282347E+38> : tensor<f32>
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.select %hidden, %low, %0 : (tensor<7xi1>, tensor<f32>, tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %2 = ds.select %seen, %1, %low : (tensor<5x7xi1>, tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %s = ds.softmax %2 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %y = ds.matmul %s, %v transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %y : tensor<2x4x5x8xf32>
}

// -----

// The cap bounds what it sees; a number that scales its result is no part of that.
// CHECK-LABEL: func.func @scaled_cap
// CHECK-NOT: ds.attention
func.func @scaled_cap(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>,
                      %scale: tensor<f32>) -> tensor<2x4x5x8xf32> {
  %cap = ds.constant dense<5.0> : tensor<f32>
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %1 = ds.binary div %0, %cap : (tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %2 = ds.unary tanh %1 : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %3 = ds.binary mul %2, %cap : (tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %4 = ds.binary mul %3, %scale : (tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %s = ds.softmax %4 axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  // expected-remark @+1 {{attention not recomposed: the capped scores are scaled again}}
  %y = ds.matmul %s, %v transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %y : tensor<2x4x5x8xf32>
}

// -----

// One head beside a batch of run time: the axis is the batch's. The mask has it, too.
// CHECK-LABEL: func.func @one_head
// CHECK-DAG: %[[Q:.*]] = ds.reshape %arg0 ["b", 1, "s", 8]
// CHECK-DAG: %[[K:.*]] = ds.reshape %arg1 ["b", 1, "t", 8]
// CHECK-DAG: %[[V:.*]] = ds.reshape %arg2 ["b", 1, "t", 8]
// CHECK-DAG: %[[MASK:.*]] = ds.reshape %arg3 ["b", 1, 1, "t"]
// CHECK: %[[Y:.*]] = ds.attention %[[Q]], %[[K]], %[[V]] [add %[[MASK]]] scale 1.000000e+00 :
// CHECK: ds.reshape %[[Y]] ["b", "s", 8]
func.func @one_head(%q: tensor<?x?x8xf32> {ds.dims = ["b", "s", 8]}, %k: tensor<?x?x8xf32> {ds.dims = ["b", "t", 8]},
                    %v: tensor<?x?x8xf32> {ds.dims = ["b", "t", 8]},
                    %mask: tensor<?x1x?xf32> {ds.dims = ["b", 1, "t"]}) -> tensor<?x?x8xf32> {
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x?xf32>
  %1 = ds.binary add %0, %mask : (tensor<?x?x?xf32>, tensor<?x1x?xf32>) -> tensor<?x?x?xf32>
  %2 = ds.softmax %1 axis 2 log false : (tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %y = ds.matmul %2, %v transpose [false, false] : (tensor<?x?x?xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  return %y : tensor<?x?x8xf32>
}

// -----

// CHECK-LABEL: func.func @heads_of_run_time
// CHECK: ds.attention %arg0, %arg1, %arg2 scale 1.000000e+00 :
func.func @heads_of_run_time(%q: tensor<?x?x?x8xf32> {ds.dims = ["b", "h", "s", 8]}, %k: tensor<?x?x?x8xf32> {ds.dims = ["b", "h", "t", 8]},
                             %v: tensor<?x?x?x8xf32> {ds.dims = ["b", "h", "t", 8]}) -> tensor<?x?x?x8xf32> {
  %0 = ds.matmul %q, %k transpose [false, true] : (tensor<?x?x?x8xf32>, tensor<?x?x?x8xf32>) -> tensor<?x?x?x?xf32>
  %1 = ds.softmax %0 axis 3 log false : (tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32>
  %y = ds.matmul %1, %v transpose [false, false] : (tensor<?x?x?x?xf32>, tensor<?x?x?x8xf32>) -> tensor<?x?x?x8xf32>
  return %y : tensor<?x?x?x8xf32>
}

// -----

// A mask in whose computation each step reads the one before twice: the search for the product stops after a few steps.
// CHECK-LABEL: func.func @mask_of_many_steps
// CHECK: ds.attention
func.func @mask_of_many_steps(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>, %mask: tensor<5x7xf32>) -> tensor<2x4x5x8xf32> {
  %0 = ds.binary max %mask, %mask : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %1 = ds.binary max %0, %0 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %2 = ds.binary max %1, %1 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %3 = ds.binary max %2, %2 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %4 = ds.binary max %3, %3 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %5 = ds.binary max %4, %4 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %6 = ds.binary max %5, %5 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %7 = ds.binary max %6, %6 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %8 = ds.binary max %7, %7 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %9 = ds.binary max %8, %8 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %10 = ds.binary max %9, %9 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %11 = ds.binary max %10, %10 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %12 = ds.binary max %11, %11 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %13 = ds.binary max %12, %12 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %14 = ds.binary max %13, %13 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %15 = ds.binary max %14, %14 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %16 = ds.binary max %15, %15 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %17 = ds.binary max %16, %16 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %18 = ds.binary max %17, %17 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %19 = ds.binary max %18, %18 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %20 = ds.binary max %19, %19 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %21 = ds.binary max %20, %20 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %22 = ds.binary max %21, %21 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %23 = ds.binary max %22, %22 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %24 = ds.binary max %23, %23 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %25 = ds.binary max %24, %24 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %26 = ds.binary max %25, %25 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %27 = ds.binary max %26, %26 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %28 = ds.binary max %27, %27 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %29 = ds.binary max %28, %28 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %30 = ds.binary max %29, %29 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %31 = ds.binary max %30, %30 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %32 = ds.binary max %31, %31 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %33 = ds.binary max %32, %32 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %34 = ds.binary max %33, %33 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %35 = ds.binary max %34, %34 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %36 = ds.binary max %35, %35 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %37 = ds.binary max %36, %36 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %38 = ds.binary max %37, %37 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %39 = ds.binary max %38, %38 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %40 = ds.binary max %39, %39 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %41 = ds.binary max %40, %40 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %42 = ds.binary max %41, %41 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %43 = ds.binary max %42, %42 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %44 = ds.binary max %43, %43 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %45 = ds.binary max %44, %44 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %46 = ds.binary max %45, %45 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %47 = ds.binary max %46, %46 : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %s = ds.matmul %q, %k transpose [false, true] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %m = ds.binary add %47, %s : (tensor<5x7xf32>, tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %p = ds.softmax %m axis 3 log false : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %o = ds.matmul %p, %v transpose [false, false] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %o : tensor<2x4x5x8xf32>
}

// Programs whose plans are mutated: views, states in place and not, updates, casts, branches, loops, collectives.
#ifndef DEEPSTRIDE_TEST_UNIT_PASSES_MEMORY_PLANPROGRAMS_H
#define DEEPSTRIDE_TEST_UNIT_PASSES_MEMORY_PLANPROGRAMS_H

namespace deepstride::test {

struct PlanProgram {
  const char *name, *text;
};

inline const PlanProgram planPrograms[] = {
    {"Views", R"(
func.func @f(%x: tensor<4xf32> {ds.dims = [4]}, %y: tensor<4xf32> {ds.dims = [4]}) -> (tensor<2x2xf32>, tensor<4xf32>, tensor<4xf32>)
    attributes {ds.entry} {
  %c = ds.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %0 = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = ds.reshape %0 [2, 2] : (tensor<4xf32>) -> tensor<2x2xf32>
  %2 = ds.transpose %1 [1, 0] : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %3 = ds.reshape %2 [4] : (tensor<2x2xf32>) -> tensor<4xf32>
  %4 = ds.binary add %3, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %5 = ds.binary mul %4, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %6 = ds.unary tanh %5 : (tensor<4xf32>) -> tensor<4xf32>
  %7 = ds.binary sub %6, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %8 = ds.reshape %7 [2, 2] : (tensor<4xf32>) -> tensor<2x2xf32>
  return %8, %4, %x : tensor<2x2xf32>, tensor<4xf32>, tensor<4xf32>
})"},
    {"Momentum", R"(
func.func @f(%g: tensor<4xf32> {ds.dims = [4]}, %m: tensor<4xf32> {ds.dims = [4], ds.state = "m"},
             %p: tensor<4xf32> {ds.dims = [4], ds.state = "p"}, %k: tensor<4xf32> {ds.dims = [4], ds.state = "k"})
    -> (tensor<4xf32> {ds.state = "p"}, tensor<4xf32>, tensor<4xf32> {ds.state = "m"}) attributes {ds.entry} {
  %l = ds.unary neg %p : (tensor<4xf32>) -> tensor<4xf32>
  %n:2 = ds.fused {
    %0 = ds.binary add %m, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = ds.binary sub %p, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    ds.yield %0, %1 : tensor<4xf32>, tensor<4xf32>
  } : tensor<4xf32>, tensor<4xf32>
  %y = ds.binary mul %l, %k : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %n#1, %y, %n#0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
})"},
    {"Updates", R"(
func.func @f(%u: tensor<1x2xf32> {ds.dims = [1, 2]}, %i: tensor<1x1xi64> {ds.dims = [1, 1]},
             %k: tensor<3x2xf32> {ds.dims = [3, 2], ds.state = "k"}, %v: tensor<3x2xf32> {ds.dims = [3, 2], ds.state = "v"},
             %w: tensor<3x2xf32> {ds.dims = [3, 2], ds.state = "w"})
    -> (tensor<3x2xf32> {ds.state = "k"}, tensor<3x2xf32> {ds.state = "v"}, tensor<3x2xf32>, tensor<3x2xf32> {ds.state = "w"})
    attributes {ds.entry} {
  %a = ds.insert %u into %k starts [1, 0] : (tensor<1x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  %b = ds.insert %u into %a starts [2, 0] : (tensor<1x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  %c = ds.scatter_nd assign %v, %i, %u : (tensor<3x2xf32>, tensor<1x1xi64>, tensor<1x2xf32>) -> tensor<3x2xf32>
  %d = ds.binary div %b, %c : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  return %b, %c, %d, %v : tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>
})"},
    {"UpdatesWithTheirTarget", R"(
func.func @f(%x: tensor<4xf32> {ds.dims = [4]}, %i: tensor<4xi64> {ds.dims = [4]},
             %s: tensor<4xf32> {ds.dims = [4], ds.state = "s"}) -> (tensor<4xf32>, tensor<4xf32> {ds.state = "s"})
    attributes {ds.entry} {
  %0 = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = ds.scatter_elements add 0 %0, %i, %0 : (tensor<4xf32>, tensor<4xi64>, tensor<4xf32>) -> tensor<4xf32>
  %2 = ds.scatter_elements assign 0 %s, %i, %x : (tensor<4xf32>, tensor<4xi64>, tensor<4xf32>) -> tensor<4xf32>
  return %1, %2 : tensor<4xf32>, tensor<4xf32>
})"},
    {"Casts", R"(
func.func @f(%x: tensor<4xf64> {ds.dims = [4]}, %i: tensor<4xi32> {ds.dims = [4]}) -> (tensor<4xf32>, tensor<4xf32>)
    attributes {ds.entry} {
  %0 = ds.unary exp %x : (tensor<4xf64>) -> tensor<4xf64>
  %1 = ds.cast %0 to f32 : (tensor<4xf64>) -> tensor<4xf32>
  %2 = ds.unary tanh %1 : (tensor<4xf32>) -> tensor<4xf32>
  %3 = ds.unary neg %i : (tensor<4xi32>) -> tensor<4xi32>
  %4 = ds.cast %3 to f32 : (tensor<4xi32>) -> tensor<4xf32>
  %5 = ds.binary add %2, %4 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2, %5 : tensor<4xf32>, tensor<4xf32>
})"},
    {"Branches", R"(
func.func @f(%c: tensor<i1> {ds.dims = []}, %x: tensor<4xf32> {ds.dims = [4]},
             %s: tensor<4xf32> {ds.dims = [4], ds.state = "s"}, %t: tensor<4xf32> {ds.dims = [4], ds.state = "t"})
    -> (tensor<4xf32>, tensor<4xf32> {ds.state = "s"}, tensor<4xf32> {ds.state = "t"}) attributes {ds.entry} {
  %0 = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %d = ds.unary logical_not %c : (tensor<i1>) -> tensor<i1>
  %k = tensor.extract %d[] : tensor<i1>
  %r:3 = scf.if %k -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
    %1 = ds.binary add %0, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = ds.binary mul %1, %t : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  } else {
    %q = tensor.extract %c[] : tensor<i1>
    %3 = scf.if %q -> tensor<4xf32> {
      %4 = ds.unary tanh %0 : (tensor<4xf32>) -> tensor<4xf32>
      scf.yield %4 : tensor<4xf32>
    } else {
      scf.yield %t : tensor<4xf32>
    }
    scf.yield %3, %s, %s : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  %5 = ds.binary sub %r#0, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %5, %r#1, %r#2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
})"},
    {"Loops", R"(
func.func @f(%c: tensor<i1> {ds.dims = []}, %x: tensor<4xf32> {ds.dims = [4]}, %u: tensor<2xf32> {ds.dims = [2]},
             %s: tensor<4xf32> {ds.dims = [4], ds.state = "s"})
    -> (tensor<4xf32>, tensor<4xf32> {ds.state = "s"}, tensor<4xf32>) attributes {ds.entry} {
  %w = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %z = ds.unary neg %x : (tensor<4xf32>) -> tensor<4xf32>
  %r:4 = scf.while (%a = %x, %b = %w, %h = %s, %o = %z)
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
      -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
    %n = ds.unary logical_not %c : (tensor<i1>) -> tensor<i1>
    %go = tensor.extract %n[] : tensor<i1>
    scf.condition(%go) %a, %b, %h, %o : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  } do {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>, %h: tensor<4xf32>, %o: tensor<4xf32>):
    %0 = ds.binary add %a, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = ds.unary tanh %0 : (tensor<4xf32>) -> tensor<4xf32>
    %2 = ds.binary add %h, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %3 = ds.insert %u into %o starts [1] : (tensor<2xf32>, tensor<4xf32>) -> tensor<4xf32>
    %q = tensor.extract %c[] : tensor<i1>
    %4 = scf.if %q -> tensor<4xf32> {
      %5 = ds.binary mul %2, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      scf.yield %5 : tensor<4xf32>
    } else {
      scf.yield %2 : tensor<4xf32>
    }
    scf.yield %b, %1, %4, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  %6 = ds.binary add %r#0, %r#1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %6, %r#2, %r#3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
})"},
    {"LoopsOverWeights", R"(
func.func @f(%c: tensor<i1> {ds.dims = []}, %x: tensor<4xf32> {ds.dims = [4]},
             %s: tensor<4xf32> {ds.dims = [4], ds.state = "s"}) -> (tensor<4xf32>, tensor<4xf32> {ds.state = "s"})
    attributes {ds.entry} {
  %k = ds.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %r:3 = scf.while (%a = %s) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<2x2xf32>) {
    %l = ds.constant dense<[[5.0, 6.0], [7.0, 8.0]]> : tensor<2x2xf32>
    %go = tensor.extract %c[] : tensor<i1>
    scf.condition(%go) %a, %k, %l : tensor<4xf32>, tensor<4xf32>, tensor<2x2xf32>
  } do {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>, %d: tensor<2x2xf32>):
    %0 = ds.binary add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = ds.reshape %d [4] : (tensor<2x2xf32>) -> tensor<4xf32>
    %2 = ds.binary mul %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %2 : tensor<4xf32>
  }
  %3 = ds.binary sub %r#1, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = ds.reshape %r#2 [4] : (tensor<2x2xf32>) -> tensor<4xf32>
  %5 = ds.binary add %3, %4 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %5, %r#0 : tensor<4xf32>, tensor<4xf32>
})"},
    {"NestedLoops", R"(
func.func @f(%c: tensor<i1> {ds.dims = []}, %x: tensor<4xf32> {ds.dims = [4]}) -> tensor<4xf32> attributes {ds.entry} {
  %w = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %go = tensor.extract %c[] : tensor<i1>
  %r = scf.while (%a = %x) : (tensor<4xf32>) -> tensor<4xf32> {
    scf.condition(%go) %a : tensor<4xf32>
  } do {
  ^bb0(%a: tensor<4xf32>):
    %0 = ds.unary tanh %a : (tensor<4xf32>) -> tensor<4xf32>
    %s:2 = scf.while (%b = %a, %d = %0) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      scf.condition(%go) %b, %d : tensor<4xf32>, tensor<4xf32>
    } do {
    ^bb0(%b: tensor<4xf32>, %d: tensor<4xf32>):
      %1 = ds.binary add %b, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      scf.yield %d, %1 : tensor<4xf32>, tensor<4xf32>
    }
    %2 = ds.binary sub %s#0, %s#1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %3 = ds.binary mul %2, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %3 : tensor<4xf32>
  }
  return %r : tensor<4xf32>
})"},
    {"Collectives", R"(
func.func @f(%x: tensor<4xf32> {ds.dims = [4]}, %s: tensor<4xf32> {ds.dims = [4], ds.state = "s"},
             %t: tensor<4xf32> {ds.dims = [4], ds.state = "t"})
    -> (tensor<4xf32>, tensor<4xf32> {ds.state = "s"}, tensor<4xf32> {ds.state = "t"}) attributes {ds.entry} {
  %0 = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %p = dist.all_reduce_start sum %0 site "a" : tensor<4xf32>
  %1 = ds.unary tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  %v = ds.reshape %s [4] : (tensor<4xf32>) -> tensor<4xf32>
  %q = dist.all_reduce_start sum %v site "b" : tensor<4xf32>
  %2 = ds.binary mul %1, %t : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = ds.unary neg %2 : (tensor<4xf32>) -> tensor<4xf32>
  %4 = dist.wait %p : tensor<4xf32>
  %5 = ds.binary add %4, %3 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %6 = dist.wait %q : tensor<4xf32>
  %7 = ds.binary sub %6, %5 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %7, %5, %6 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
})"},
    {"Buckets", R"(
func.func @f(%x: tensor<64xf32> {ds.dims = [64]}, %last: tensor<i1> {ds.dims = []},
             %s: tensor<128xf32> {ds.dims = [128], ds.state = "s"},
             %t: tensor<64xf32> {ds.dims = [64], ds.state = "t"}, %u: tensor<2xf32> {ds.dims = [2], ds.state = "u"})
    -> (tensor<128xf32> {ds.state = "s"}, tensor<64xf32> {ds.state = "t"}, tensor<2xf32> {ds.state = "u"}) attributes {ds.entry} {
  %0 = ds.binary add %t, %x : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %1 = ds.unary tanh %u : (tensor<2xf32>) -> tensor<2xf32>
  %p = dist.reduce_scatter_start sum %0 in_place when %last layouts [#dist.layout<[64] of 128 by 64 from 64>] site "a" : tensor<64xf32>
  %q = dist.all_reduce_start sum %1 when %last site "b" : tensor<2xf32>
  %2 = ds.unary neg %x : (tensor<64xf32>) -> tensor<64xf32>
  %r = dist.reduce_scatter_start sum %2 into %s : tensor<128xf32> layouts [#dist.layout<[64] of 128 by 64 from 64>] site "c" : tensor<64xf32>
  %3 = ds.unary exp %x : (tensor<64xf32>) -> tensor<64xf32>
  %v = dist.reduce_scatter_start sum %3 into %s : tensor<128xf32> layouts [#dist.layout<[0] of 128 by 64 to 64>] site "d" : tensor<64xf32>
  %4 = ds.binary mul %3, %2 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %5 = dist.wait %r, %v sizes [[128]] : tensor<128xf32>
  %6 = dist.wait %p sizes [[64]] : tensor<64xf32>
  %7 = dist.wait %q : tensor<2xf32>
  %8 = ds.binary add %6, %4 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %5, %8, %7 : tensor<128xf32>, tensor<64xf32>, tensor<2xf32>
})"},
    {"Shards", R"(
func.func @f(%x: tensor<64xf32> {ds.dims = [64]}, %y: tensor<2xf32> {ds.dims = [2]},
             %s: tensor<128xf32> {ds.dims = [128], ds.state = "s"},
             %t: tensor<64xf32> {ds.dims = [64], ds.state = "t"})
    -> (tensor<2xf32>, tensor<128xf32> {ds.state = "s"}, tensor<64xf32> {ds.state = "t"}) attributes {ds.entry} {
  %0 = ds.unary exp %x : (tensor<64xf32>) -> tensor<64xf32>
  %1 = ds.unary tanh %y : (tensor<2xf32>) -> tensor<2xf32>
  %p = dist.reduce_scatter_start sum %0 into %s : tensor<128xf32> layouts [#dist.layout<[0] of 128 by 64 to 64>] site "a" : tensor<64xf32>
  %2 = ds.unary neg %1 : (tensor<2xf32>) -> tensor<2xf32>
  %3 = dist.wait %p sizes [[128]] : tensor<128xf32>
  %q = dist.reduce_scatter_start sum %2 into %3 : tensor<128xf32> layouts [#dist.layout<[64] of 128 by 64 from 64>] site "b" : tensor<2xf32>
  %4 = ds.binary mul %0, %t : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %5 = dist.wait %q sizes [[128]] : tensor<128xf32>
  %6 = ds.unary sqrt %5 : (tensor<128xf32>) -> tensor<128xf32>
  %g = dist.all_gather_start %6 layouts [#dist.layout<[0, 64] of 128 by 64>] site "c" : tensor<128xf32>
  %7 = ds.unary exp %1 : (tensor<2xf32>) -> tensor<2xf32>
  %8:2 = dist.wait %g sizes [[64], [2]] : tensor<64xf32>, tensor<2xf32>
  %9 = ds.binary add %8#0, %4 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %10 = ds.binary sub %8#1, %7 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %10, %6, %9 : tensor<2xf32>, tensor<128xf32>, tensor<64xf32>
})"},
    {"Errors", R"(
func.func @f(%x: tensor<64xf32> {ds.dims = [64]}, %m: tensor<64xf32> {ds.dims = [64], ds.state = "m"},
             %w: tensor<64xf32> {ds.dims = [64], ds.state = "w"}, %s: tensor<64xf32> {ds.dims = [64], ds.state = "s"})
    -> (tensor<64xf32>, tensor<64xf32> {ds.state = "m"}, tensor<64xf32> {ds.state = "w"}, tensor<64xf32> {ds.state = "s"})
    attributes {ds.entry} {
  %0 = ds.binary add %m, %x : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %p = dist.all_reduce_start mean %0 codec one_bit errors %w, %s : tensor<64xf32>, tensor<64xf32> layouts [#dist.layout<[0] of 64 by 64>] site "a" : tensor<64xf32>
  %1 = ds.unary exp %x : (tensor<64xf32>) -> tensor<64xf32>
  %2:3 = dist.wait %p sizes [[64], [64], [64]] : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
  %3 = ds.binary mul %2#0, %1 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %3, %2#0, %2#1, %2#2 : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
})"},
    {"Blocks", R"(
func.func @f(%x: tensor<4xf32> {ds.dims = [4]}, %n: tensor<?xf32> {ds.dims = ["n"]}, %s: tensor<4xf32> {ds.dims = [4], ds.state = "s"},
             %t: tensor<4xf32> {ds.dims = [4], ds.state = "t"})
    -> (tensor<4xf32>, tensor<4xf32> {ds.state = "s"}, tensor<4xf32> {ds.state = "t"}) attributes {ds.entry} {
  %0 = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %p = dist.all_to_all_start %n site "a" : tensor<?xf32>
  %q = dist.broadcast_start %s, %t root -1 site "b" : tensor<4xf32>, tensor<4xf32>
  %1 = ds.unary tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  %2 = dist.wait %p sizes [[4]] : tensor<4xf32>
  %3:2 = dist.wait %q sizes [[4], [4]] : tensor<4xf32>, tensor<4xf32>
  %r = dist.broadcast_start %0 root 1 site "c" : tensor<4xf32>
  %4 = ds.binary mul %2, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %7 = dist.wait %r : tensor<4xf32>
  %5 = ds.binary add %4, %7 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %6 = ds.binary sub %3#1, %5 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %6, %3#0, %3#1 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
})"},
    {"Neighbours", R"(
func.func @f(%x: tensor<4xf32> {ds.dims = [4]}, %s: tensor<4xf32> {ds.dims = [4], ds.state = "s"},
             %t: tensor<4xf32> {ds.dims = [4], ds.state = "t"})
    -> (tensor<4xf32>, tensor<4xf32> {ds.state = "s"}, tensor<4xf32> {ds.state = "t"}) attributes {ds.entry} {
  %0 = ds.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %p = dist.send_recv_start %0, %s by 1 into %x, %t : tensor<4xf32>, tensor<4xf32> site "a" : tensor<4xf32>, tensor<4xf32>
  %1 = ds.unary tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  %2:2 = dist.wait %p sizes [[4], [4]] : tensor<4xf32>, tensor<4xf32>
  %q = dist.send_recv_start %2#0 by -2 rotate site "b" : tensor<4xf32>
  %3 = ds.binary mul %1, %2#1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = dist.wait %q : tensor<4xf32>
  %5 = ds.binary sub %4, %3 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %5, %4, %2#1 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
})"},
};

} // namespace deepstride::test

#endif

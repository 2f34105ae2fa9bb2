// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @node_c1_names_of_results() {
  // expected-error@+1 {{expects one name in 'outputs' per result (1), found 0}}
  %0 = onnx.node "Foo" version 1() outputs [] : () -> !onnx.unknown
  return
}

// -----

func.func @node_c2_names_of_regions() {
  // expected-error@+1 {{expects one name in 'graphs' per region (1), found 2}}
  onnx.node "Foo" version 1() outputs [] graphs ["a", "b"] {
    onnx.return
  } : () -> ()
  return
}

// -----

func.func @node_c2_graph_and_attribute() {
  // expected-error@+1 {{expects "a" to be a graph or an attribute, found both}}
  onnx.node "Foo" version 1() attrs {a = 1 : i64} outputs [] graphs ["a"] {
    onnx.return
  } : () -> ()
  return
}

// -----

func.func @node_c3_terminator() {
  // expected-error@+1 {{expects its regions to end in 'onnx.return'}}
  onnx.node "Foo" version 1() outputs [] graphs ["a"] {
    %0 = onnx.none : none
  } : () -> ()
  return
}

// -----

func.func @initializer_c1_value() {
  // expected-error@+1 {{expects elements or a range, found 1 : i64}}
  %0 = onnx.initializer "w" 1 : i64
  return
}

// -----

func.func @range_c1_type() {
  // expected-error@+1 {{expects a tensor of static shape, found 'tensor<?xf32>'}}
  %0 = onnx.initializer "w" #onnx.range<"m.onnx", 0, 4> : tensor<?xf32>
  return
}

// RUN: ds-opt %s --canonicalize | FileCheck %s

// What is known to hold is not required.
// CHECK-LABEL: func.func @requirements
// CHECK-NEXT: ds.require "n" at least 2
// CHECK-NEXT: ds.require "n" equal to "m"
// CHECK-NEXT: ds.require 4 : i64 broadcast with "n"
// CHECK-NEXT: return
func.func @requirements() {
  ds.require "n" at least 2
  ds.require "n + m" at least "m"
  ds.require 3 at least 2
  ds.require "n" equal to "m"
  ds.require "n + m" equal to "m + n"
  ds.require 4 broadcast with "n"
  ds.require 1 broadcast with "n"
  ds.require "n" broadcast with "n"
  return
}

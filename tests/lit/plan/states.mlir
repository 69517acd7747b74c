// Where exported and returned tensors are computed, and when they are copied.
// RUN: transept-opt %s --transept-pass=transept-form --transept-pass=transept-plan | FileCheck %s

!x = tensor<?x4xf32, #transept.dims<[n, 4]>>

// CHECK-LABEL: kernel.program @in_place
// CHECK-DAG: %[[X:.*]] = kernel.buffer "input" "x"
// CHECK-DAG: %[[S:.*]] = kernel.buffer "state" "cross.0" <[n, 4]> {role = "cross-cache"}
// CHECK: kernel.dispatch @{{.*}}(%[[X]], %[[S]])
// CHECK-NOT: kernel.dispatch
// CHECK: kernel.program @two_places
func.func @in_place(%x: !x {transept.name = "x"}) {
  %0 = transept.tanh %x : (!x) -> !x
  transept.export "cross.0", %0 : !x
  return
}

// One place is computed into, the other is a copy.
// CHECK-DAG: %[[X:.*]] = kernel.buffer "input" "x"
// CHECK-DAG: %[[S:.*]] = kernel.buffer "state" "cross.1"
// CHECK-DAG: %[[Y:.*]] = kernel.buffer "output" "y"
// CHECK: kernel.dispatch @{{.*}}(%[[X]], %[[S]])
// CHECK: kernel.dispatch @[[COPY:.*]](%[[S]], %[[Y]]) {barrier}
func.func @two_places(%x: !x {transept.name = "x"}) -> (!x {transept.name = "y"}) {
  %0 = transept.tanh %x : (!x) -> !x
  transept.export "cross.1", %0 : !x
  return %0 : !x
}

// An input that is returned is copied.
// CHECK-LABEL: kernel.program @passed_through
// CHECK: kernel.dispatch @[[COPY]](
func.func @passed_through(%x: !x {transept.name = "x"}) -> (!x {transept.name = "y"}) {
  return %x : !x
}

// The new content must not be written before the old one has been read for the last time.
// CHECK-LABEL: kernel.program @read_and_written
// CHECK-DAG: %[[X:.*]] = kernel.buffer "input" "x"
// CHECK-DAG: %[[S:.*]] = kernel.buffer "state" "cross.2"
// CHECK-DAG: %[[Y:.*]] = kernel.buffer "output" "y"
// CHECK-DAG: %[[A:.*]] = kernel.buffer "arena"
// CHECK: kernel.dispatch @{{.*}}(%[[X]], %[[A]])
// CHECK: kernel.dispatch @{{.*}}(%[[A]], %[[S]], %[[Y]]) {barrier}
// CHECK: kernel.dispatch @{{.*}}(%[[A]], %[[S]]) {barrier}
func.func @read_and_written(%x: !x {transept.name = "x"}) -> (!x {transept.name = "y"}) {
  %old = transept.state "cross.2" : !x
  %0 = transept.tanh %x : (!x) -> !x
  %1 = transept.add %0, %old : (!x, !x) -> !x
  transept.export "cross.2", %0 : !x
  return %1 : !x
}

// And what is read after the export is a copy of the old content.
// CHECK-LABEL: kernel.program @old_content_later
// CHECK-DAG: %[[X:.*]] = kernel.buffer "input" "x"
// CHECK-DAG: %[[S:.*]] = kernel.buffer "state" "cross.3"
// CHECK-DAG: %[[Y:.*]] = kernel.buffer "output" "y"
// CHECK: kernel.dispatch @{{.*}}(%[[S]], %[[OLD:.*]])
// CHECK: kernel.dispatch @{{.*}}(%[[X]], %[[S]]) {barrier}
// CHECK: kernel.dispatch @{{.*}}(%[[OLD]], %[[Y]])
func.func @old_content_later(%x: !x {transept.name = "x"}) -> (!x {transept.name = "y"}) {
  %old = transept.state "cross.3" : !x
  %0 = transept.tanh %x : (!x) -> !x
  transept.export "cross.3", %0 : !x
  %1 = transept.exp %old : (!x) -> !x
  return %1 : !x
}

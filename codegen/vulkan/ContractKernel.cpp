//===- ContractKernel.cpp - kernel.contract as a shader -----------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A workgroup computes a panel of 64 columns for up to four rows: teams of sixteen invocations, each with four adjacent
// columns, take a slice of k each. The slices of an element are the same whatever the rows, and their sums are added in
// order: an element has the same bits in any batch.

#include "codegen/vulkan/ContractSums.h"
#include "codegen/vulkan/Kernels.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::vulkan;
using emit::Body;
using emit::Emitter;

namespace {

class ContractEmitter {
public:
  ContractEmitter(Shader &shader, ContractOp op)
      : shader(shader), e(shader.e), op(op), kernel(cast<KernelOp>(op.getOperation())) {}

  LogicalResult emit() {
    if (op.getEpilogues().size() != op.getParts().size() || op.getOutputs().size() != op.getParts().size() ||
        op.getInputs().size() < 2)
      return op.emitOpError("needs one epilogue and one output per part, and two inputs");
    products = ContractSums::create(shader, op);
    if (!products)
      return failure();
    int64_t panels = 0;
    for (int64_t columns : op.getParts())
      panels += panelsOf(columns);
    // Per slice [rows, 64]; a slice is a team's.
    sums = shader.sharedArrayPerInvocation(products->element(), contractRows * panelColumns / contractTeam);
    Value rows = e.liveRows(kernel, op.getRows());
    tile.slice = e.div(shader.local, e.index(contractTeam));
    tile.slices = e.div(shader.groupSize, e.index(contractTeam));
    column = e.mul(e.rem(shader.local, e.index(contractTeam)), e.index(contractColumns));
    const int64_t depth = op.getK(), panelWords = (depth + products->group() - 1) / products->group() * panelColumns;
    LogicalResult result = success();
    shader.forGroupItem(e.end, [&](Value item) {
      Value panel = e.rem(item, e.index(panels));
      first = e.mul(e.div(item, e.index(panels)), e.index(contractRows));
      Value words = e.add(e.mul(panel, e.index(panelWords)), column);
      tile.weights = e.pointer(e.buffer(op.getInputs()[1]), words, e.b.getI32Type());
      if (int64_t block = op.getBlock()) {
        Value panelScales = e.index((depth + block - 1) / block * panelColumns);
        tile.scales = e.pointer(e.buffer(op.getInputs()[2]), e.add(e.mul(panel, panelScales), column), e.f32());
      }
      tile.x = e.pointer(e.buffer(op.getInputs()[0]), e.mul(first, e.index(depth)),
                         elementTypeOf(op.getInputs()[0].getType()));
      tile.count = e.minimum(e.sub(rows, first), e.index(contractRows));
      e.ifThen(e.less(e.index(0), tile.count), [&] {
        products->prepare(tile);
        emitTile(contractRows);
        shader.barrier();
        result = emitEpilogues(panel);
      });
    });
    return result;
  }

private:
  static int64_t panelsOf(int64_t columns) { return (columns + panelColumns - 1) / panelColumns; }

  /// The smallest of the heights 1, 2, 4, … that holds the rows.
  void emitTile(int64_t height) {
    if (height == 1)
      return emitSums(height);
    Value fits = e.less(tile.count, e.index(height / 2 + 1));
    e.ifElse(fits, [&] { emitTile(height / 2); }, [&] { emitSums(height); });
  }

  void emitSums(int64_t height) {
    SmallVector<Value> mine = products->emit(tile, height);
    for (int64_t r = 0; r < height; ++r)
      for (int64_t c = 0; c < contractColumns; ++c)
        e.store(mine[r * contractColumns + c], sumAt(tile.slice, e.index(r), e.add(column, e.index(c))));
  }

  /// Where the sum of a slice is, in the shared array.
  Value sumAt(Value slice, Value row, Value column) {
    Value place = e.add(e.mul(e.add(e.mul(slice, e.index(contractRows)), row), e.index(panelColumns)), column);
    return e.pointer(sums, place, products->element());
  }

  LogicalResult emitEpilogues(Value panel) {
    LogicalResult result = success();
    int64_t firstPanel = 0;
    for (auto [part, columns] : llvm::enumerate(op.getParts())) {
      Value within = e.sub(panel, e.index(firstPanel));
      auto emitPart = [&, part = part, columns = columns] {
        shader.forShare(e.index(0), e.mul(tile.count, e.index(panelColumns)), [&](Value i) {
          Value r = e.div(i, e.index(panelColumns)), c = e.rem(i, e.index(panelColumns));
          Value position = e.add(e.mul(within, e.index(panelColumns)), c);
          e.ifThen(e.less(position, e.index(columns)), [&] {
            if (failed(emitElement(part, columns, e.add(first, r), position, sumOf(r, c))))
              result = failure();
          });
        });
      };
      if (op.getParts().size() == 1)
        emitPart();
      else
        e.ifThen(e.compare(arith::CmpIPredicate::ult, within, e.index(panelsOf(columns))), emitPart);
      firstPanel += panelsOf(columns);
    }
    return result;
  }

  /// The slices of an element, added in order.
  Value sumOf(Value row, Value column) {
    auto load = [&](Value slice) { return e.load(sumAt(slice, row, column), products->element()); };
    Value sum = e.forLoop(e.index(1), tile.slices, 1, ValueRange{load(e.index(0))}, [&](Value slice, ValueRange sofar) {
      return Emitter::Carried{e.add(sofar[0], load(slice))};
    })[0];
    return products->finish(sum, row);
  }

  LogicalResult emitElement(unsigned part, int64_t columns, Value row, Value position, Value sum) {
    Block &block = op.getEpilogues()[part].front();
    Body::Buffers buffers;
    Body::addInputs(e, buffers, kernel, block.getArguments().drop_front(3), /*first=*/2);
    IRMapping values;
    values.map(block.getArguments().take_front(3), ValueRange{row, position, sum});
    FailureOr<SmallVector<Value>> yielded = emitBlock(shader, block, buffers, values);
    if (failed(yielded))
      return failure();
    Value output = op.getOutputs()[part];
    Value place = e.add(e.mul(row, e.index(columns)), position);
    e.store(yielded->front(), e.pointer(e.buffer(output), place, elementTypeOf(output.getType())));
    return success();
  }

  Shader &shader;
  Emitter &e;
  ContractOp op;
  KernelOp kernel;
  std::unique_ptr<ContractSums> products;
  Value sums;        // shared: [slices, contractRows, panelColumns]
  ContractTile tile; // of the item and the invocation
  Value column;      // of the invocation: its first one in the panel
  Value first;       // row of the item
};

} // namespace

LogicalResult vulkan::emitContract(Shader &shader, ContractOp op) { return ContractEmitter(shader, op).emit(); }

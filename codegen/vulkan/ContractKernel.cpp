//===- ContractKernel.cpp - kernel.contract as a shader -----------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A workgroup computes a panel of 64 columns for some rows: sums first, then what epilogues make of them.

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
    Value rows = e.liveRows(kernel, op.getRows());
    const int64_t depth = op.getK(), panelWords = (depth + products->group() - 1) / products->group() * panelColumns;
    LogicalResult result = success();
    shader.forGroupItem(e.end, [&](Value item) {
      Value panel = e.rem(item, e.index(panels));
      first = e.mul(e.div(item, e.index(panels)), e.index(products->rows()));
      tile.weights = e.pointer(e.buffer(op.getInputs()[1]), e.mul(panel, e.index(panelWords)), e.b.getI32Type());
      if (int64_t block = op.getBlock()) {
        Value panelScales = e.index((depth + block - 1) / block * panelColumns);
        tile.scales = e.pointer(e.buffer(op.getInputs()[2]), e.mul(panel, panelScales), e.f32());
      }
      tile.x = e.pointer(e.buffer(op.getInputs()[0]), e.mul(first, e.index(depth)),
                         elementTypeOf(op.getInputs()[0].getType()));
      tile.count = e.minimum(e.sub(rows, first), e.index(products->rows()));
      e.ifThen(e.less(e.index(0), tile.count), [&] {
        products->compute(tile);
        shader.barrier();
        result = emitEpilogues(panel);
      });
    });
    return result;
  }

private:
  static int64_t panelsOf(int64_t columns) { return (columns + panelColumns - 1) / panelColumns; }

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
            if (failed(emitElement(part, columns, e.add(first, r), position, products->sumOf(r, c))))
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
  ContractTile tile; // of the item
  Value first;       // row of the item
};

} // namespace

LogicalResult vulkan::emitContract(Shader &shader, ContractOp op) { return ContractEmitter(shader, op).emit(); }

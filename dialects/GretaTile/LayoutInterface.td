//===- LayoutInterface.td - how layouts pass through an op ----------------===//
#ifndef GRETATILE_LAYOUTINTERFACE_TD
#define GRETATILE_LAYOUTINTERFACE_TD

include "mlir/IR/OpBase.td"

def LayoutTransferOpInterface : OpInterface<"LayoutTransferOpInterface"> {
  let cppNamespace = "::greta::tile";
  let description = [{
    An op on blocks that needs no data to move where its operands' layouts and its results' belong together. Ops without the interface
    that are elementwise have one layout everywhere; layouts end at all others.

    `greta-tile-assign-layouts` carries layouts from the values that have one to those that have none, in both directions, and converts
    where an op finds operands in layouts that do not belong to its results'.
  }];
  let methods = [
    InterfaceMethod<[{
      The layout of a result when an operand has `layout`; none where the operand does not decide it.
    }], "::std::optional<::greta::Layout>", "resultLayout", (ins "unsigned":$operand, "const ::greta::Layout &":$layout, "unsigned":$result)>,
    InterfaceMethod<[{
      The layout in which an operand is taken when a result has `layout`; none where the result does not decide it.
    }], "::std::optional<::greta::Layout>", "operandLayout", (ins "unsigned":$result, "const ::greta::Layout &":$layout, "unsigned":$operand)>,
    InterfaceMethod<[{
      For each dimension of a result the operand's that it is, or -1: what is wished of the one is wished of the other.
    }], "::llvm::SmallVector<int64_t>", "operandDims", (ins "unsigned":$operand, "unsigned":$result), [{}], [{
      auto type = ::llvm::cast<::mlir::RankedTensorType>($_op->getResult(result).getType());
      return ::llvm::to_vector(::llvm::seq<int64_t>(0, type.getRank()));
    }]>,
    InterfaceMethod<"Whether all block operands are taken in one layout, whatever it is.",
      "bool", "takesOneLayout", (ins), [{}], [{ return false; }]>,
  ];
}

/// For ops without results, all of whose blocks have one layout.
def LayoutTransferTogether : DeclareOpInterfaceMethods<LayoutTransferOpInterface, ["takesOneLayout"]>;
def LayoutTransfer : DeclareOpInterfaceMethods<LayoutTransferOpInterface>;

#endif

//===- TritonDialect.td - Triton IR as text: dialects and types -----------===//
#ifndef TRITON_DIALECT_TD
#define TRITON_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"

def TT_Dialect : Dialect {
  let name = "tt";
  let cppNamespace = "::greta::triton";
  let summary = "Triton IR, as Triton 3.6 to 3.9 print it";
  let description = [{
    The dialect has the types and ops of `kernel.asm["ttir"]` with their syntax, so that it can be read. It is an import format. Ops say what they need for
    their text to be parsed and for `triton-to-tile` to trust them; nothing is computed here, and no pass but that one knows them.

    It has ops in place of the generic form because users have the custom form, and text does not say which Triton printed it. Each version's spelling is
    accepted; an op that none of these versions has is refused at its place in the text.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    /// Names the versions where an op is none of theirs.
    std::optional<ParseOpHook> getParseOperationHook(::llvm::StringRef name) const override;
  }];
}

def TTG_Dialect : Dialect {
  let name = "ttg";
  let cppNamespace = "::greta::triton::gpu";
  let summary = "What Triton IR has of Triton's GPU dialect";
}

class TT_Type<string name, string mnem> : TypeDef<TT_Dialect, name> {
  let mnemonic = mnem;
  let hasCustomAssemblyFormat = 1;
}

def TT_PtrType : TT_Type<"Ptr", "ptr"> {
  let summary = "Pointer into global memory";
  let description = "`!tt.ptr<f32>`";
  let parameters = (ins "::mlir::Type":$pointee);
}

def TT_DescriptorType : TT_Type<"Descriptor", "tensordesc"> {
  let summary = "A tensor in global memory that is accessed block by block";
  let description = "`!tt.tensordesc<16x32xf16>`; Triton 3.6 and 3.7 print `!tt.tensordesc<tensor<16x32xf16>>`.";
  let parameters = (ins "::mlir::RankedTensorType":$block);
}

def TT_CachePolicyAttr : AttrDef<TT_Dialect, "CachePolicy"> {
  let mnemonic = "cache_policy";
  let summary = "Hints for caches, of Triton 3.9";
  let description = "`#tt.cache_policy<cache_modifier = wt, eviction_policy = evict_normal>`; words that nothing depends on.";
  let parameters = (ins ArrayRefParameter<"::mlir::NamedAttribute">:$hints);
  let hasCustomAssemblyFormat = 1;
}

#endif

//===- DrawLayouts.cpp - layouts as pictures ------------------------------===//
//
// greta-draw-layouts{directory=DIR}: in: a module whose block tensors have
// layouts. Out: DIR/layout0.svg and so on, one for each layout of a kernel's
// values and matrix instructions, in the order in which they appear; the IR
// stays as it is. A picture is the block as a grid: a cell is an element with
// the register, lane and wave that hold it (the first of several copies), its
// colour the lane's, lighter with every register. It says at the top which op
// had the layout first, and shows at most 64 x 64 elements: the pattern goes
// on.
//
//===----------------------------------------------------------------------===//
#include "DrawLayouts.h"
#include "GretaTile/GretaTile.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using greta::tile::LayoutAttr;

namespace {
constexpr int64_t mostCells = 64;
constexpr int cellWidth = 66, cellHeight = 18, top = 40;

void text(raw_ostream &os, int64_t x, int64_t y, StringRef anchor,
          const Twine &line) {
  os << "<text x=\"" << x << "\" y=\"" << y << "\" text-anchor=\"" << anchor
     << "\">";
  llvm::printHTMLEscaped(line.str(), os);
  os << "</text>\n";
}

/// Dimensions but the last lie one below the other.
void draw(const greta::Layout &layout, StringRef title, raw_ostream &os) {
  greta::Index shape = layout.shape();
  int64_t allColumns = shape.empty() ? 1 : shape.back(), allRows = 1;
  for (int64_t extent : ArrayRef(shape).drop_back(shape.empty() ? 0 : 1))
    allRows *= extent;
  int64_t columns = std::min(allColumns, mostCells),
          rows = std::min(allRows, mostCells);
  int64_t width = std::max<int64_t>(columns * cellWidth, 600) + 50,
          height = top + (rows + 1) * cellHeight + 10;
  os << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << width
     << "\" height=\"" << height
     << "\" font-family=\"monospace\" font-size=\"10\">\n"
     << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  std::string extents;
  for (int64_t extent : shape)
    extents += (extents.empty() ? "" : "x") + std::to_string(extent);
  text(os, 4, 12, "start",
       Twine(title) + ": " + extents + ", " + Twine(layout.numRegisters()) +
           " registers, " + Twine(layout.numLanes()) + " lanes, " +
           Twine(layout.numWaves()) + " waves" +
           (columns < allColumns || rows < allRows ? " (a part)" : ""));
  text(os, 4, 24, "start", layout.str());
  for (int64_t row = 0; row < rows; ++row) {
    int64_t y = top + row * cellHeight;
    text(os, 40, y + 12, "end", Twine(row));
    for (int64_t column = 0; column < columns; ++column) {
      greta::Index index(shape.size());
      int64_t rest = row;
      for (size_t dim = shape.size(); dim-- > 0;) {
        bool isLast = dim + 1 == shape.size();
        index[dim] = isLast ? column : rest % shape[dim];
        rest = isLast ? rest : rest / shape[dim];
      }
      greta::Holder holder = layout.owner(index);
      int64_t x = 46 + column * cellWidth;
      unsigned hue = holder.lane * 360 / layout.numLanes(),
               light = 60 + holder.reg * 30 / layout.numRegisters();
      os << "<rect x=\"" << x << "\" y=\"" << y << "\" width=\"" << cellWidth
         << "\" height=\"" << cellHeight << "\" fill=\"hsl(" << hue << ",60%,"
         << light << "%)\" stroke=\"white\"/>\n";
      text(os, x + cellWidth / 2, y + 12, "middle",
           "w" + Twine(holder.wave) + " l" + Twine(holder.lane) + " r" +
               Twine(holder.reg));
    }
  }
  os << "</svg>\n";
}

struct DrawLayouts : PassWrapper<DrawLayouts, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(DrawLayouts)
  DrawLayouts() = default;
  DrawLayouts(const DrawLayouts &other) : PassWrapper(other) {}
  StringRef getArgument() const override { return "greta-draw-layouts"; }
  StringRef getDescription() const override {
    return "Draws the layouts of values and matrix instructions as SVG files";
  }

  void runOnOperation() override {
    llvm::MapVector<LayoutAttr, std::string> found;
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      auto add = [&](LayoutAttr layout) {
        found.try_emplace(layout, op->getName().getStringRef().str());
      };
      AttrTypeWalker walker;
      walker.addWalk(add);
      walker.walk(op->getAttrDictionary());
      for (Type type : op->getResultTypes())
        walker.walk(type);
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (Type type : block.getArgumentTypes())
            walker.walk(type);
    });
    if (std::error_code failed = llvm::sys::fs::create_directories(directory))
      return fail(directory, failed);
    size_t number = 0;
    for (auto &[layout, first] : found) {
      SmallString<128> path(directory.getValue());
      llvm::sys::path::append(path, "layout" + Twine(number++) + ".svg");
      std::error_code failed;
      llvm::raw_fd_ostream file(path, failed, llvm::sys::fs::OF_Text);
      if (failed)
        return fail(path, failed);
      draw(greta::tile::toLayout(layout), first, file);
    }
  }

  void fail(StringRef path, std::error_code why) {
    getOperation().emitError("cannot write '")
        << path << "': " << why.message();
    signalPassFailure();
  }

  Option<std::string> directory{*this, "directory",
                                llvm::cl::desc("where the pictures go"),
                                llvm::cl::init(".")};
};
} // namespace

void registerDrawLayouts() { PassRegistration<DrawLayouts>(); }

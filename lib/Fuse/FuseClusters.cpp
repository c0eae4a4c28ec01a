//===- FuseClusters.cpp - greta-fuse, step 2 ------------------------------===//
//
// Groups compute ops into clusters, each one index space, and clusters into
// kernels.
//
//   1. In program order, an op joins the clusters of its operands' producers,
//      or one that reads what it reads, when all have its shape.
//   2. A cluster merges into its consumer: one of the same shape that something
//      in between kept apart, or one of vectors that the consumer broadcasts.
//      Elementwise work for several consumers is repeated in each when that
//      moves no more data than storing its result would.
//   3. Clusters that depend on the same kernels share a launch, side by side:
//      row ops, and GEMMs of one A.
//
// A sum over ranks is a cluster of its own, which no kernel computes. All ranks
// have them in one order, the function's, so each depends on the one before.
//
// A cluster is tried by putting it together and looking whether it still holds:
// one space, no cycle among clusters, not too many buffers.
//
//===----------------------------------------------------------------------===//

#include "Fuse.h"
#include "greta/Fuse/Space.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace greta;

/// GEMMs side by side: code for each is in the kernel.
static constexpr size_t maxGemms = 4;
/// Elementwise ops that are repeated rather than stored.
static constexpr size_t maxRepeated = 8;

namespace {
class Clusterer {
public:
  Clusterer(func::FuncOp function, Shapes &shapes)
      : function(function), shapes(shapes) {}
  KernelPlan run();

private:
  struct Source {
    int cluster;
    bool throughView;
  };
  bool isIn(Operation *op, int cluster) const {
    auto it = clusterOf.find(op);
    return it != clusterOf.end() && it->second == cluster;
  }
  SmallVector<Source> sources(Operation *op);
  void addSources(Value value, bool throughView, SmallVectorImpl<Source> &out);
  bool isUsedOutside(Value value, int cluster);
  SmallVector<Value> outputs(int cluster);
  llvm::SetVector<Value> inputs(int cluster);
  llvm::SetVector<Value> buffers(int cluster);
  bool fits(const llvm::SetVector<Value> &buffers, size_t parts);
  bool sharesLaunch(int cluster, int other);
  bool reaches(int from, int to, llvm::SmallDenseSet<int> &visited);
  bool holds(int cluster);
  bool holdsOperands(ArrayRef<MatmulOp> gemms, int cluster);
  bool holdsEpilogue(Operation *alone, int cluster);
  bool tryJoin(Operation *op, int cluster);
  bool tryMerge(int from, int into);
  bool tryRepeat(int from, int into);
  void eraseUnused(int cluster);
  void place(Operation *op);
  bool mergeIntoConsumers();
  /// The shape of a GEMM behind the split of its columns.
  AffineMap shapeOf(Operation *op) {
    if (isa<MatmulOp>(op) && op->hasOneUse())
      if (auto heads = dyn_cast<HeadsOp>(*op->user_begin()))
        return shapes.at(heads.getResult());
    if (auto reduce = dyn_cast<ReduceRowsOp>(op))
      return shapes.at(reduce.getValues()[0]);
    return shapes.at(op->getResult(0));
  }
  /// Whether `shape` is that of one number for each row of a cluster that
  /// reduces rows.
  bool isPerRow(AffineMap shape, int cluster) {
    return llvm::any_of(clusters[cluster].ops, llvm::IsaPred<ReduceRowsOp>) &&
           shape.getResults() ==
               clusters[cluster].shape.getResults().drop_back();
  }
  KernelPlan schedule();

  func::FuncOp function;
  Shapes &shapes;
  std::vector<Cluster> clusters; // merged ones are left empty
  llvm::DenseMap<Operation *, int> clusterOf;
  /// The sum over ranks that comes before each.
  llvm::DenseMap<Operation *, Operation *> sumBefore;
};
} // namespace

void Clusterer::addSources(Value value, bool throughView,
                           SmallVectorImpl<Source> &out) {
  Operation *op = value.getDefiningOp();
  if (!op || !isa<RankedTensorType>(value.getType()))
    return;
  if (auto it = clusterOf.find(op); it != clusterOf.end())
    return out.push_back({it->second, throughView});
  if (isView(op))
    return addSources(op->getOperand(0), true, out);
  if (isTransparent(op))
    for (Value operand : op->getOperands())
      addSources(operand, throughView, out);
}

/// Returns the clusters that an op's operands come from.
SmallVector<Clusterer::Source> Clusterer::sources(Operation *op) {
  SmallVector<Source> out;
  for (Value operand : op->getOperands())
    addSources(operand, false, out);
  if (Operation *before = sumBefore.lookup(op))
    out.push_back({clusterOf.at(before), true});
  return out;
}

bool Clusterer::isUsedOutside(Value value, int cluster) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    if (isTransparent(user))
      return isUsedOutside(user->getResult(0), cluster);
    return !isIn(user, cluster);
  });
}

SmallVector<Value> Clusterer::outputs(int cluster) {
  SmallVector<Value> out;
  for (Operation *op : clusters[cluster].ops)
    for (Value result : op->getResults())
      if (isUsedOutside(result, cluster))
        out.push_back(result);
  return out;
}

/// Returns the values that a cluster reads from outside.
llvm::SetVector<Value> Clusterer::inputs(int cluster) {
  llvm::SetVector<Value> in;
  std::function<void(Value)> add = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (op && isTransparent(op)) {
      for (Value operand : op->getOperands())
        add(operand);
      return;
    }
    if (!isIn(op, cluster))
      in.insert(value);
  };
  for (Operation *op : clusters[cluster].ops)
    for (Value operand : op->getOperands())
      add(operand);
  return in;
}

/// Returns the buffers that these values lie in, each once.
llvm::SetVector<Value> Clusterer::buffers(int cluster) {
  llvm::SetVector<Value> in;
  for (Value value : inputs(cluster))
    in.insert(isStrided(value) ? placeOf(value, shapes)->buffer : value);
  return in;
}

/// Whether a launch of `parts` clusters can have so many buffers.
bool Clusterer::fits(const llvm::SetVector<Value> &buffers, size_t parts) {
  llvm::SmallSet<unsigned, 4> symbols;
  for (Value buffer : buffers)
    shapes.at(buffer).walkExprs([&](AffineExpr expr) {
      if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
        symbols.insert(symbol.getPosition());
    });
  return fitsArguments(buffers.size(), symbols.size(), parts);
}

bool Clusterer::reaches(int from, int to, llvm::SmallDenseSet<int> &visited) {
  if (from == to)
    return true;
  if (!visited.insert(from).second)
    return false;
  for (Operation *op : clusters[from].ops)
    for (Source source : sources(op))
      if (reaches(source.cluster, to, visited))
        return true;
  return false;
}

/// Whether the operands of a cluster's GEMMs come from outside, or are computed
/// for these GEMMs alone.
bool Clusterer::holdsOperands(ArrayRef<MatmulOp> gemms, int cluster) {
  auto isOutside = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (op && isTransparent(op))
      return false;
    return !isIn(op, cluster);
  };
  // Heads split the space's columns, which computed blocks of B do not expect,
  // but for packed weights that go straight to registers.
  bool hasHeads = llvm::any_of(clusters[cluster].ops, [](Operation *op) {
    return isa<HeadsOp, RopeOp>(op);
  });
  auto knowsHeads = [&](ArrayRef<Operation *> computed) {
    return computed.empty() ||
           ((isSkinny(gemms.front()) || takesPackedWeights(gemms.front())) &&
            llvm::all_of(computed, llvm::IsaPred<DequantOp>));
  };
  llvm::SmallPtrSet<Operation *, 8> all;
  for (MatmulOp matmul : gemms) {
    if (matmul.getOffsets() && !isOutside(matmul.getOffsets()))
      return false;
    for (unsigned number : {0u, 1u}) {
      llvm::SetVector<Operation *> computed;
      if (!isComputedOperand(matmul, number, isOutside,
                             [&](Operation *op) { computed.insert(op); }) ||
          (hasHeads && number == 1 && !knowsHeads(computed.getArrayRef())) ||
          !paysInGemm(matmul, number, computed.getArrayRef()))
        return false;
      auto isHere = [&](OpOperand &use) {
        auto gemm = dyn_cast<MatmulOp>(use.getOwner());
        return computed.contains(use.getOwner()) ||
               (gemm && llvm::is_contained(gemms, gemm) &&
                use.getOperandNumber() == number);
      };
      for (Operation *op : computed)
        if (!llvm::all_of(op->getResult(0).getUses(), isHere))
          return false;
      all.insert_range(computed);
    }
  }
  return llvm::all_of(clusters[cluster].ops, [&](Operation *op) {
    return !isa<DequantOp, PatchesOp, RmsNormOp>(op) || all.contains(op);
  });
}

/// Whether all that a cluster has beside an op that is alone is elementwise
/// work behind its first result. The op's own operands are in memory.
bool Clusterer::holdsEpilogue(Operation *alone, int cluster) {
  if (!takesEpilogue(alone))
    return false;
  std::function<bool(Operation *)> isHere = [&](Operation *op) {
    if (isTransparent(op))
      return llvm::any_of(op->getUsers(), isHere);
    return isIn(op, cluster);
  };
  for (Value result : alone->getResults().drop_front())
    if (llvm::any_of(result.getUsers(), isHere))
      return false;
  for (Value operand : alone->getOperands())
    if (isIn(operand.getDefiningOp(), cluster))
      return false;
  return llvm::all_of(clusters[cluster].ops, [&](Operation *op) {
    return op == alone || isElementwise(op);
  });
}

/// Whether the cluster, as it stands, can be one space of a kernel.
bool Clusterer::holds(int cluster) {
  const Cluster &candidate = clusters[cluster];
  SmallVector<Value> yielded = outputs(cluster);
  if (candidate.ops.size() > 1)
    for (Operation *op : candidate.ops) {
      if (isa<AllReduceOp>(op) || (isAlone(op) && !holdsEpilogue(op, cluster)))
        return false;
    }
  llvm::SetVector<Value> used = buffers(cluster);
  used.insert_range(yielded);
  if (candidate.ops.size() > 1 && !fits(used, /*parts=*/1))
    return false;
  // Attention's other results are not of the space.
  llvm::erase_if(yielded, [](Value value) {
    return isAlone(value.getDefiningOp()) &&
           cast<OpResult>(value).getResultNumber() > 0;
  });
  for (Value value : yielded)
    if (shapes.at(value) != candidate.shape &&
        !isPerRow(shapes.at(value), cluster))
      return false;

  SmallVector<MatmulOp> gemms;
  RopeOp rope;
  bool otherRowOp = false;
  for (Operation *op : candidate.ops) {
    if (auto found = dyn_cast<MatmulOp>(op)) {
      if (gemms.size() == 2 ||
          (!gemms.empty() && !sharesLoop(gemms.front(), found)))
        return false;
      gemms.push_back(found);
    } else if (auto found = dyn_cast<RopeOp>(op)) {
      if (rope && rope.getStyle() != found.getStyle())
        return false;
      rope = found;
    }
    otherRowOp |= isRowOp(op) && !isa<MatmulOp, SwigluOp, DequantOp, PatchesOp,
                                      RmsNormOp, HeadsOp, RopeOp>(op);
  }
  if (!gemms.empty() && (otherRowOp || !holdsOperands(gemms, cluster)))
    return false;

  auto isInside = [&](Value value) {
    Operation *op = value.getDefiningOp();
    return isTransparent(op) || isIn(op, cluster);
  };
  if (failed(walkDemands(yielded, candidate.shape.getNumResults(), isInside,
                         [](Value, const Mapping &) {})))
    return false;

  llvm::SmallDenseSet<int> visited;
  for (Operation *op : candidate.ops)
    for (Source source : sources(op)) {
      if (source.cluster == cluster) {
        if (source.throughView)
          return false;
      } else if (reaches(source.cluster, cluster, visited)) {
        return false;
      }
    }
  return true;
}

bool Clusterer::tryJoin(Operation *op, int cluster) {
  clusterOf[op] = cluster;
  clusters[cluster].ops.push_back(op);
  if (holds(cluster))
    return true;
  clusters[cluster].ops.pop_back();
  clusterOf.erase(op);
  return false;
}

bool Clusterer::tryMerge(int from, int into) {
  Cluster savedFrom = clusters[from], savedInto = clusters[into];
  SmallVector<Operation *> &ops = clusters[into].ops;
  llvm::append_range(ops, savedFrom.ops);
  llvm::sort(ops,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  clusters[from].ops.clear();
  for (Operation *op : savedFrom.ops)
    clusterOf[op] = into;
  if (holds(into))
    return true;
  clusters[from] = savedFrom;
  clusters[into] = savedInto;
  for (Operation *op : savedFrom.ops)
    clusterOf[op] = from;
  return false;
}

void Clusterer::place(Operation *op) {
  llvm::SetVector<int> candidates; // an op that is alone begins its own
  auto consider = [&](int cluster) {
    if (clusters[cluster].shape == shapeOf(op) ||
        (isElementwise(op) && isPerRow(shapeOf(op), cluster)))
      candidates.insert(cluster);
  };
  for (Source source : sources(op))
    if (!source.throughView)
      consider(source.cluster);
  // Ops that read the same buffer of the whole shape.
  for (Value operand : op->getOperands())
    for (Operation *user : operand.getUsers())
      if (auto it = clusterOf.find(user);
          it != clusterOf.end() && shapes.at(operand) == shapeOf(op) &&
          llvm::none_of(clusters[it->second].ops, [](Operation *o) {
            return isa<MatmulOp>(o) || isAlone(o);
          }))
        consider(it->second);
  int home = -1;
  if (isAlone(op))
    candidates.clear();
  for (int cluster : candidates) {
    if (home < 0) {
      if (tryJoin(op, cluster))
        home = cluster;
    } else if (!clusters[cluster].ops.empty()) {
      tryMerge(cluster, home);
    }
  }
  if (home >= 0)
    return;
  clusterOf[op] = clusters.size();
  clusters.push_back({{op}, shapeOf(op), {}, {}});
}

/// Erases ops that were repeated in all of their consumers.
void Clusterer::eraseUnused(int cluster) {
  SmallVector<Operation *> kept;
  for (Operation *op : llvm::reverse(clusters[cluster].ops)) {
    if (!op->use_empty()) {
      kept.push_back(op);
      continue;
    }
    clusterOf.erase(op);
    op->erase();
  }
  clusters[cluster].ops.assign(kept.rbegin(), kept.rend());
}

/// Repeats elementwise ops in one of their consumers.
bool Clusterer::tryRepeat(int from, int into) {
  SmallVector<Operation *> ops = clusters[from].ops;
  if (ops.size() > maxRepeated || !llvm::all_of(ops, isElementwise))
    return false;
  bool isVector = clusters[from].shape.getNumResults() <
                  clusters[into].shape.getNumResults();
  if (!isVector && inputs(from).size() > outputs(from).size())
    return false;

  IRMapping mapping;
  int repeated = clusters.size();
  clusters.push_back({{}, clusters[from].shape, {}, {}});
  for (Operation *op : ops) {
    OpBuilder builder(op);
    builder.setInsertionPointAfter(op);
    // Transparent operands have one user each: repeat them too.
    std::function<Value(Value)> operandFor = [&](Value value) -> Value {
      Operation *source = value.getDefiningOp();
      if (!source || mapping.contains(value) || !isTransparent(source))
        return mapping.lookupOrDefault(value);
      IRMapping operands;
      for (Value operand : source->getOperands())
        operands.map(operand, operandFor(operand));
      Value clone = builder.clone(*source, operands)->getResult(0);
      shapes[clone] = shapes.at(value);
      return clone;
    };
    IRMapping operands;
    for (Value operand : op->getOperands())
      operands.map(operand, operandFor(operand));
    Operation *clone = builder.clone(*op, operands);
    mapping.map(op->getResult(0), clone->getResult(0));
    shapes[clone->getResult(0)] = shapeOf(op);
    clusterOf[clone] = repeated;
    clusters[repeated].ops.push_back(clone);
  }
  SmallVector<std::pair<OpOperand *, Value>> redirected;
  std::function<bool(Operation *)> leadsInto = [&](Operation *user) {
    if (isTransparent(user))
      return llvm::all_of(user->getUsers(), leadsInto);
    return isIn(user, into);
  };
  for (Operation *op : ops)
    for (OpOperand &use :
         llvm::make_early_inc_range(op->getResult(0).getUses()))
      if (leadsInto(use.getOwner())) {
        redirected.push_back({&use, use.get()});
        use.set(mapping.lookup(use.get()));
      }
  if (tryMerge(repeated, into)) {
    eraseUnused(from);
    return true;
  }
  for (auto [use, original] : redirected)
    use->set(original);
  for (Operation *clone : llvm::reverse(clusters[repeated].ops)) {
    clusterOf.erase(clone);
    clone->erase();
  }
  clusters[repeated].ops.clear();
  return false;
}

bool Clusterer::mergeIntoConsumers() {
  for (int into = 0, e = clusters.size(); into < e; ++into) {
    llvm::SetVector<int> producers;
    for (Operation *op : clusters[into].ops)
      for (Source source : sources(op))
        if (!source.throughView && source.cluster != into)
          producers.insert(source.cluster);
    for (int from : producers)
      if (tryMerge(from, into) || tryRepeat(from, into))
        return true;
  }
  return false;
}

/// Whether clusters that do not depend on each other may be side by side: none
/// is a GEMM, or all are of the same A and the same kind.
bool Clusterer::sharesLaunch(int cluster, int other) {
  auto gemmOf = [&](int number) -> MatmulOp {
    for (Operation *op : clusters[number].ops)
      if (auto matmul = dyn_cast<MatmulOp>(op))
        return matmul;
    return nullptr;
  };
  for (int number : {cluster, other})
    if (llvm::any_of(clusters[number].ops, [](Operation *op) {
          return isAlone(op) || isa<AllReduceOp>(op);
        }))
      return false;
  MatmulOp first = gemmOf(cluster), second = gemmOf(other);
  if (!first || !second)
    return !first && !second;
  // A configuration in the source is for a kernel that has the launch alone.
  return first.getA() == second.getA() &&
         first.getOffsets() == second.getOffsets() &&
         !first->hasAttr("greta.config") &&
         first->getAttrDictionary() == second->getAttrDictionary() &&
         first.getB().getType().getRank() == second.getB().getType().getRank();
}

KernelPlan Clusterer::schedule() {
  llvm::DenseMap<int, unsigned> levels;
  std::function<unsigned(int)> levelOf = [&](int cluster) {
    if (auto it = levels.find(cluster); it != levels.end())
      return it->second;
    unsigned level = 0;
    for (Operation *op : clusters[cluster].ops)
      for (Source source : sources(op))
        if (source.cluster != cluster)
          level = std::max(level, levelOf(source.cluster) + 1);
    return levels[cluster] = level;
  };
  SmallVector<std::pair<unsigned, int>> order; // level, cluster
  for (int i = 0, e = clusters.size(); i < e; ++i)
    if (!clusters[i].ops.empty())
      order.push_back({levelOf(i), i});
  llvm::sort(order);

  struct Launch {
    unsigned level;
    bool isMatmul;
    SmallVector<int> clusters;
    llvm::SetVector<Value> buffers;
  };
  SmallVector<Launch> launches;
  for (auto [level, cluster] : order) {
    clusters[cluster].inputs = inputs(cluster);
    clusters[cluster].outputs = outputs(cluster);
    bool isMatmul = llvm::any_of(
        clusters[cluster].ops, [](Operation *op) { return isa<MatmulOp>(op); });
    llvm::SetVector<Value> own = buffers(cluster);
    own.insert_range(clusters[cluster].outputs);
    Launch *home = nullptr;
    for (Launch &launch : launches) {
      llvm::SetVector<Value> joined = launch.buffers;
      joined.set_union(own);
      if (launch.level == level && fits(joined, launch.clusters.size() + 1) &&
          (!isMatmul || launch.clusters.size() < maxGemms) &&
          sharesLaunch(launch.clusters.front(), cluster))
        home = &launch;
    }
    if (!home)
      home = &launches.emplace_back(Launch{level, isMatmul, {}, {}});
    home->clusters.push_back(cluster);
    home->buffers.set_union(own);
  }
  llvm::stable_sort(launches, [](const Launch &a, const Launch &b) {
    return std::pair(a.level, !a.isMatmul) < std::pair(b.level, !b.isMatmul);
  });
  KernelPlan plan;
  for (const Launch &launch : launches)
    for (int cluster : launch.clusters) {
      if (cluster == launch.clusters.front())
        plan.emplace_back();
      plan.back().push_back(clusters[cluster]);
    }
  return plan;
}

KernelPlan Clusterer::run() {
  SmallVector<Operation *> ops;
  Operation *sum = nullptr;
  for (Operation &op : function.getBody().front()) {
    if (isCompute(&op))
      ops.push_back(&op);
    if (isa<AllReduceOp>(op)) {
      if (sum)
        sumBefore[&op] = sum;
      sum = &op;
    }
  }
  for (Operation *op : ops)
    place(op);
  while (mergeIntoConsumers())
    ;
  return schedule();
}

KernelPlan greta::planKernels(func::FuncOp function, Shapes &shapes) {
  return Clusterer(function, shapes).run();
}
